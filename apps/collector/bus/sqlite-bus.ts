// The bus on one machine: a SQLite file in WAL mode. Entries that arrive within a few milliseconds are one group: one row, one
// commit, one sync of the disk; a publisher hears of success only after that sync.
import { Database } from 'bun:sqlite'
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { BusGroup, BusReader, BusStats, BusWriter, PublishRefusal } from './bus.ts'

const FORMAT_VERSION = 1
const GROUP_BYTES_MAX = 4 * 1024 * 1024
const READ_ROWS_MAX = 64
/** Below this much free disk the bus refuses instead of failing in mid-write. */
const FREE_BYTES_MIN = 64 * 1024 * 1024

type GroupRow = { first: number; count: number; bytes: Uint8Array }

function openDatabase(path: string): Database {
  const database = new Database(path, { create: true, strict: true })
  database.run('PRAGMA busy_timeout = 10000')
  database.run('PRAGMA page_size = 16384')
  database.run('PRAGMA journal_mode = WAL')
  // FULL syncs the log at every commit: an acknowledged batch survives a power cut, not only a kill.
  database.run('PRAGMA synchronous = FULL')
  database.run('PRAGMA wal_autocheckpoint = 2000')
  database
    .transaction(() => {
      const version = database.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
      if (version > FORMAT_VERSION)
        throw new Error(
          `cannot open bus ${path}: it is of format ${version}, this program knows ${FORMAT_VERSION}; use the newer program`,
        )
      database.run(
        'CREATE TABLE IF NOT EXISTS groups (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, size INTEGER NOT NULL, at_ms INTEGER NOT NULL, bytes BLOB NOT NULL)',
      )
      database.run('CREATE TABLE IF NOT EXISTS consumers (name TEXT PRIMARY KEY, position INTEGER NOT NULL)')
      database.run('CREATE TABLE IF NOT EXISTS head (id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL)')
      database.run('INSERT OR IGNORE INTO head (id, last) VALUES (1, 0)')
      database.run(`PRAGMA user_version = ${FORMAT_VERSION}`)
    })
    .immediate()
  return database
}

type Pending = { readonly entry: Uint8Array; readonly settle: (refusal: PublishRefusal | null) => void }

export type SqliteBusOptions = {
  readonly path: string
  /** The bound: bytes and age of what at least one consumer has not passed. */
  readonly bytesMax: number
  readonly ageMaxMs: number
  /** How long the first entry of a group waits for others. */
  readonly groupWaitMs: number
  readonly nowMs: () => number
  /** Told after every commit, so that readers in this process need not poll. */
  readonly onPublished: () => void
  readonly onError: (error: unknown) => void
}

/** The writing side; one a file. */
export class SqliteBusWriter implements BusWriter {
  private readonly database: Database
  private readonly options: SqliteBusOptions
  private pending: Pending[] = []
  private pendingBytes = 0
  private timer: ReturnType<typeof setTimeout> | null = null
  private last: number
  /** Groups that are on disk, oldest first: last position, size, time. Trimmed as consumers pass. */
  private held: { last: number; size: number; atMs: number }[] = []
  private heldFrom = 0
  private heldBytes = 0
  private trimCheckedAtMs = 0
  private freeBytes = Number.POSITIVE_INFINITY

  constructor(options: SqliteBusOptions) {
    this.options = options
    this.database = openDatabase(options.path)
    this.last = this.database.query<{ last: number }, []>('SELECT last FROM head').get()!.last
    const rows = this.database
      .query<{ last: number; size: number; atMs: number }, []>(
        'SELECT first + count - 1 AS last, size, at_ms AS atMs FROM groups ORDER BY first',
      )
      .all()
    for (const row of rows) {
      this.held.push(row)
      this.heldBytes += row.size
    }
  }

  publish(_serverId: string, entry: Uint8Array): Promise<PublishRefusal | null> {
    if (this.isFull()) return Promise.resolve('full')
    return new Promise(settle => {
      this.pending.push({ entry, settle })
      this.pendingBytes += entry.length
      if (this.pendingBytes >= GROUP_BYTES_MAX) this.flush()
      else this.timer ??= setTimeout(() => this.flush(), this.options.groupWaitMs)
    })
  }

  private isFull(): boolean {
    const nowMs = this.options.nowMs()
    if (nowMs - this.trimCheckedAtMs >= 1000) {
      this.trimCheckedAtMs = nowMs
      this.forgetPassed()
      const disk = statfsSync(dirname(this.options.path))
      this.freeBytes = disk.bavail * disk.bsize
    }
    const oldest = this.held[this.heldFrom]
    return (
      this.heldBytes + this.pendingBytes >= this.options.bytesMax ||
      this.freeBytes < FREE_BYTES_MIN ||
      (oldest !== undefined && nowMs - oldest.atMs > this.options.ageMaxMs)
    )
  }

