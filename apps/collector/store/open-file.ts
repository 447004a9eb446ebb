// Opening a file of SQLite: what goes wrong is said with what the file is, where it is, and what to do.
import { SQLiteError } from 'bun:sqlite'

/** What was wrong, in words that are for the operator already. */
class OpenFault extends Error {}

/** A fault for the operator that `open` of openFile may throw: it is passed on as it is. */
export const openFault = (what: string, path: string, cause: string): Error =>
  new OpenFault(`cannot open ${what} ${path}: ${cause}`)

/** Runs `open`. `whenDamaged` says what to do where the file is damaged, or something else. */
export function openFile<T>(what: string, path: string, whenDamaged: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    if (error instanceof OpenFault) throw error
    const code = error instanceof SQLiteError ? error.code : undefined
    const isDamaged = code === 'SQLITE_NOTADB' || code === 'SQLITE_CORRUPT'
    const cause = error instanceof Error ? error.message : String(error)
    const fault = openFault(what, path, isDamaged ? `it is damaged, or no ${what} (${cause}); ${whenDamaged}` : cause)
    fault.cause = error
    throw fault
  }
}
