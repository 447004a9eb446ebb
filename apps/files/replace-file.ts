// How every executable writes a file that others read, or that the next start needs: under another name first, then
// renamed, so that a reader sees all of it or nothing. Who may write into the folder can plant a link, a pipe or a file
// of his own under any name there: the file is therefore always a new one (O_EXCL), never reached through a link
// (O_NOFOLLOW), and owner and mode are set on its descriptor.
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
  /** Whose the file becomes, which needs root; null or left out: who runs this process. */
  readonly owner?: FileOwner | null
  /** Waits until content and name are on the disk: for what must survive a power cut. */
  readonly isDurable?: boolean
}

const PRIVATE = 0o600
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
/** O_NONBLOCK: a pipe under the name is refused, not waited for. */
const OWN_FILE = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * Writes a file in one step, by way of `path.tmp`: a path has one writer at a time. Throws when that is impossible;
 * what stood there before stays then, and nothing is left beside it.
 */
export function replaceFile(path: string, content: string | Uint8Array, options: FileOptions = {}): void {
  const temporary = `${path}.tmp`
  // What a killed process left, or somebody planted: only its name goes.
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

/** Writes a file that is not there yet. Throws when anything has its name, be it a link that leads nowhere. */
export function writeNewFile(path: string, content: string | Uint8Array, options: FileOptions = {}): void {
  const descriptor = openSync(path, NEW_FILE, PRIVATE)
  try {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at, bytes.length - at)
    if (options.owner) fchownSync(descriptor, options.owner.uid, options.owner.gid)
    // After the owner: a change of owner takes some permissions away.
    fchmodSync(descriptor, options.mode ?? PRIVATE)
    if (options.isDurable) fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Makes sure that an empty or existing file of ours is at `path`, mode 0600, for what locks it or appends to it. Throws
 * when something else has the name: a link, a pipe, a directory, or a file that has another name too, whose owner and
 * mode are not ours to set.
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
 * To whom a file in this folder is to belong: a command that root runs beside a service of another user leaves files
 * that the service can read. Null where that is who runs this process already.
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

/** For what is left after a fault: the fault is what the caller is to hear of. */
function removeQuietly(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // It was never made.
  }
}
