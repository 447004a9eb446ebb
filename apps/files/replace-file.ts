// Writes a file that others read, or that the next start needs: first under another name, then renamed, so that a
// reader sees the old content or the new and no mixture. A user who may write into the folder can plant a link, a pipe
// or a file under any name there. So the file is always a new one (O_EXCL), never reached through a link (O_NOFOLLOW),
// and owner and mode are set on its descriptor.
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'

export type FileOwner = { readonly uid: number; readonly gid: number }

type FileOptions = {
  /** Permissions, whatever the umask says; 0600 when left out. */
  readonly mode?: number
  /** The owner to give the file, which needs root; null or left out: the user of this process. */
  readonly owner?: FileOwner | null
  /** Waits until content and name are on the disk: for files that must survive a power failure. */
  readonly isDurable?: boolean
}

const PRIVATE = 0o600
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
/** O_NONBLOCK: a pipe under the name is refused, and opening it does not block. */
const OWN_FILE = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * Writes a file in one step, by way of `path.tmp`, so each path must have only one writer at a time. On failure it
 * throws, the old file stays, and nothing is left beside it.
 */
export function replaceFile(path: string, content: string | Uint8Array, options: FileOptions = {}): void {
  const temporary = `${path}.tmp`
  // A killed process left it, or somebody planted it: only the name is removed.
  removeQuietly(temporary)
  try {
    writeNewFile(temporary, content, options)
    renameSync(temporary, path)
  } catch (error) {
    removeQuietly(temporary)
    throw error
  }
  if (options.isDurable) syncPath(dirname(path))
}

/** Writes a file that does not exist yet. Throws when anything has its name, even a dangling link. */
export function writeNewFile(path: string, content: string | Uint8Array, options: FileOptions = {}): void {
  const descriptor = openSync(path, NEW_FILE, PRIVATE)
  try {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at, bytes.length - at)
    if (options.owner) fchownSync(descriptor, options.owner.uid, options.owner.gid)
    // Set after the owner, since a change of owner clears some permissions.
    fchmodSync(descriptor, options.mode ?? PRIVATE)
    if (options.isDurable) fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Ensures that a regular file of this process is at `path`, mode 0600, for callers that lock it or append to it. Throws
 * when the name belongs to a link, a pipe, a directory, or a file with a second hard link, whose owner and mode must
 * not be changed.
 */
export function ensureOwnFile(path: string, owner: FileOwner | null = null): void {
  const descriptor = openSync(path, OWN_FILE, PRIVATE)
  try {
    const stat = fstatSync(descriptor)
    if (!stat.isFile() || stat.nlink !== 1) throw new Error(`${path} is no file of its own: remove it`)
    if (owner) fchownSync(descriptor, owner.uid, owner.gid)
    fchmodSync(descriptor, PRIVATE)
  } finally {
    closeSync(descriptor)
  }
}

/** Makes a folder when it is not there, and gives it mode and owner. Throws when a link stands in its place. */
export function ensureFolder(path: string, mode: number, owner: FileOwner | null): void {
  mkdirSync(path, { recursive: true })
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    if (owner) fchownSync(descriptor, owner.uid, owner.gid)
    fchmodSync(descriptor, mode)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * The owner for a file in this folder: a command that root runs beside a service of another user must leave files that
 * the service can read. Null when that owner is the user of this process.
 */
export function ownerForFolder(folder: string): FileOwner | null {
  if (process.geteuid?.() !== 0) return null
  const { uid, gid } = statSync(folder)
  return uid === 0 ? null : { uid, gid }
}

/** Waits until a file, or the names in a folder, are on the disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** For clean-up after an error: the caller must get that error, not one of the clean-up. */
function removeQuietly(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // It was never made.
  }
}
