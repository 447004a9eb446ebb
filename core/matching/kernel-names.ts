// Kernels (MAT-120 to MAT-123): which sources are kernels, which of their packages are images, and which image runs.
import type { PackageInstance } from './package-instance.ts'
import type { PackageSystem } from './report-schema.ts'
import { compareVersions } from './version.ts'

/**
 * Words of which the names of Debian's and Ubuntu's kernel sources are made, behind `linux-`: `linux-aws-fips`,
 * `linux-hwe-6.8`, `linux-nvidia-tegra-igx`. A source with any other word is no kernel (`linux-base`,
 * `linux-firmware`).
 */
const VARIANT_WORDS: ReadonlySet<string> = new Set(
  `allwinner armadaxp aws azure bluefield cvm dell300x ec2 edge euclid fde fips flo fsl gcp gke gkeop goldfish grouper
  grsec hwe ibm igx imx51 intel iot iotg joule kvm laptop linaro lowlatency lts maguro mako manta mvl dove nvidia oem
  omap omap4 opt oracle osp1 qcm msm raspi raspi2 realtime riscv rpi2 rt shared snapdragon starfive tegra ti
  trusty uc20 uc22 utopic vanguard vivid wily xenial xilinx zynqmp`.split(/\s+/),
)

const RPM_SOURCES =
  /^kernel(-(rt|uek|default|azure|64k|plus|ml|lt|alt|preempt|vanilla|pae|xen|ec2|rpi|debug|longterm|source|obs-build))?$/

/** Alpine's kernels are named after what they are made for; these words are of other packages named `linux-`. */
const APK_SOURCES = /^linux-(lts|virt|edge|stable|vanilla|hardened|grsec|rpi\d?|elm|asahi|starfive|openpax|vserver)$/

/** Whether the packages of a source (as `sourceOf` gives it) are those of a kernel (MAT-121). */
export function isKernelSource(system: PackageSystem, source: string): boolean {
  switch (system) {
    case 'dpkg':
      return source === 'linux' || (source.startsWith('linux-') && isVariant(source.slice('linux-'.length)))
    case 'rpm':
      return source.startsWith('kernel') && RPM_SOURCES.test(source)
    case 'apk':
      return source.startsWith('linux-') && APK_SOURCES.test(source)
  }
}

const isVariant = (name: string): boolean =>
  name.split('-').every(word => VARIANT_WORDS.has(word) || /^\d+(\.\d+)*$/.test(word))

type MatchedSource = { readonly source: string; readonly version: string }

/**
 * The source that a package is matched by. Signed kernels of dpkg become what they sign, with the version of the
 * binary; undefined for what has no code (MAT-120).
 */
export function sourceOf(instance: PackageInstance): MatchedSource | undefined {
  const { source, sourceVersion } = instance
  if (instance.system !== 'dpkg' || !source.startsWith('linux-')) return { source, version: sourceVersion }
  if (/^linux-(meta|latest)(-|$)/.test(source)) return undefined
  const signed = /^linux-signed(?:-(.+))?$/.exec(source)
  if (signed) return { source: signedSource(signed[1] ?? ''), version: instance.version }
  const restricted = /^linux-restricted-signatures(-.+)?$/.exec(source)
  if (restricted) return { source: `linux-restricted-modules${restricted[1] ?? ''}`, version: instance.version }
  return { source, version: sourceVersion }
}

/** Debian signs by architecture (`linux-signed-6.1-amd64`), Ubuntu by variant (`linux-signed-hwe-6.8`). */
function signedSource(name: string): string {
  const variant = name.replace(/-?(amd64|arm64|armhf|i386|ppc64el|s390x|riscv64)$/, '')
  return variant === '' ? 'linux' : `linux-${variant}`
}

const DPKG_IMAGE = /^linux-image-(?:unsigned-)?(\d.*?)(?:-unsigned)?$/

