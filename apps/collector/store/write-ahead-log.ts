// SQLite files that several processes open side by side.
import { type Database, SQLiteError } from 'bun:sqlite'

const WAIT_MS = 10_000
const RETRY_MS = 10

/**
 * Gives a database a write-ahead log, and lets it wait for the locks of others. While another process writes a file
 * that has no such log yet, the change is refused at once, whatever the busy timeout is: it is tried again for as long.
 */
export function useWriteAheadLog(database: Database): void {
  database.run(`PRAGMA busy_timeout = ${WAIT_MS}`)
  const endsAtMs = performance.now() + WAIT_MS
  for (;;) {
    try {
      database.run('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      const isBusy = error instanceof SQLiteError && error.code === 'SQLITE_BUSY'
      if (!isBusy || performance.now() > endsAtMs) throw error
    }
    Bun.sleepSync(RETRY_MS)
  }
}
