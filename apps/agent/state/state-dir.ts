// The agent's own files: token, config, seq, status.json and the folder buffer/, readable by its user only (decision G-61).
// A file is replaced in one step, so that a crash leaves the old content or the new, never half.
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

const FILE_MODE = 0o600
const DIRECTORY_MODE = 0o700

/** Sequence numbers are taken from the disk in blocks, so that one write serves many batches. */
const SEQ_BLOCK = 1000

export class StateDir {
  readonly path: string

  /** The file system is read-only, as after a fault of the disk: a machine that must stay visible, from memory. */
  readonly isReadOnly: boolean

  /** Opens the directory, making it when it is not there. Throws when its permissions do not let this user write. */
  constructor(path: string) {
    this.path = path
    mkdirSync(path, { recursive: true, mode: DIRECTORY_MODE })
    this.isReadOnly = !makePrivate(path)
  }

  /** The folder for buffered batches, made when it is not there. */
  bufferPath(): string {
    const path = join(this.path, 'buffer')
    mkdirSync(path, { recursive: true, mode: DIRECTORY_MODE })
    return path
  }

  /** Forgets what waits to be sent. */
  clearBuffer(): void {
    rmSync(join(this.path, 'buffer'), { recursive: true, force: true })
  }

  /** The text of a file, or null when it is not there. */
  read(name: string): string | null {
    try {
      return readFileSync(join(this.path, name), 'utf8')
    } catch (error) {
      if (isNotFound(error)) return null
      throw error
    }
  }

  /** Writes a file with mode 0600 in one step. `isDurable` waits for the disk: for what must survive a power cut. */
  write(name: string, text: string, isDurable = false): void {
    replaceFile(join(this.path, name), text, isDurable)
  }

  remove(name: string): void {
    rmSync(join(this.path, name), { force: true })
  }

  /** What identifies this machine where the system has no machine-id: made once and kept. */
  madeMachineId(): string {
    const known = this.read('machine-id')?.trim()
    if (known) return known
    const made = randomUUID().replaceAll('-', '')
    this.write('machine-id', `${made}\n`, true)
    return made
  }
}

/**
 * Numbers that only grow, over restarts and crashes too: a crash skips the rest of a block. A new block never starts below the
 * clock, so that they grow even over the restarts of a machine whose disk takes nothing.
 */
export class SeqCounter {
  readonly #state: StateDir
  #next: bigint
  #reservedEnd: bigint

  constructor(state: StateDir) {
    this.#state = state
    const text = state.read('seq')?.trim() ?? ''
    this.#next = /^\d{1,19}$/.test(text) ? BigInt(text) : 1n
    this.#reservedEnd = this.#next
  }

  /** The next number. While the disk refuses a new block it is asked for again with every number: the agent must stay visible. */
  take(nowMs: number): bigint {
    if (this.#next < this.#reservedEnd) return this.#next++
    const floor = BigInt(Math.max(0, Math.floor(nowMs)))
    if (this.#next < floor) this.#next = floor
    const end = this.#next + BigInt(SEQ_BLOCK)
    try {
      this.#state.write('seq', `${end}\n`, true)
      this.#reservedEnd = end
    } catch {
      this.#reservedEnd = this.#next
    }
    return this.#next++
  }
}

/** Writes `path` by way of `path.tmp` and a rename. Throws when the disk refuses; nothing is left behind then. */
export function replaceFile(path: string, content: string | Uint8Array, isDurable: boolean): void {
  const temporary = `${path}.tmp`
  try {
    writeWhole(temporary, content, isDurable)
    renameSync(temporary, path)
  } catch (error) {
    removeQuietly(temporary)
    throw error
  }
}

/** False when the file system is read-only. */
function makePrivate(path: string): boolean {
  try {
    chmodSync(path, DIRECTORY_MODE)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EROFS') return false
    throw error
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

function writeWhole(temporary: string, content: string | Uint8Array, isDurable: boolean): void {
  const descriptor = openSync(temporary, 'w', FILE_MODE)
  try {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    giveToOwner(temporary)
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at, bytes.length - at)
    if (isDurable) fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  chmodSync(temporary, FILE_MODE)
}

/** A command that root runs beside an agent of another user leaves files that this agent can read. */
export function giveToOwner(path: string): void {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  if (uid !== 0) chownSync(path, uid, gid)
}

/** Waits until what was written to a file is on the disk. */
export function syncFile(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** The same for the names in a directory: a rename is safe only with it. */
export const syncDirectory = (path: string): void => syncFile(path)

export function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