/** Packages of rpm with a bootable image, and what `uname -r` has behind the architecture when it runs. */
const RPM_IMAGES: Readonly<Record<string, string>> = {
  kernel: '',
  'kernel-core': '',
  'kernel-uek': '',
  'kernel-uek-core': '',
  'kernel-rt': '+rt',
  'kernel-rt-core': '+rt',
  'kernel-64k-core': '+64k',
  'kernel-debug': '+debug',
  'kernel-debug-core': '+debug',
  'kernel-rt-debug-core': '+rt-debug',
  'kernel-64k-debug-core': '+64k-debug',
  'kernel-plus': '',
  'kernel-ml': '',
  'kernel-lt': '',
}

/** SUSE has the flavour at the end: 5.14.21-150500.55.49-default. */
const SUSE_IMAGE = /^kernel-(default|default-base|azure|rt|preempt|64kb|pae|vanilla|xen|ec2|longterm)$/

/** Whether a package of a kernel source is an image; all its other packages make no findings (MAT-123). */
export function isKernelImage(instance: PackageInstance): boolean {
  const { name } = instance
  switch (instance.system) {
    case 'dpkg':
      return DPKG_IMAGE.test(name) && !/-dbg(sym)?$/.test(name)
    case 'rpm':
      return Object.hasOwn(RPM_IMAGES, name) || SUSE_IMAGE.test(name)
    case 'apk':
      return APK_SOURCES.test(name)
  }
}

/** Whether an image is the one that runs, by `uname -r` (MAT-122). */
export function isRunning(image: PackageInstance, unameRelease: string): boolean {
  if (unameRelease === '') return false
  switch (image.system) {
    case 'dpkg':
      return DPKG_IMAGE.exec(image.name)?.[1] === unameRelease
    case 'rpm':
      return isRunningRpm(image, unameRelease)
    case 'apk':
      return isRunningApk(image, unameRelease)
  }
}

/** 6.6.31-0-lts of 6.6.31-r0; the revision may keep its letter. */
function isRunningApk({ version, name }: PackageInstance, unameRelease: string): boolean {
  const flavour = name.slice('linux-'.length)
  return [version, version.replace(/-r(\d+)$/, '-$1')].some(build => `${build}-${flavour}` === unameRelease)
}

function isRunningRpm(image: PackageInstance, unameRelease: string): boolean {
  const build = image.version.slice(image.version.indexOf(':') + 1)
  const suffix = RPM_IMAGES[image.name]
  if (suffix !== undefined) {
    const plain = `${build}.${image.arch}`
    // Older kernels for real time have their mark in the release, older ones for debugging behind a point.
    if (unameRelease === plain) return suffix === '' || suffix === '+rt'
    if (suffix !== '' && (unameRelease === plain + suffix || unameRelease === `${plain}.${suffix.slice(1)}`))
      return true
  }
  const flavour = SUSE_IMAGE.exec(image.name)?.[1]?.replace(/^default-base$/, 'default')
  if (flavour === 'default' && unameRelease === `${build}.${image.arch}`) return true
  if (!flavour || !unameRelease.endsWith(`-${flavour}`)) return false
  const running = unameRelease.slice(0, -flavour.length - 1)
  // The package's release has the count of rebuilds at its end, which the kernel does not know.
  return build === running || (build.startsWith(`${running}.`) && !build.slice(running.length + 1).includes('.'))
}

/** Whether an image takes the place of another one at a reboot. */
export const replacesAtReboot = (image: PackageInstance, other: PackageInstance): boolean =>
  kernelKind(image) === kernelKind(other) && compareVersions(image.system, image.version, other.version) > 0

/** Images of one kind replace each other at a reboot: `amd64` of dpkg, the package's name elsewhere. */
export function kernelKind(image: PackageInstance): string {
  if (image.system !== 'dpkg') return image.name
  const release = DPKG_IMAGE.exec(image.name)?.[1] ?? ''
  return /^\d[^-]*-(?:\d[^-]*-)?(.+)$/.exec(release)?.[1] ?? release
}
