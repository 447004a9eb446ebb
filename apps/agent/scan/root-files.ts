// Files below a root, which is `/` or a folder that holds another system. Below a folder links are followed as that
// system would follow them, so that none leads out of it. Only regular files are opened, and none is read without a
// bound: a pipe in the place of a database must not be waited for.
import { constants } from 'node:fs'
import { type FileHandle, lstat, open, readdir, readlink, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'

const LINKS_MAX = 40
const PIECE_BYTES = 64 * 1024
const NAMES_MAX = 50_000
const OPEN_TO_READ = constants.O_RDONLY | constants.O_NONBLOCK

const isAbsent = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')

export class RootFiles {
  readonly #root: string

  constructor(root: string) {
    this.#root = resolve(root)
  }

  /** Whether the files are those of this host, and so belong to the kernel that runs. */
  get isOwnHost(): boolean {
    return this.#root === '/'
  }

  /** Where a path of the system lies on this host. Rejects when links go in circles. */
  async locate(path: string): Promise<string> {
    if (this.isOwnHost) return path
    const pending = path.split('/')
    let found: string[] = []
    for (let links = 0; pending.length > 0; ) {
      const part = pending.shift()!
      if (part === '' || part === '.') continue
      if (part === '..') {
        found.pop()
        continue
      }
      const target = await readlink(join(this.#root, ...found, part)).catch(() => null)
      if (target === null) {
        found.push(part)
        continue
      }
      if (++links > LINKS_MAX) throw new Error(`too many links on the way to ${path}`)
      if (target.startsWith('/')) found = []
      pending.unshift(...target.split('/'))
    }
    return join(this.#root, ...found)
  }

  /** Whether something is there, readable or not. */
  async exists(path: string): Promise<boolean> {
    try {
      await lstat(await this.locate(path))
      return true
    } catch (error) {
      return !isAbsent(error)
    }
  }

  /** Whether a regular file is there, rather than a folder, a pipe or a device. */
  async isRegular(path: string): Promise<boolean> {
    try {
      return (await stat(await this.locate(path))).isFile()
    } catch {
      return false
    }
  }

  /** Modification time, size and identity of what is there, as one text to compare; empty when there is nothing. */
  async stamp(path: string): Promise<string> {
    try {
      const { mtimeMs, size, ino } = await stat(await this.locate(path))
      return `${mtimeMs}:${size}:${ino}`
    } catch {
      return ''
    }
  }

  /** When it was modified last, ms; 0 when there is nothing. */
  async modifiedAtMs(path: string): Promise<number> {
    try {
      return (await stat(await this.locate(path))).mtimeMs
    } catch {
      return 0
    }
  }

  /** The size of a file in bytes; 0 when there is none. */
  async size(path: string): Promise<number> {
    try {
      return (await stat(await this.locate(path))).size
    } catch {
      return 0
    }
  }

  /** The names in a folder, sorted; none when there is no such folder. Rejects when it cannot be read. */
  async names(path: string): Promise<readonly string[]> {
    try {
      const names = await readdir(await this.locate(path))
      if (names.length > NAMES_MAX) throw new Error(`${path} holds more than ${NAMES_MAX} names`)
      return names.sort()
    } catch (error) {
      if (isAbsent(error)) return []
      throw error
    }
  }

  /**
   * The bytes of a file, a piece at a time; a piece is only good until the next one. Rejects when the file cannot be
   * read or is longer than `bytesMax`.
   */
  async *pieces(path: string, bytesMax: number): AsyncGenerator<Uint8Array> {
    const file: FileHandle = await open(await this.locate(path), OPEN_TO_READ)
    try {
      const state = await file.stat()
      if (!state.isFile()) throw new Error(`${path} is no regular file`)
      // Files of the kernel have no size before they are read.
      if (state.size > bytesMax) throw new Error(`${path} is longer than ${bytesMax} bytes`)
      const buffer = new Uint8Array(PIECE_BYTES)
      for (let total = 0; ; ) {
        const { bytesRead } = await file.read(buffer, 0, buffer.length)
        if (bytesRead === 0) return
        total += bytesRead
        if (total > bytesMax) throw new Error(`${path} is longer than ${bytesMax} bytes`)
        yield buffer.subarray(0, bytesRead)
      }
    } finally {
      await file.close()
    }
  }

  /** The text of a file; null when it is not there, cannot be read, or is longer than `bytesMax`. */
  async text(path: string, bytesMax = PIECE_BYTES): Promise<string | null> {
    const decoder = new TextDecoder()
    let text = ''
    try {
      for await (const piece of this.pieces(path, bytesMax)) text += decoder.decode(piece, { stream: true })
      return text + decoder.decode()
    } catch {
      return null
    }
  }
}