  private passedByAll(): number {
    const row = this.database
      .query<{ position: number | null }, []>('SELECT min(position) AS position FROM consumers')
      .get()
    return row?.position ?? 0
  }

  private forgetPassed(): void {
    const passed = this.passedByAll()
    while (this.heldFrom < this.held.length && this.held[this.heldFrom]!.last <= passed)
      this.heldBytes -= this.held[this.heldFrom++]!.size
    if (this.heldFrom > 1024 && this.heldFrom * 2 > this.held.length) {
      this.held = this.held.slice(this.heldFrom)
      this.heldFrom = 0
    }
  }

  /** Commits what is pending as one group and settles its publishers. */
  private flush(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    const group = this.pending
    if (group.length === 0) return
    const bytes = new Uint8Array(this.pendingBytes)
    let at = 0
    for (const { entry } of group) {
      bytes.set(entry, at)
      at += entry.length
    }
    this.pending = []
    this.pendingBytes = 0
    const first = this.last + 1
    const last = this.last + group.length
    const atMs = this.options.nowMs()
    let refusal: PublishRefusal | null = null
    try {
      this.commit(first, group.length, bytes, atMs, last)
      this.last = last
      this.held.push({ last, size: bytes.length, atMs })
      this.heldBytes += bytes.length
    } catch (error) {
      refusal = 'failed'
      this.options.onError(error)
    }
    for (const { settle } of group) settle(refusal)
    if (refusal === null) this.options.onPublished()
  }

  private commit(first: number, count: number, bytes: Uint8Array, atMs: number, last: number): void {
    this.database.run('BEGIN IMMEDIATE')
    try {
      this.database
        .query('INSERT INTO groups (first, count, size, at_ms, bytes) VALUES (?, ?, ?, ?, ?)')
        .run(first, count, bytes.length, atMs, bytes)
      this.database.query('UPDATE head SET last = ?').run(last)
      this.database.run('COMMIT')
    } catch (error) {
      if (this.database.inTransaction) this.database.run('ROLLBACK')
      throw error
    }
  }

  async stats(): Promise<BusStats> {
    this.forgetPassed()
    const oldest = this.held[this.heldFrom]
    return {
      lagEntries: this.last - Math.min(this.passedByAll(), this.last),
      bytes: this.heldBytes,
      oldestAtMs: oldest?.atMs ?? null,
    }
  }

  async close(): Promise<void> {
    this.flush()
    this.database.close()
  }
}

/** A reading side: one connection a thread. */
export class SqliteBusReader implements BusReader {
  readonly partitions = [0]
  private readonly database: Database

  /** `consumers`: every consumer that must exist before anything may be removed. */
  constructor(path: string, consumers: readonly string[]) {
    this.database = openDatabase(path)
    const insert = this.database.query('INSERT OR IGNORE INTO consumers (name, position) VALUES (?, 0)')
    for (const name of consumers) insert.run(name)
  }

  async read(partition: number, position: number, bytesMax: number): Promise<BusGroup[]> {
    const rows = this.database.query<GroupRow, [number]>(
      `SELECT first, count, bytes FROM groups WHERE first > ? ORDER BY first LIMIT ${READ_ROWS_MAX}`,
    )
    const groups: BusGroup[] = []
    let bytes = 0
    for (const row of rows.iterate(position)) {
      groups.push({ partition, firstPosition: row.first, count: row.count, bytes: row.bytes })
      bytes += row.bytes.length
      if (bytes >= bytesMax) break
    }
    return groups
  }

  async lastPosition(): Promise<number> {
    return this.database.query<{ last: number }, []>('SELECT last FROM head').get()!.last
  }

  async passed(consumer: string): Promise<number> {
    return (
      this.database.query<{ position: number }, [string]>('SELECT position FROM consumers WHERE name = ?').get(consumer)
        ?.position ?? 0
    )
  }

  async pass(consumer: string, _partition: number, position: number): Promise<void> {
    this.database
      .transaction(() => {
        this.database
          .query(
            'INSERT INTO consumers (name, position) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET position = max(position, excluded.position)',
          )
          .run(consumer, position)
        const passed = this.database
          .query<{ position: number }, []>('SELECT min(position) AS position FROM consumers')
          .get()!.position
        this.database.query('DELETE FROM groups WHERE first + count - 1 <= ? AND first <= ?').run(passed, passed)
      })
      .immediate()
  }

  async close(): Promise<void> {
    this.database.close()
  }
}
