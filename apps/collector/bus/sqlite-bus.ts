// The bus on one machine: a SQLite file in WAL mode. Entries that arrive within a few milliseconds are one group: one row, one
// commit, one sync of the disk; a publisher hears of success only after that sync.
import { Database, SQLiteError } from 'bun:sqlite'
import { chmodSync, existsSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { lockFile } from '../store/process-lock.ts'
import type { BusGroup, BusReader, BusStats, BusWriter, PublishRefusal } from './bus.ts'

/** 2: `head` is behind the groups, see LAST_POSITION. A file of format 1 is one of format 2 as it stands. */
const FORMAT_VERSION = 2
const PAGE_BYTES = 32 * 1024
const GROUP_BYTES_MAX = 4 * 1024 * 1024
const GROUP_ROOM_BYTES = 256 * 1024
const READ_ROWS_MAX = 64
/** Below this much free disk the bus refuses instead of failing in mid-write. */
const FREE_BYTES_MIN = 64 * 1024 * 1024
/** Passed groups are removed in transactions of about so much: a publisher never waits long for one. */
const REMOVE_BYTES_MAX = 4 * 1024 * 1024
/** Between two of them: a writer that found the file locked looks again in its own time, and must find it free. */
const REMOVE_PAUSE_MS = 5
/** A refusal is noted at most this often. */
const REFUSAL_NOTE_MS = 1000
/** Pages of the log after which a commit also moves them into the file: readers do it early, so that the writer hardly ever does. */
const CHECKPOINT_PAGES = { reader: 250, writer: 2000 } as const
/** 'SVCB': the file is a bus of this product. */
const APPLICATION_ID = 0x53564342

/** The last position: of the groups, or of those that are removed, which `head` keeps. So a commit writes the group and nothing else. */
const LAST_POSITION =
  'SELECT max((SELECT last FROM head), (SELECT ifnull(max(first + count - 1), 0) FROM (SELECT first, count FROM groups ORDER BY first DESC LIMIT 1))) AS last'

type GroupRow = { first: number; count: number; bytes: Uint8Array }

/** Opens the file, which is made when it is missing. Throws in words for the operator when it is no bus that this program knows. */
function openDatabase(path: string, side: 'reader' | 'writer'): Database {
  const isNew = !existsSync(path)
  const database = new Database(path, { create: true, strict: true })
  try {
    if (isNew) chmodSync(path, 0o600)
    database.run('PRAGMA busy_timeout = 10000')
    database.run(`PRAGMA page_size = ${PAGE_BYTES}`)
    database.run('PRAGMA journal_mode = WAL')
    // The writer syncs the log at every commit: an acknowledged batch survives a power cut, not only a kill. What readers note may
    // be lost with the power: then they read again.
    database.run(`PRAGMA synchronous = ${side === 'writer' ? 'FULL' : 'NORMAL'}`)
    database.run(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES[side]}`)
    database.transaction(() => migrate(database)).immediate()
  } catch (error) {
    database.close()
    const code = error instanceof SQLiteError ? error.code : undefined
    const isDamaged = code === 'SQLITE_NOTADB' || code === 'SQLITE_CORRUPT'
    const cause = error instanceof Error ? error.message : String(error)
    throw new Error(
      `cannot open bus ${path}: ${isDamaged ? `it is damaged, or no bus (${cause}); move it away, and batches that nobody has read yet are lost` : cause}`,
      { cause: error },
    )
  }
  return database
}

function migrate(database: Database): void {
  const number = (pragma: string): number => Number(Object.values(database.query(`PRAGMA ${pragma}`).get() ?? {})[0])
  const version = number('user_version')
  const application = number('application_id')
  if (version > FORMAT_VERSION)
    throw new Error(`it is of format ${version}, this program knows ${FORMAT_VERSION}; use the newer program`)
  const tables = database
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .all()
    .map(row => row.name)
  // Files of the first format carry no mark; they are known by their tables.
  if (application !== APPLICATION_ID && tables.length > 0 && !tables.includes('groups'))
    throw new Error('it is the database of something else; name another data_dir')
  database.run(
    'CREATE TABLE IF NOT EXISTS groups (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, size INTEGER NOT NULL, at_ms INTEGER NOT NULL, bytes BLOB NOT NULL)',
  )
  database.run('CREATE TABLE IF NOT EXISTS consumers (name TEXT PRIMARY KEY, position INTEGER NOT NULL)')
  database.run('CREATE TABLE IF NOT EXISTS head (id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL)')
  database.run('INSERT OR IGNORE INTO head (id, last) VALUES (1, 0)')
  database.run('CREATE TABLE IF NOT EXISTS refusal (id INTEGER PRIMARY KEY CHECK (id = 1), at_ms INTEGER NOT NULL)')
  database.run('INSERT OR IGNORE INTO refusal (id, at_ms) VALUES (1, 0)')
  if (application !== APPLICATION_ID) database.run(`PRAGMA application_id = ${APPLICATION_ID}`)
  if (version !== FORMAT_VERSION) database.run(`PRAGMA user_version = ${FORMAT_VERSION}`)
}

export type SqliteBusOptions = {
  readonly path: string
  /** The bound: bytes and age of what at least one consumer has not passed. */
  readonly bytesMax: number
  readonly ageMaxMs: number
  /** Between two commits: entries that come sooner after one wait for the next, together. */
  readonly groupWaitMs: number
  readonly nowMs: () => number
  /** Told after every commit, so that readers in this process need not poll. */
  readonly onPublished: () => void
  readonly onError: (error: unknown) => void
}

const lastPosition = (database: Database): number => database.query<{ last: number }, []>(LAST_POSITION).get()!.last

const writerStatements = (database: Database) => ({
  begin: database.query('BEGIN IMMEDIATE'),
  insert: database.query('INSERT INTO groups (first, count, size, at_ms, bytes) VALUES (?, ?, ?, ?, ?)'),
  commit: database.query('COMMIT'),
})

/** The same bytes with room for at least `byteCount`. */
function grown(bytes: Uint8Array, byteCount: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(2 ** Math.ceil(Math.log2(byteCount)))
  larger.set(bytes)
  return larger
}

/** The writing side; one a file. */
export class SqliteBusWriter implements BusWriter {
  private readonly lock: { readonly release: () => void }
  private readonly database: Database
  private readonly options: SqliteBusOptions
  /** The entries that are pending lie at its start; used again for every group. */
  private group = new Uint8Array(GROUP_ROOM_BYTES)
  private pendingBytes = 0
  private pendingCount = 0
  /** What comes of the group: one promise for all who wait for its commit. */
  private outcome: PromiseWithResolvers<PublishRefusal | null> | null = null
  private timer: ReturnType<typeof setTimeout> | null = null
  /** On the clock of the process. */
  private commitFromMs = 0
  private readonly statements: ReturnType<typeof writerStatements>
  private last: number
  /** Groups that are on disk, oldest first: last position, size, time. Trimmed as consumers pass. */
  private held: { last: number; size: number; atMs: number }[] = []
  private heldFrom = 0
  private heldBytes = 0
  private trimCheckedAtMs = 0
  private refusalNotedAtMs = 0
  private freeBytes = Number.POSITIVE_INFINITY

  constructor(options: SqliteBusOptions) {
    this.options = options
    // A second writer would number its entries as the first does.
    this.lock = lockFile(`${options.path}.lock`, 'ingest')
    this.database = openDatabase(options.path, 'writer')
    this.statements = writerStatements(this.database)
    this.last = lastPosition(this.database)
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
    return this.publishGroup(entry, 1)
  }

  publishGroup(bytes: Uint8Array, count: number): Promise<PublishRefusal | null> {
    if (this.isFull()) {
      this.noteRefusal()
      return Promise.resolve('full')
    }
    const end = this.pendingBytes + bytes.length
    if (end > this.group.length) this.group = grown(this.group, end)
    this.group.set(bytes, this.pendingBytes)
    this.pendingBytes = end
    this.pendingCount += count
    this.outcome ??= Promise.withResolvers()
    const { promise } = this.outcome
    if (end >= GROUP_BYTES_MAX) this.flush()
    else this.timer ??= setTimeout(() => this.flush(), Math.max(0, this.commitFromMs - performance.now()))
    return promise
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

  /** Told to the readers: an agent whose batches were refused is not to be taken for lost (decision G-142). */
  private noteRefusal(): void {
    const atMs = this.options.nowMs()
    if (atMs - this.refusalNotedAtMs < REFUSAL_NOTE_MS) return
    this.refusalNotedAtMs = atMs
    try {
      this.database.query('UPDATE refusal SET at_ms = ?').run(Math.floor(atMs))
    } catch (error) {
      this.options.onError(error)
    }
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

  /** Commits what is pending as one group and tells its publishers. */
  private flush(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    const { outcome, pendingCount: count } = this
    if (!outcome) return
    const bytes = this.group.subarray(0, this.pendingBytes)
    this.outcome = null
    this.pendingBytes = 0
    this.pendingCount = 0
    const first = this.last + 1
    const last = this.last + count
    const atMs = this.options.nowMs()
    let refusal: PublishRefusal | null = null
    try {
      this.commit(first, count, bytes, atMs)
      this.last = last
      this.held.push({ last, size: bytes.length, atMs })
      this.heldBytes += bytes.length
    } catch (error) {
      refusal = 'failed'
      this.options.onError(error)
    }
    this.commitFromMs = performance.now() + this.options.groupWaitMs
    outcome.resolve(refusal)
    if (refusal === null) this.options.onPublished()
  }

  private commit(first: number, count: number, bytes: Uint8Array, atMs: number): void {
    const { begin, insert, commit } = this.statements
    begin.run()
    try {
      insert.run(first, count, bytes.length, atMs, bytes)
      commit.run()
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
    this.lock.release()
  }
}

/** A reading side: one connection a thread. */
export class SqliteBusReader implements BusReader {
  readonly partitions = [0]
  private readonly database: Database
  private readonly removeUpTo
  private removing: Promise<void> | null = null
  private isClosed = false

  /** `consumers`: every consumer that must exist before anything may be removed. */
  constructor(path: string, consumers: readonly string[]) {
    this.database = openDatabase(path, 'reader')
    this.removeUpTo = this.database.transaction((position: number) => {
      this.database.query('UPDATE head SET last = ? WHERE last < ?').run(position, position)
      this.database.query('DELETE FROM groups WHERE first <= ?').run(position)
    })
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
    return lastPosition(this.database)
  }

  async passed(consumer: string): Promise<number> {
    return (
      this.database.query<{ position: number }, [string]>('SELECT position FROM consumers WHERE name = ?').get(consumer)
        ?.position ?? 0
    )
  }

  async pass(consumer: string, _partition: number, position: number): Promise<void> {
    if (position > (await this.passed(consumer)))
      this.database
        .query(
          'INSERT INTO consumers (name, position) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET position = max(position, excluded.position)',
        )
        .run(consumer, position)
    this.removing ??= this.removeAllPassed().finally(() => {
      this.removing = null
    })
    await this.removing
  }

  private async removeAllPassed(): Promise<void> {
    while (!this.isClosed && this.removePassed()) await Bun.sleep(REMOVE_PAUSE_MS)
  }

  /** Removes some groups that every consumer has passed; true when there may be more. One small transaction. */
  private removePassed(): boolean {
    const passed = this.database
      .query<{ position: number | null }, []>('SELECT min(position) AS position FROM consumers')
      .get()?.position
    const groups = this.database
      .query<{ last: number; size: number }, [number]>(
        `SELECT first + count - 1 AS last, size FROM groups WHERE first <= ? ORDER BY first LIMIT ${READ_ROWS_MAX}`,
      )
      .all(passed ?? 0)
    let upTo = 0
    let bytes = 0
    let count = 0
    for (const { last, size } of groups) {
      if (last > (passed ?? 0) || (count > 0 && bytes + size > REMOVE_BYTES_MAX)) break
      upTo = last
      bytes += size
      count++
    }
    if (count > 0) this.removeUpTo.immediate(upTo)
    return count > 0
  }

  /** When the writer last refused an entry because the bus was full; 0 when it never did. */
  async refusedAtMs(): Promise<number> {
    return this.database.query<{ atMs: number }, []>('SELECT at_ms AS atMs FROM refusal').get()?.atMs ?? 0
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.removing?.catch(() => {})
    this.database.close()
  }
}
