// The folder of database files (MAT-070 to 072): `<version>.sqlite`, of which the last two are kept, and
// `current.json`, which names the one in use and the one before. A new file is written under another name, then
// renamed, then named by `current.json`: a kill at any point leaves the old version or the new one. A command and a
// running matcher share it through a lock.
import { Database, SQLiteError } from 'bun:sqlite'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile, syncPath } from '../../files/replace-file.ts'
import { checkedVersion } from './reader.ts'
import { isObject, textOf } from './sources/source.ts'

export type DatabaseVersion = { readonly version: number; readonly file: string }

type Pointer = {
  readonly current: number
  /** The one in use before it, 0 for none; null where an earlier program wrote the file, which did not say. */
  readonly previous: number | null
  /** The greatest version ever made or imported here: later ones are greater (MAT-070). */
  readonly highest: number
}

const POINTER = 'current.json'
const NOTES = 'update.json'
const DOWNLOADS = 'downloads-'
const DOWNLOADS_KEPT_MS = 24 * 3_600_000
const LOCK_WAIT_MS = 100
const SCRATCH = 'scratch-'
const VERSION_FILE = /^(\d{10,11})\.sqlite$/

/** What the last update came to, beside the database: a source that fails changes no file (MAT-064). */
type UpdateNotes = {
  readonly checkedAtMs: number
  /** Source → why it was not taken last time. */
  readonly faults: Readonly<Record<string, string>>
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return null
  }
}

const numberOf = (value: unknown): number => (typeof value === 'number' && Number.isSafeInteger(value) ? value : 0)

export class DatabaseVersions {
  constructor(readonly path: string) {}

  fileOf(version: number): string {
    return join(this.path, `${version}.sqlite`)
  }

  private pointer(): Pointer {
    const value = readJson(join(this.path, POINTER))
    if (!isObject(value)) return { current: 0, previous: null, highest: 0 }
    const previous = value.previous === undefined ? null : numberOf(value.previous)
    return { current: numberOf(value.current), previous, highest: numberOf(value.highest) }
  }

  private versions(): number[] {
    const names = existsSync(this.path) ? readdirSync(this.path) : []
    return names
      .flatMap(name => VERSION_FILE.exec(name)?.[1] ?? [])
      .map(Number)
      .toSorted((a, b) => b - a)
  }

  /** The version in use; null when there is none, or its file is gone. */
  current(): DatabaseVersion | null {
    const { current } = this.pointer()
    const file = this.fileOf(current)
    return current > 0 && existsSync(file) ? { version: current, file } : null
  }

  /** The version that a rollback goes to: the one in use before, and no file that a killed import left unnamed. */
  other(): DatabaseVersion | null {
    const { current, previous } = this.pointer()
    const version = this.versions().find(each => each !== current && (previous ?? each) === each)
    return version === undefined ? null : { version, file: this.fileOf(version) }
  }

  highest(): number {
    const { current, highest } = this.pointer()
    return Math.max(current, highest)
  }

  /** The number of the next version: the day, then a count, and greater than every one before (MAT-070). */
  nextVersion(nowMs: number): number {
    const day = Number(new Date(nowMs).toISOString().slice(0, 10).replaceAll('-', ''))
    return Math.max(day * 100 + 1, this.highest() + 1, (this.versions()[0] ?? 0) + 1)
  }

  notes(): UpdateNotes {
    const value = readJson(join(this.path, NOTES))
    if (!isObject(value) || !isObject(value.faults)) return { checkedAtMs: 0, faults: {} }
    const faults = Object.entries(value.faults).map(([source, fault]) => [source, textOf(fault)])
    return { checkedAtMs: numberOf(value.checkedAtMs), faults: Object.fromEntries(faults) }
  }

  writeNotes(notes: UpdateNotes): void {
    replaceFile(join(this.path, NOTES), JSON.stringify(notes))
  }

  /** An empty folder for files of an import, which the next one removes. To be called with the lock. */
  scratch(): string {
    this.removeScratch()
    // A name of its own: the process of a killed import may still write into the folder that it was given.
    const path = join(this.path, `${SCRATCH}${randomUUID()}`)
    mkdirSync(path, { recursive: true, mode: 0o700 })
    return path
  }

