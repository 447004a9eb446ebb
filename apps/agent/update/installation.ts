// The executable of this agent on disk, and how it gives way to another version: the old one stays beside the new one
// until that has proved itself, and the process becomes the new program in place, so that whoever started it sees no
// end.
import { ptr } from 'bun:ffi'
import {
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { syncPath } from '../../files/replace-file.ts'
import { cLibrary } from '../../process/c-library.ts'

export class Installation {
  readonly executable: string
  readonly #args: readonly string[]

  /** `args` are those that this process was started with; another version is started with the same. */
  constructor(executable: string, args: readonly string[]) {
    this.executable = executable
    this.#args = args
  }

  get downloadPath(): string {
    return `${this.executable}.download`
  }

  get stagedPath(): string {
    return `${this.executable}.new`
  }

  get previousPath(): string {
    return `${this.executable}.previous`
  }

  /** Removes what an interrupted download left. */
  clearStaging(): void {
    for (const path of [this.downloadPath, this.stagedPath]) rmSync(path, { force: true })
  }

  /** Gives the staged file the mode of the executable. */
  makeStagedExecutable(): void {
    const descriptor = openSync(this.stagedPath, constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      fchmodSync(descriptor, (statSync(this.executable).mode & 0o7777) | 0o500)
    } finally {
      closeSync(descriptor)
    }
  }

  /** Puts the staged version in place; the old one stays as `.previous`. At no instant is there no executable. */
  replace(): void {
    rmSync(this.previousPath, { force: true })
    try {
      linkSync(this.executable, this.previousPath)
    } catch {
      // A file system without hard links.
      copyFileSync(this.executable, this.previousPath, constants.COPYFILE_EXCL)
    }
    renameSync(this.stagedPath, this.executable)
    syncPath(dirname(this.executable))
  }

  /** Puts the old version back. Throws when there is none. */
  restore(): void {
    renameSync(this.previousPath, this.executable)
    syncPath(dirname(this.executable))
  }

  forgetPrevious(): void {
    rmSync(this.previousPath, { force: true })
  }

  /** Starts what is installed as a child process, with more arguments for one on trial. */
  start(...more: readonly string[]): ReturnType<typeof Bun.spawn> {
    return Bun.spawn([this.executable, ...this.#args, ...more], {
      stdin: 'ignore',
      stdout: 'inherit',
      stderr: 'inherit',
    })
  }

  /**
   * Becomes what is installed: execv(3), the process id stays. Returns, with the reason, only when that is impossible.
   */
  become(): string {
    const strings = [this.executable, ...this.#args].map(text => Buffer.from(`${text}\0`))
    const argv = new BigUint64Array([...strings.map(text => BigInt(ptr(text))), 0n])
    const library = cLibrary({ execv: { args: ['ptr', 'ptr'], returns: 'i32' } })
    if (library === null) return 'there is no C library to call'
    library.symbols.execv(ptr(strings[0]!), ptr(argv))
    return 'the system refuses to run the executable'
  }
}
