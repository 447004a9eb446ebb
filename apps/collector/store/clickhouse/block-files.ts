// The embedded engine reads binary input only from files. Where the system supports it these files have no name: no
// other user can link, create or read one beforehand, and they vanish with the process however it ends. They lie in
// memory where there is room, and are reused, so that their pages need not be allocated again for every block.
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
/** Creates a file without a name in a directory (Linux). Node's constants lack this flag. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY

type BlockFile = { readonly path: string; readonly descriptor: number; readonly isNamed: boolean }

type BlockFiles = {
  /** A file that holds the block, for the engine to read at its path. */
  write(block: Uint8Array): BlockFile
  /** Called once the engine has read the file. */
  release(file: BlockFile): void
  /** Removes a file that the engine could not read; the next block goes into a new one. */
  remove(file: BlockFile): void
  close(): void
}

/**
 * Creates a file without a name, which this process reads and writes at a path under /proc; null where the system does
 * not support that.
 */
function createUnnamed(directory: string): BlockFile | null {
  if (process.platform !== 'linux') return null
  let descriptor: number
  try {
    descriptor = openSync(directory, O_TMPFILE | constants.O_RDWR, 0o600)
  } catch {
    // The directory does not exist, or its file system does not support such files.
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

/** Removes the files that a killed process left in the directory of named files. */
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
      // The memory is too small for blocks, as it may be in a container: from now on the files lie beside the data.
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
