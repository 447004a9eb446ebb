// One agent a state directory: two would take each other's batches and sequence numbers. A lock of SQLite on an empty
// file of its own: the system gives it back however the process ends, it needs no room on a full disk, and it holds
// between containers.
import { constants, Database, SQLiteError } from 'bun:sqlite'
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { ensureOwnFile } from '../../files/replace-file.ts'
import type { StateDir } from './state-dir.ts'

const FILE = 'agent.lock'
/** Not through a link: root may work in a directory of another user, who could lead it to any file. */
const OPEN_HERE = constants.SQLITE_OPEN_READWRITE | constants.SQLITE_OPEN_NOFOLLOW

export class StateLock {
  readonly #dir: StateDir
  #database: Database | null = null

  /** Takes the directory for this process. Throws when another running agent has it. */
  constructor(dir: StateDir) {
    this.#dir = dir
    // Where nothing can be written, two cannot take each other's batches.
    if (!dir.isReadOnly) this.take()
  }

  /** Takes it again after `release`; nothing when it is held. */
  take(): void {
    if (this.#database !== null) return
    // SQLite refuses a link anywhere on the way, and the directory itself may well be behind one.
    const path = join(realpathSync(this.#dir.path), FILE)
    ensureOwnFile(path, this.#dir.owner)
    const database = new Database(path, OPEN_HERE)
    try {
      database.run('PRAGMA busy_timeout = 0')
      // A journal on disk would need room.
      database.run('PRAGMA journal_mode = MEMORY')
      database.run('BEGIN EXCLUSIVE')
    } catch (error) {
      database.close()
      if (error instanceof SQLiteError && error.code === 'SQLITE_BUSY')
        throw new Error('another agent uses this state directory: stop it first', { cause: error })
      throw error
    }
    this.#database = database
  }

  /** Gives the directory back. */
  release(): void {
    this.#database?.close()
    this.#database = null
  }
}
