// The agent's own files: token, config, seq, status.json and the folder buffer/, readable by its user only (decision
// G-61). A file is replaced in one step, so that a crash leaves the old content or the new, never half.
import { randomUUID } from 'node:crypto'
import { chmodSync, constants, lchownSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type FileOwner, ownerForFolder, replaceFile } from '../../files/replace-file.ts'

const DIRECTORY_MODE = 0o700

/** Sequence numbers are taken from the disk in blocks, so that one write serves many batches. */
const SEQ_BLOCK = 1000

/** No link is followed and no pipe waited for: who owns the folder could lead root to any file. */
const READ_HERE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

export class StateDir {
  readonly path: string

  /** The user of the folder where root works in it beside an agent of that user; null for who runs this process. */
  readonly owner: FileOwner | null

  /** The file system is read-only, as after a fault of the disk: a host that must stay visible, from memory. */
  readonly isReadOnly: boolean

  /** Opens the directory, making it when it is not there. Throws when its permissions do not let this user write. */
  constructor(path: string) {
    this.path = path
    mkdirSync(path, { recursive: true, mode: DIRECTORY_MODE })
    this.owner = ownerForFolder(path)
    this.isReadOnly = !makePrivate(path)
  }

  /** The folder for buffered batches, made when it is not there. */
  bufferPath(): string {
    const path = join(this.path, 'buffer')
    const isMade = mkdirSync(path, { recursive: true, mode: DIRECTORY_MODE }) !== undefined
    if (isMade && this.owner) lchownSync(path, this.owner.uid, this.owner.gid)
    return path
  }

  /** Forgets what waits to be sent. */
  clearBuffer(): void {
    rmSync(join(this.path, 'buffer'), { recursive: true, force: true })
  }

  /** The text of a file, or null when it is not there. */
  read(name: string): string | null {
    try {
      const path = join(this.path, name)
      return readFileSync(path, this.owner ? { encoding: 'utf8', flag: READ_HERE } : 'utf8')
    } catch (error) {
      if (isNotFound(error)) return null
      throw error
    }
  }

  /** Writes a file with mode 0600 in one step. `isDurable` waits for the disk: for what must survive a power cut. */
  write(name: string, text: string, isDurable = false): void {
    replaceFile(join(this.path, name), text, { isDurable, owner: this.owner })
  }

  remove(name: string): void {
    rmSync(join(this.path, name), { force: true })
  }

  /** What identifies this host where the system has no machine-id: made once and kept. */
  madeMachineId(): string {
    const known = this.read('machine-id')?.trim()
    if (known) return known
    const made = randomUUID().replaceAll('-', '')
    this.write('machine-id', `${made}\n`, true)
    return made
  }
}

/**
 * Numbers that only grow, over restarts and crashes too: a crash skips the rest of a block. A new block never starts
 * below the clock, so that they grow even over the restarts of a host whose disk takes nothing.
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

  /**
   * The next number. While the disk refuses a new block it is asked for again with every number: the agent must stay
   * visible.
   */
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

export function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
