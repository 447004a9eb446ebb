// When a server needs a new start (MAT-017, MAT-019, section 6): which installed kernel runs, whether a newer one of
// its kind waits, and which other packages are not in use before.
import { isKernelImage, isRunning, kernelKind, replacesAtReboot } from './kernel-names.ts'
import type { PackageInstance } from './package-instance.ts'
import type { InstalledPackage } from './package-list.ts'
import type { PackageSystem } from './report-schema.ts'
import { compareVersions } from './version.ts'

type RunningKernel = {
  /** `uname -r`; empty for a system of which only the files are seen. */
  readonly running: string
  /** `uname -v`. */
  readonly build: string
}

type KernelState = {
  /** The kernel that runs is one of the installed packages; where none runs: there is an image at all. */
  readonly isPackaged: boolean
  readonly isNewerInstalled: boolean
}

export function kernelState(
  system: PackageSystem,
  packages: readonly InstalledPackage[],
  { running, build }: RunningKernel,
): KernelState {
  const images = packages
    .filter(({ name }) => name.startsWith('linux-') || name.startsWith('kernel'))
    .map(each => ({ ...each, system, release: '' }))
    .filter(isKernelImage)
  if (running === '') return { isPackaged: images.length > 0, isNewerInstalled: false }
  const own = images.filter(image => isRunning(image, running))
  const isNewer = (image: PackageInstance): boolean => own.some(other => replacesAtReboot(image, other))
  const isNewerInstalled =
    own.length > 0
      ? images.some(isNewer) || own.some(image => isNewerThanBuild(image, build))
      : images.some(image => isNewerThanRelease(image, running))
  return { isPackaged: own.length > 0, isNewerInstalled }
}

/** A release of Debian that keeps its number gets new files in place: only the build says which ones run. */
function isNewerThanBuild({ system, version }: PackageInstance, build: string): boolean {
  const built = / Debian (\d\S*)/.exec(build)?.[1]
  return system === 'dpkg' && built !== undefined && compareVersions('dpkg', version, built) > 0
}

/** The package of the kernel that runs may be gone when its successor is there. */
function isNewerThanRelease(image: PackageInstance, running: string): boolean {
  if (image.system === 'dpkg') {
    const prefix = /^linux-image-(?:unsigned-)?/
    const ofRunning = { ...image, name: `linux-image-${running}` }
    const isSameKind = kernelKind(ofRunning) === kernelKind(image)
    return isSameKind && compareVersions('dpkg', image.name.replace(prefix, ''), running) > 0
  }
  const [, version, revision, flavour] = /^(\d[\d.]*)-r?(\d+)-(\S+)$/.exec(running) ?? []
  const isSameKind = image.system === 'apk' && image.name === `linux-${flavour}`
  return isSameKind && compareVersions('apk', image.version, `${version}-r${revision}`) > 0
}

/** Packages of rpm whose new files only a new start brings into use (MAT-017); dpkg's own leave a mark. */
const REBOOT_PACKAGES: ReadonlySet<string> = new Set(['glibc', 'openssl-libs', 'systemd', 'dbus', 'linux-firmware'])

export const needsReboot = (name: string): boolean => REBOOT_PACKAGES.has(name)

/** What speaks for a new start. */
type RebootSigns = {
  /** The distribution left its mark, `/run/reboot-required`. */
  readonly isMarked: boolean
  readonly isNewerKernel: boolean
  /** The kernel of a container is that of its host. */
  readonly isContainer: boolean
  /** When one of the packages that need it was installed last, and when the host started; 0 when it is not known. */
  readonly packageInstalledAtMs: number
  readonly bootedAtMs: number
}

export const isRebootRequired = (signs: RebootSigns): boolean =>
  signs.isMarked ||
  (signs.isNewerKernel && !signs.isContainer) ||
  (signs.bootedAtMs > 0 && signs.packageInstalledAtMs > signs.bootedAtMs)
