// Reads rpm's database: SQLite by itself, the older kinds through rpm (MAT-009 to MAT-011). The database belongs to
// root and may be in use, so that it is opened as a file that nobody changes, and what was read counts only when nobody
// did.
import { constants, Database } from 'bun:sqlite'
import { execFile } from 'node:child_process'
import { constants as fsConstants } from 'node:fs'
import { access, copyFile, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { PackageList } from '../../../core/matching/package-list.ts'
import { needsReboot } from '../../../core/matching/reboot-required.ts'
import { MAX_PACKAGES } from '../../../core/matching/report-schema.ts'
import { readRpmHeader, readRpmQueryLine, rpmQueryFormat } from '../../../core/matching/rpm-header.ts'
import type { RootFiles } from './root-files.ts'
import type { Slices } from './slices.ts'

const FOLDERS = ['/usr/lib/sysimage/rpm', '/var/lib/rpm'] as const
const SQLITE_FILES = FOLDERS.map(folder => `${folder}/rpmdb.sqlite`)
const OTHER_FILES = FOLDERS.flatMap(folder => [`${folder}/Packages.db`, `${folder}/Packages`])

/** Every file whose change may be one of the packages. */
export const rpmDatabaseFiles: readonly string[] = [
  ...SQLITE_FILES.flatMap(file => [file, `${file}-wal`]),
  ...OTHER_FILES,
]

const TRIES = 3
const COPY_BYTES_MAX = 1024 ** 3
const COPY_PREFIX = 'rpm-copy-'
const COPY_LEFT_MS = 3_600_000
/** Headers hold the list of a package's files: the longest are of some MiB. */
const HEADER_BYTES_MAX = 32 * 1024 * 1024
/** All headers together: pages of a file that was made to harm may belong to many rows, so its size says nothing. */
const HEADERS_BYTES_MAX = 2 * 1024 ** 3
const QUERY_MS = 60_000
const QUERY_BYTES_MAX = 32 * 1024 * 1024
const RPM_PATHS: readonly string[] = ['/usr/bin/rpm', '/bin/rpm']

type RpmReading = {
  /** When a package was installed last of those that need a new start, ms; 0 for never. */
  readonly needsRebootSinceMs: number
}

export type RpmContext = {
  readonly files: RootFiles
  readonly slices: Slices
  /** Where a database with a filled log is copied to; null for the system's folder of temporary files. */
  readonly stateDir: string | null
  /** Where rpm may be; tests say nowhere. */
  readonly rpmPaths?: readonly string[]
}

/** The path of the database that is there, and its kind; null without one. */
export async function findRpmDatabase(files: RootFiles): Promise<{ path: string; isSqlite: boolean } | null> {
  for (const path of SQLITE_FILES) if (await files.exists(path)) return { path, isSqlite: true }
  for (const path of OTHER_FILES) if (await files.exists(path)) return { path, isSqlite: false }
  return null
}

/** Adds the packages of a database. Rejects when they cannot be read whole. */
export async function readRpmDatabase(
  database: { readonly path: string; readonly isSqlite: boolean },
  makeList: () => PackageList,
  context: RpmContext,
): Promise<{ readonly list: PackageList; readonly reading: RpmReading }> {
  if (!database.isSqlite) {
    const list = makeList()
    return { list, reading: await queryRpm(dirname(database.path), list, context) }
  }
  const { files } = context
  for (let tries = 0; tries < TRIES; tries++) {
    const stamp = () => Promise.all([database.path, `${database.path}-wal`].map(path => files.stamp(path)))
    const before = (await stamp()).join()
    const list = makeList()
    const outcome = await readSqlite(database.path, list, context).catch((error: unknown) => ({ error }))
    if ((await stamp()).join() !== before) continue
    if ('error' in outcome) throw outcome.error
    return { list, reading: outcome }
  }
  throw new Error('the rpm database changes while it is read')
}

async function readSqlite(path: string, list: PackageList, context: RpmContext): Promise<RpmReading> {
  const { files } = context
  // SQLite would wait for the other end of a pipe, and the agent with it.
  if (!(await files.isRegular(path))) throw new Error('the rpm database is no regular file')
  const located = await files.locate(path)
  const walBytes = await files.size(`${path}-wal`)
  if (walBytes === 0) {
    // Immutable: without it a database in WAL mode needs files beside it that only its owner can make.
    const uri = `file:${located.split('/').map(encodeURIComponent).join('/')}?immutable=1`
    return readTable(new Database(uri, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI), list, context)
  }
  if ((await files.size(path)) + walBytes > COPY_BYTES_MAX) throw new Error('the rpm database is too large to copy')
  const folder = await makeCopyFolder(context.stateDir)
  try {
    const copy = join(folder, 'rpmdb.sqlite')
    await copyFile(located, copy, fsConstants.COPYFILE_FICLONE)
    await copyFile(`${located}-wal`, `${copy}-wal`, fsConstants.COPYFILE_FICLONE)
    return await readTable(new Database(copy, constants.SQLITE_OPEN_READWRITE), list, context)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A folder for a copy, in the state directory or, for a user who may not write there, among the temporary files. */
async function makeCopyFolder(stateDir: string | null): Promise<string> {
  if (stateDir !== null) {
    try {
      await removeLeftCopies(stateDir)
      return await mkdtemp(join(stateDir, COPY_PREFIX))
    } catch {
      // It belongs to the agent's user.
    }
  }
  return mkdtemp(join(tmpdir(), COPY_PREFIX))
}

/** What a killed scan left. */
async function removeLeftCopies(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(COPY_PREFIX)) continue
    const path = join(parent, name)
    const modifiedAtMs = await stat(path).then(
      ({ mtimeMs }) => mtimeMs,
      () => Number.POSITIVE_INFINITY,
    )
    if (Date.now() - modifiedAtMs > COPY_LEFT_MS) await rm(path, { recursive: true, force: true })
  }
}

async function readTable(database: Database, list: PackageList, { slices }: RpmContext): Promise<RpmReading> {
  try {
    requirePlainTable(database)
    const next = database.query<{ id: number; bytes: number }, [number]>(
      'SELECT rowid AS id, length(blob) AS bytes FROM Packages WHERE rowid > ? ORDER BY rowid LIMIT 1',
    )
    const header = database.query<{ blob: unknown }, [number]>('SELECT blob FROM Packages WHERE rowid = ?')
    let needsRebootSinceMs = 0
    let rows = 0
    let bytes = 0
    for (let row = next.get(-1); row !== null && !list.isTooLong; row = next.get(row.id)) {
      // Also where every row is broken, there is an end.
      if (++rows > 2 * MAX_PACKAGES) list.isTooLong = true
      bytes += Math.min(row.bytes, HEADER_BYTES_MAX)
      if (bytes > HEADERS_BYTES_MAX) throw new Error('the rpm database holds more than its packages can need')
      const blob = row.bytes <= HEADER_BYTES_MAX ? header.get(row.id)?.blob : null
      const outcome = blob instanceof Uint8Array ? readRpmHeader(blob) : 'malformed'
      if (outcome === 'malformed') list.isIncomplete = true
      else if (outcome !== 'key') {
        list.add(outcome.installed)
        if (needsReboot(outcome.installed.name))
          needsRebootSinceMs = Math.max(needsRebootSinceMs, outcome.installedAtSeconds * 1000)
      }
      await slices.breathe()
    }
    return { needsRebootSinceMs }
  } finally {
    database.close()
  }
}

/** A view, a virtual table or a computed column would run whatever the file says. */
function requirePlainTable(database: Database): void {
  const table = database
    .query<{ type: string; rootpage: number }, []>("SELECT type, rootpage FROM sqlite_schema WHERE name = 'Packages'")
    .get()
  const computed = database
    .query<{ count: number }, []>("SELECT count(1) AS count FROM pragma_table_xinfo('Packages') WHERE hidden <> 0")
    .get()
  if (table?.type !== 'table' || table.rootpage < 1 || computed?.count !== 0)
    throw new Error('the rpm database has no table of packages')
}

/** Asks rpm itself for the packages of a folder. */
async function queryRpm(folder: string, list: PackageList, context: RpmContext): Promise<RpmReading> {
  const located = await context.files.locate(folder)
  // rpm expands macros in the name of the folder, and some of them run commands: links below a root choose its names.
  if (located.includes('%'))
    throw new Error('the folder of the rpm database has a name that rpm would not take as it is')
  const executable = await findRpm(context.rpmPaths ?? RPM_PATHS)
  const output = await runRpm(executable, located, true).catch((error: unknown) => {
    if (error instanceof UnknownTagError) return runRpm(executable, located, false)
    throw error
  })
  let needsRebootSinceMs = 0
  for (const line of output.split('\n')) {
    if (line === '') continue
    const outcome = readRpmQueryLine(line)
    if (outcome === 'malformed') list.isIncomplete = true
    else if (outcome !== 'key') {
      list.add(outcome.installed)
      if (needsReboot(outcome.installed.name))
        needsRebootSinceMs = Math.max(needsRebootSinceMs, outcome.installedAtSeconds * 1000)
    }
    await context.slices.breathe()
  }
  return { needsRebootSinceMs }
}

async function findRpm(paths: readonly string[]): Promise<string> {
  for (const path of paths) {
    const isThere = await access(path, fsConstants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return path
  }
  throw new Error('rpm is not installed: only it reads a database of this kind')
}

class UnknownTagError extends Error {}

/** The output of one `rpm -qa`, whole. Rejects when rpm says any error: what it prints then may be half of the list. */
function runRpm(executable: string, folder: string, withModule: boolean): Promise<string> {
  const args = ['-qa', '--dbpath', folder, '--qf', rpmQueryFormat(withModule)]
  const options = {
    timeout: QUERY_MS,
    killSignal: 'SIGKILL',
    maxBuffer: QUERY_BYTES_MAX,
    encoding: 'utf8',
    cwd: '/',
    // No macros of a user, and messages in the words that are looked for below.
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', HOME: '/nonexistent' },
  } as const
  return new Promise((resolve, reject) => {
    execFile(executable, args, options, (error, stdout, stderr) => {
      if (withModule && /unknown tag/i.test(stderr)) reject(new UnknownTagError('rpm knows no modules'))
      else if (error !== null || /^error:|dummy database/m.test(stderr))
        reject(new Error('rpm cannot read its database'))
      else resolve(stdout)
    })
  })
}
