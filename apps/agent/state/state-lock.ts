// One agent a state directory: two would take each other's batches and sequence numbers. A lock of SQLite on an empty
// file of its own: the system gives it back however the process ends, it needs no room on a full disk, and it holds
// between containers.
import { constants, Database, SQLiteError } from 'bun:sqlite'
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { ensureOwnFile } from '../../files/replace-file.ts'
import type { StateDir } from './state-dir.ts'

const AGENT_LOCK = { file: 'agent.lock', held: 'another agent uses this state directory: stop it first' }
/** A scan of the running agent and one of the command line must not enroll beside each other. */
export const SCAN_LOCK = { file: 'scan.lock', held: 'another scan runs: try again when it has ended' }
/** Not through a link: root may work in a directory of another user, who could lead it to any file. */
const OPEN_HERE = constants.SQLITE_OPEN_READWRITE | constants.SQLITE_OPEN_NOFOLLOW

export class StateLock {
  readonly #dir: StateDir
  readonly #kind: typeof AGENT_LOCK
  #database: Database | null = null

  /** Takes the directory for this process. Throws when another one has it. */
  constructor(dir: StateDir, kind = AGENT_LOCK) {
    this.#dir = dir
    this.#kind = kind
    // Where nothing can be written, two cannot take each other's batches.
    if (!dir.isReadOnly) this.take()
  }

  /** Takes it again after `release`; nothing when it is held. */
  take(): void {
    if (this.#database !== null) return
    // SQLite refuses a link anywhere on the way, and the directory itself may well be behind one.
    const path = join(realpathSync(this.#dir.path), this.#kind.file)
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
        throw new Error(this.#kind.held, { cause: error })
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
