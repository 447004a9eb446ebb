// The directory that a process keeps its files in: made when it is not there, and refused in words that say what to do.
import { accessSync, constants, mkdirSync } from 'node:fs'
import { codeOf } from '../../core/config/address.ts'

/** True of an error of the file system or of SQLite that says that the disk is full, or the quota used up. */
export const isNoRoom = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT', 'SQLITE_FULL'].some(code => code === codeOf(error))

/** What an operator is told of a directory that cannot be made or written; null for a code that says nothing more. */
export function directoryAdvice(code: unknown): string | null {
  if (code === 'EEXIST' || code === 'ENOTDIR') return 'it is a file, or lies below one; name a directory'
  if (code === 'EACCES' || code === 'EPERM') return 'this user may not write there; give it the directory'
  if (code === 'EROFS') return 'its file system is mounted read-only'
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'there is no room left on its file system'
  return null
}

/** Makes the directory, mode 0700. Throws where it cannot be made or written, with the key, the path and why. */
export function makeDataDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    accessSync(path, constants.W_OK | constants.X_OK)
  } catch (error) {
    const reason = directoryAdvice(codeOf(error)) ?? (error instanceof Error ? error.message : String(error))
    throw new Error(`data_dir = ${path} cannot be used: ${reason}`, { cause: error })
  }
}
