// Allows one process at a time: a SQLite lock on its own file, which the system releases however the process ends.
import { Database, SQLiteError } from 'bun:sqlite'
import { chmodSync } from 'node:fs'

export type ProcessLock = { readonly release: () => void }

/**
 * Holds the lock until `release` or the end of the process. Throws, with a message for the operator, when another
 * `holder` has it.
 */
export function lockFile(path: string, holder: string): ProcessLock {
  let database: Database | null = null
  try {
    database = new Database(path, { create: true })
    chmodSync(path, 0o600)
    database.run('PRAGMA busy_timeout = 0')
    database.run('PRAGMA locking_mode = EXCLUSIVE')
    database.run('BEGIN EXCLUSIVE')
  } catch (error) {
    database?.close()
    const isHeld = error instanceof SQLiteError && error.code === 'SQLITE_BUSY'
    const cause = isHeld
      ? `another ${holder} runs on this directory; stop that one first, or give this one a directory of its own`
      : error instanceof Error
        ? error.message
        : String(error)
    throw new Error(`cannot lock ${path}: ${cause}`, { cause: error })
  }
  return { release: () => database?.close() }
}
