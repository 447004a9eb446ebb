// Collects one report of a system (MAT-020, MAT-021): of this host, or of the files below a folder, with no kernel.
import { release, version } from 'node:os'
import { parseProcStat } from '../../../core/agent/proc-cpu.ts'
import { apkBranch, osOf } from '../../../core/matching/os-release.ts'
import { packageColumns } from '../../../core/matching/package-list.ts'
import { isRebootRequired, kernelState } from '../../../core/matching/reboot-required.ts'
import type { Report, ScanErrorCode } from '../../../core/matching/report-schema.ts'
import { isValidVersion } from '../../../core/matching/version.ts'
import { sha256Hex } from '../../../core/series/hash.ts'
import { type InstalledPackages, readPackages } from './packages.ts'
import { RootFiles } from './root-files.ts'
import { Slices } from './slices.ts'
import { readEnabledModules, readExtendedSupport, readUsesElts } from './subscriptions.ts'

export type ScanOptions = {
  /** `/` for this host. */
  readonly root: string
  readonly stateDir: string | null
  readonly scannerVersion: string
  readonly nowMs: number
  /** What identifies a host without a machine-id; empty for nothing. */
  readonly madeMachineId: () => string
  /** Where rpm may be; tests say nowhere. */
  readonly rpmPaths?: readonly string[]
  /** The kernel that runs on the files below a folder; none without it. */
  readonly kernel?: Report['kernel']
}

const NO_OS: Report['os'] = { id: '', version_id: '', codename: '', id_like: [], cpe_name: '' }
const NO_KERNEL: Report['kernel'] = { running: '', build: '', booted_at_ms: 0 }
const CONTAINER_MARKS = ['/run/.containerenv', '/.dockerenv'] as const

/** Reads everything once. Never rejects for what the files hold: a report says by its error codes what is missing. */
export async function collectReport(options: ScanOptions): Promise<Report> {
  const files = new RootFiles(options.root)
  const context = { files, slices: new Slices(), stateDir: options.stateDir, rpmPaths: options.rpmPaths }
  const os = await readOs(files)
  const installed = await readPackages(os, context)
  const errorCodes = new Set<ScanErrorCode>(installed.errorCodes)
  if (os === null) errorCodes.add('os_release_missing')
  const kernel = files.isOwnHost ? await readKernel(files) : (options.kernel ?? NO_KERNEL)
  const restart = await readRestart(installed, kernel, files)
  if (!restart.isPackaged) errorCodes.add('kernel_unpackaged')
  if (hasUnlabelledModules(installed)) errorCodes.add('module_unknown')
  if (await context.slices.run(findInvalidVersion(installed))) errorCodes.add('version_invalid')
  const { packages } = installed
  const columns = packages === null ? null : await context.slices.run(packageColumns(packages))
  return {
    schema: 1,
    collected_at_ms: options.nowMs,
    scanner_version: options.scannerVersion.slice(0, 64),
    machine_id_hash: await readMachineIdHash(files, options.madeMachineId),
    os: await withBranch(os ?? NO_OS, installed, files),
    kernel,
    reboot_required: restart.isRequired,
    livepatch_active: await readLivepatch(files),
    esm: await readExtendedSupport(files),
    elts: await readUsesElts(files),
    modules: installed.system === 'rpm' ? await readEnabledModules(files) : {},
    system: installed.system,
    error_codes: [...errorCodes].sort(),
    ...(columns === null ? {} : { packages: columns }),
  }
}

async function readOs(files: RootFiles): Promise<Report['os'] | null> {
  const text = (await files.text('/etc/os-release')) ?? (await files.text('/usr/lib/os-release'))
  return text === null ? null : osOf(text)
}

async function withBranch(os: Report['os'], { system }: InstalledPackages, files: RootFiles): Promise<Report['os']> {
  if (system !== 'apk') return os
  const branch = apkBranch((await files.text('/etc/apk/repositories')) ?? '')
  return branch === '' ? os : { ...os, branch }
}

async function readKernel(files: RootFiles): Promise<Report['kernel']> {
  const stat = parseProcStat((await files.text('/proc/stat', 4 * 1024 * 1024)) ?? '', 0)
  return {
    running: release().slice(0, 256),
    build: version().slice(0, 512),
    booted_at_ms: Math.max(0, stat.bootAtMs ?? 0),
  }
}

/** Whether a new start waits (MAT-017), and whether the kernel is of a package here (MAT-019). */
async function readRestart(
  { system, packages, needsRebootSinceMs }: InstalledPackages,
  kernel: Report['kernel'],
  files: RootFiles,
): Promise<{ readonly isRequired: boolean; readonly isPackaged: boolean }> {
  let isContainer = false
  for (const path of CONTAINER_MARKS) isContainer ||= await files.exists(path)
  // Without a list nothing is known of the kernel's package, and so nothing said.
  const state =
    system === '' || packages === null
      ? { isPackaged: true, isNewerInstalled: false }
      : kernelState(system, packages, kernel)
  const isRequired = isRebootRequired({
    isMarked: await files.exists('/run/reboot-required'),
    isNewerKernel: state.isNewerInstalled,
    isContainer,
    packageInstalledAtMs: needsRebootSinceMs,
    bootedAtMs: kernel.booted_at_ms,
  })
  return {
    isRequired,
    isPackaged: state.isPackaged && !isContainer,
  }
}

/** Builds of modules have it in their release; versions of rpm before labels do not say which module. */
const hasUnlabelledModules = ({ system, packages }: InstalledPackages): boolean =>
  system === 'rpm' && (packages ?? []).some(each => each.module === '' && /\.module[+_]/.test(each.version))

/** Whether a version cannot be compared with any other (MAT-098). */
function* findInvalidVersion({ system, packages }: InstalledPackages): Generator<void, boolean> {
  if (system === '') return false
  for (const [index, { version }] of (packages ?? []).entries()) {
    if (!isValidVersion(system, version)) return true
    if (index % 500 === 0) yield
  }
  return false
}

async function readMachineIdHash(files: RootFiles, makeMachineId: () => string): Promise<string> {
  for (const path of ['/etc/machine-id', '/var/lib/dbus/machine-id']) {
    const id = (await files.text(path))?.trim().toLowerCase() ?? ''
    if (/^[0-9a-f]{32}$/.test(id)) return machineIdHash(id)
  }
  const made = makeMachineId()
  return made === '' ? '' : machineIdHash(made)
}

const machineIdHash = (id: string): string => sha256Hex(`svc-scan-v1\n${id}`)

async function readLivepatch(files: RootFiles): Promise<boolean> {
  const folder = '/sys/kernel/livepatch'
  const names = await files.names(folder).catch(() => [])
  for (const name of names) if ((await files.text(`${folder}/${name}/enabled`))?.trim() === '1') return true
  return false
}
