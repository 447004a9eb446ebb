// The folder that holds all data of a site: one process at a time, mode 0700, with its format and its secrets.
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { codeOf } from '../../core/config/address.ts'
import { lockFile, type ProcessLock } from '../collector/store/process-lock.ts'
import { directoryAdvice } from '../files/data-directory.ts'
import { replaceFile } from '../files/replace-file.ts'

const FORMAT_VERSION = 1
const MIB = 1024 * 1024
/** A new site makes a database cluster and a samples store. */
const NEW_FREE_MIB = 256
/** One that was there runs on with less, and must come back after a reboot. */
const OLD_FREE_MIB = 32

/** A fault that the operator can correct; only its message is shown. */
export class StartFault extends Error {}

export type DataDir = {
  readonly path: string
  readonly of: (...names: string[]) => string
  /** Secrets by name; empty on the first start. */
  readonly secrets: Readonly<Record<string, string>>
  saveSecrets(secrets: Readonly<Record<string, string>>): void
  unlock(): void
}

/** Opens the folder, making it when it is not there, and holds its lock until `unlock` or the end of the process. */
export function openDataDir(given: string): DataDir {
  const path = resolve(given)
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    takeOwnership(path)
    chmodSync(path, 0o700)
  } catch (error) {
    if (error instanceof StartFault) throw error
    throw new StartFault(`cannot use the data directory ${path}: ${directoryAdvice(codeOf(error)) ?? reason(error)}`)
  }
  const lock = takeLock(path)
  try {
    checkSpace(path, isNew(path) ? NEW_FREE_MIB : OLD_FREE_MIB)
    checkFormat(path)
    return {
      path,
      of: (...names) => join(path, ...names),
      secrets: readSecrets(path),
      saveSecrets: secrets =>
        replaceFile(join(path, 'secrets.json'), JSON.stringify(secrets, null, 2), { isDurable: true }),
      unlock: () => lock.release(),
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

/**
 * Root takes ownership of an empty folder only. Another user could have put links into a filled one, and root would
 * then write through them.
 */
function takeOwnership(path: string): void {
  const { uid } = statSync(path)
  if (process.geteuid?.() !== 0 || uid === 0) return
  if (readdirSync(path).some(name => name !== 'lost+found'))
    throw new StartFault(
      `the data directory ${path} belongs to user ${uid}: start as that user, or give root another --data-dir`,
    )
  chownSync(path, 0, 0)
}

function takeLock(path: string): ProcessLock {
  try {
    return lockFile(join(path, 'lock'), 'standalone')
  } catch (error) {
    throw new StartFault(reason(error))
  }
}

const isNew = (path: string): boolean => !existsSync(join(path, 'format.json'))

function checkFormat(path: string): void {
  const file = join(path, 'format.json')
  if (isNew(path)) {
    replaceFile(file, JSON.stringify({ format: FORMAT_VERSION }), { isDurable: true })
    return
  }
  const saved: unknown = JSON.parse(readFileSync(file, 'utf8'))
  const format = typeof saved === 'object' && saved !== null && 'format' in saved ? saved.format : undefined
  if (typeof format !== 'number')
    throw new StartFault(`cannot read ${file}: it does not say of which format the data directory is`)
  if (format > FORMAT_VERSION)
    throw new StartFault(
      `the data directory ${path} is of format ${format}, this program knows ${FORMAT_VERSION}: start the newer program; nothing was changed`,
    )
}

function checkSpace(path: string, neededMib: number): void {
  const { bavail, bsize } = statfsSync(path)
  if (bavail * bsize < neededMib * MIB)
    throw new StartFault(
      `the disk of ${path} has ${Math.floor((bavail * bsize) / MIB)} MiB free, at least ${neededMib} MiB are needed: make room, then start again`,
    )
}

function readSecrets(path: string): Readonly<Record<string, string>> {
  const file = join(path, 'secrets.json')
  if (!existsSync(file)) return {}
  const saved: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (typeof saved !== 'object' || saved === null) throw new StartFault(`cannot read ${file}: it is no JSON object`)
  return Object.fromEntries(
    Object.entries(saved).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

export const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error))