  /** An empty folder for downloads of one update, which need no lock. Whoever asked for it removes it. */
  downloads(): string {
    mkdirSync(this.path, { recursive: true, mode: 0o700 })
    const path = join(this.path, `${DOWNLOADS}${randomUUID()}`)
    mkdirSync(path, { mode: 0o700 })
    return path
  }

  /** Makes a whole, synced file the version in use. To be called with the lock. */
  switchTo(written: string, version: number): DatabaseVersion {
    const file = this.fileOf(version)
    if (checkedVersion(written) !== version) throw new Error('the file of the import has another version than its name')
    const previous = (this.current() ?? this.other())?.version ?? 0
    renameSync(written, file)
    syncPath(this.path)
    this.point({ current: version, previous, highest: Math.max(version, this.highest()) })
    this.clean()
    return { version, file }
  }

  /** Goes back to the other version that is kept. To be called with the lock. */
  rollback(): DatabaseVersion {
    const other = this.other()
    if (other === null) throw new Error('there is no other version to go back to')
    if (checkedVersion(other.file) !== other.version) throw new Error('the other version is damaged')
    this.point({ current: other.version, previous: this.pointer().current, highest: this.highest() })
    return other
  }

  private point(pointer: Pointer): void {
    replaceFile(join(this.path, POINTER), JSON.stringify(pointer), { isDurable: true })
  }

  /**
   * Removes all but the version in use and the one before, and what a killed import left. While none is in use no file
   * of a version goes. To be called with the lock.
   */
  clean(): void {
    const { current } = this.pointer()
    const other = this.other()?.version
    for (const version of current === 0 ? [] : this.versions())
      if (version !== current && version !== other) rmSync(this.fileOf(version), { force: true })
    this.removeScratch()
  }

  /** The same without the lock: an import that runs cleans itself. */
  cleanUnlessBusy(): void {
    if (!existsSync(this.path)) return
    try {
      const lock = this.tryLock()
      try {
        this.clean()
      } finally {
        lock.close()
      }
    } catch (error) {
      if (!(error instanceof ImportRunning)) throw error
    }
  }

  private removeScratch(): void {
    for (const name of readdirSync(this.path))
      if (name.startsWith(SCRATCH) || (name.startsWith(DOWNLOADS) && this.isOld(name)))
        rmSync(join(this.path, name), { recursive: true, force: true })
  }

  /** No update downloads for so long: what made it was killed. */
  private isOld(name: string): boolean {
    return Date.now() - statSync(join(this.path, name)).mtimeMs > DOWNLOADS_KEPT_MS
  }

  /**
   * Runs one import at a time, of this process or another. Waits for another one until `waitMs` are over, and throws
   * ImportRunning then.
   */
  async exclusively<T>(work: () => Promise<T>, waitMs = 0): Promise<T> {
    const lock = await this.lock(performance.now() + waitMs)
    try {
      return await work()
    } finally {
      lock.close()
    }
  }

  private async lock(lateAtMs: number): Promise<Database> {
    for (;;) {
      try {
        return this.tryLock()
      } catch (error) {
        if (!(error instanceof ImportRunning) || performance.now() > lateAtMs) throw error
      }
      await Bun.sleep(LOCK_WAIT_MS)
    }
  }

  private tryLock(): Database {
    mkdirSync(this.path, { recursive: true, mode: 0o700 })
    const lock = new Database(join(this.path, 'import.lock'), { create: true })
    try {
      lock.run('PRAGMA busy_timeout = 0')
      lock.run('PRAGMA locking_mode = EXCLUSIVE')
      lock.run('BEGIN EXCLUSIVE')
    } catch (error) {
      lock.close()
      if (error instanceof SQLiteError && error.code === 'SQLITE_BUSY')
        throw new ImportRunning('another import is running on this directory; try again when it has ended')
      throw error
    }
    return lock
  }
}

export class ImportRunning extends Error {}

/** Gives an unpacked file another version, before it is in use: an older bundle that is forced gets a greater one. */
export function setVersion(path: string, version: number): void {
  const database = new Database(path)
  try {
    database.query("update meta set value = ? where key = 'db_version'").run(String(version))
  } finally {
    database.close()
  }
  syncPath(path)
}
