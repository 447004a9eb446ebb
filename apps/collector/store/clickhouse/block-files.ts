// The embedded engine reads binary input from files only. They have no name where the system knows such files: nobody
// else can link, make or read one beforehand, and they go with the process however it ends. They lie in memory where
// there is room for them, and are used again, so that their pages need not be made anew for every block.
import {
  closeSync,
  constants,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { codeOf } from '../../../../core/config/address.ts'

const SHARED_MEMORY = '/dev/shm'
/** Linux: a file in a directory, without a name in it. Node's constants leave it out. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY

type BlockFile = { readonly path: string; readonly descriptor: number; readonly isNamed: boolean }

type BlockFiles = {
  /** A file that holds the block, for the engine to read at its path. */
  write(block: Uint8Array): BlockFile
  /** The engine has read it. */
  release(file: BlockFile): void
  /** For one that the engine could not read: the next block goes into a new one. */
  remove(file: BlockFile): void
  close(): void
}

/**
 * A file without a name, which this process reads and writes at a path of its own; null where the system has no such
 * files.
 */
function createUnnamed(directory: string): BlockFile | null {
  if (process.platform !== 'linux') return null
  let descriptor: number
  try {
    descriptor = openSync(directory, O_TMPFILE | constants.O_RDWR, 0o600)
  } catch {
    // No such directory, or a file system that does not know them.
    return null
  }
  const path = `/proc/self/fd/${descriptor}`
  if (existsSync(path)) return { path, descriptor, isNamed: false }
  closeSync(descriptor)
  return null
}

/** A file in a directory that only this user may enter. */
function createNamed(directory: string): BlockFile {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, `${process.pid}-${crypto.randomUUID()}.native`)
  return { path, descriptor: openSync(path, 'wx', 0o600), isNamed: true }
}

/** What a killed process left in the directory of named files. */
function removeLeftovers(directory: string): void {
  if (!existsSync(directory)) return
  for (const name of readdirSync(directory))
    if (!name.startsWith(`${process.pid}-`)) rmSync(join(directory, name), { force: true })
}

/** The files of a store whose data lie in `dataDirectory`. */
export function openBlockFiles(dataDirectory: string): BlockFiles {
  const named = join(dataDirectory, 'blocks')
  removeLeftovers(named)
  const free: BlockFile[] = []
  let isInMemory = true
  const create = (): BlockFile => {
    const inMemory = isInMemory ? createUnnamed(SHARED_MEMORY) : null
    isInMemory = inMemory !== null
    return inMemory ?? createUnnamed(dataDirectory) ?? createNamed(named)
  }
  const remove = (file: BlockFile): void => {
    closeSync(file.descriptor)
    if (file.isNamed) rmSync(file.path, { force: true })
  }
  const write = (block: Uint8Array): BlockFile => {
    const file = free.pop() ?? create()
    try {
      for (let at = 0; at < block.length; ) at += writeSync(file.descriptor, block, at, block.length - at, at)
      ftruncateSync(file.descriptor, block.length)
      return file
    } catch (error) {
      remove(file)
      if (codeOf(error) !== 'ENOSPC' || !isInMemory) throw error
      // The memory is too small for blocks, as it may be in a container: from now on they lie beside the data.
      for (const other of free.splice(0)) remove(other)
      isInMemory = false
      return write(block)
    }
  }
  return {
    write,
    release: (file: BlockFile): void => {
      free.push(file)
    },
    remove,
    close: (): void => {
      for (const file of free.splice(0)) remove(file)
    },
  }
}
