// The list of packages of a system, or why there is none (MAT-014, MAT-015): never a list that is shorter than what is
// installed without saying so.
import { ApkInstalledReader } from '../../../core/matching/apk-installed.ts'
import { DpkgStatusReader } from '../../../core/matching/dpkg-status.ts'
import { packageSystemOf } from '../../../core/matching/os-release.ts'
import { type InstalledPackage, PackageList } from '../../../core/matching/package-list.ts'
import {
  PACKAGE_SYSTEMS,
  type PackageSystem,
  type Report,
  type ScanErrorCode,
} from '../../../core/matching/report-schema.ts'
import type { RootFiles } from './root-files.ts'
import { findRpmDatabase, type RpmContext, readRpmDatabase, rpmDatabaseFiles } from './rpm-database.ts'
import type { Slices } from './slices.ts'

const DPKG_STATUS = '/var/lib/dpkg/status'
const DPKG_STATUS_FOLDER = '/var/lib/dpkg/status.d'
const APK_FILES = ['/lib/apk/db/installed', '/usr/lib/apk/db/installed'] as const

/** Every file whose change may be one of the packages (MAT-025). */
export const packageDatabaseFiles: readonly string[] = [
  DPKG_STATUS,
  DPKG_STATUS_FOLDER,
  ...APK_FILES,
  ...rpmDatabaseFiles,
]

/** Twenty thousand packages are some 30 MiB, with the files of apk some 60. */
const DATABASE_BYTES_MAX = 96 * 1024 * 1024
/** All files of status.d together. */
const STATUS_FOLDER_FILES_MAX = 20_000

export type InstalledPackages = {
  readonly system: PackageSystem | ''
  readonly errorCodes: readonly ScanErrorCode[]
  /** Null when the list could not be read whole, is empty, or too long for a report. */
  readonly packages: readonly InstalledPackage[] | null
  /** rpm: when a package was installed last that only a new start brings into use, ms. */
  readonly needsRebootSinceMs: number
}

/** Reads the packages of the package system that the distribution lives by. */
export async function readPackages(os: Report['os'] | null, context: RpmContext): Promise<InstalledPackages> {
  const { files } = context
  const present: PackageSystem[] = []
  for (const system of PACKAGE_SYSTEMS) if (await isPresent(system, files)) present.push(system)
  // What os-release names is reported even when it is not there: another list beside it is not that of the system.
  const system = (os === null ? null : packageSystemOf(os)) ?? present[0] ?? null
  const none = { packages: null, needsRebootSinceMs: 0 }
  if (system === null || !present.includes(system))
    return { ...none, system: system ?? '', errorCodes: ['packages_unreadable'] }
  try {
    const { list, needsRebootSinceMs } = await read(system, context)
    if (list.isTooLong) return { ...none, system, errorCodes: ['too_many_packages'] }
    const errorCodes: ScanErrorCode[] = list.isIncomplete ? ['package_incomplete'] : []
    if (list.packages.length === 0) return { ...none, system, errorCodes: [...errorCodes, 'no_packages'] }
    return { system, errorCodes, packages: list.packages, needsRebootSinceMs }
  } catch {
    return { ...none, system, errorCodes: ['packages_unreadable'] }
  }
}

async function isPresent(system: PackageSystem, files: RootFiles): Promise<boolean> {
  switch (system) {
    case 'dpkg':
      return (await files.exists(DPKG_STATUS)) || (await files.exists(DPKG_STATUS_FOLDER))
    case 'rpm':
      return (await findRpmDatabase(files)) !== null
    case 'apk':
      return (await files.exists(APK_FILES[0])) || (await files.exists(APK_FILES[1]))
  }
}

type Reading = { readonly list: PackageList; readonly needsRebootSinceMs: number }

async function read(system: PackageSystem, context: RpmContext): Promise<Reading> {
  const { files, slices } = context
  switch (system) {
    case 'dpkg':
      return { list: await readDpkg(files, slices), needsRebootSinceMs: 0 }
    case 'apk':
      return { list: await readApk(files, slices), needsRebootSinceMs: 0 }
    case 'rpm': {
      const database = await findRpmDatabase(files)
      if (database === null) throw new Error('the rpm database is gone')
      const { list, reading } = await readRpmDatabase(database, () => new PackageList(), context)
      return { list, ...reading }
    }
  }
}

async function readDpkg(files: RootFiles, slices: Slices): Promise<PackageList> {
  const list = new PackageList()
  if (await files.exists(DPKG_STATUS)) await readText(DPKG_STATUS, new DpkgStatusReader(list, true), files, slices)
  const names = (await files.names(DPKG_STATUS_FOLDER)).filter(name => !name.endsWith('.md5sums'))
  if (names.length > STATUS_FOLDER_FILES_MAX) list.isTooLong = true
  for (const name of names) {
    if (list.isTooLong) break
    await readText(`${DPKG_STATUS_FOLDER}/${name}`, new DpkgStatusReader(list, false), files, slices)
  }
  return list
}

async function readApk(files: RootFiles, slices: Slices): Promise<PackageList> {
  const list = new PackageList()
  const path = (await files.exists(APK_FILES[0])) ? APK_FILES[0] : APK_FILES[1]
  await readText(path, new ApkInstalledReader(list), files, slices)
  return list
}

type TextReader = { readonly isMalformed: boolean; push(piece: string): void; end(): boolean }

/** Reads a file to its end. Rejects when it is not whole. */
async function readText(path: string, reader: TextReader, files: RootFiles, slices: Slices): Promise<void> {
  const decoder = new TextDecoder()
  for await (const piece of files.pieces(path, DATABASE_BYTES_MAX)) {
    reader.push(decoder.decode(piece, { stream: true }))
    if (reader.isMalformed) break
    await slices.breathe()
  }
  reader.push(decoder.decode())
  if (!reader.end()) throw new Error(`${path} is broken or cut`)
}
