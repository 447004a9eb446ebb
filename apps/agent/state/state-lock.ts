// One agent a state directory: two would take each other's batches and sequence numbers. A lock of SQLite on an empty file of its
// own: the system gives it back however the process ends, it needs no room on a full disk, and it holds between containers.
import { Database, SQLiteError } from 'bun:sqlite'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { giveToOwner, type StateDir } from './state-dir.ts'

const FILE = 'agent.lock'

export class StateLock {
  readonly #path: string
  #database: Database | null = null

  /** Takes the directory for this process. Throws when another running agent has it. */
  constructor(dir: StateDir) {
    this.#path = join(dir.path, FILE)
    // Where nothing can be written, two cannot take each other's batches.
    if (!dir.isReadOnly) this.take()
  }

  /** Takes it again after `release`; nothing when it is held. */
  take(): void {
    if (this.#database !== null) return
    const database = new Database(this.#path, { create: true })
    try {
      chmodSync(this.#path, 0o600)
      giveToOwner(this.#path)
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
