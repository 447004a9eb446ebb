// The index that the writer and the readers of a file bus share: which segments exist, which position each consumer has
// passed, and when the bus last refused an entry. A SQLite file in WAL mode, beside the folder of the segments.
import { Database } from 'bun:sqlite'
import { chmodSync, closeSync, existsSync, fdatasyncSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { openFile } from '../store/open-file.ts'
import { useWriteAheadLog } from '../store/write-ahead-log.ts'
import { GROUP_HEADER_BYTES, groupBytes, sealGroup, writeBytes } from './segment.ts'

/**
 * Format 3 keeps groups in segments. Formats 1 and 2 kept them as rows of a table, which are moved into a segment when
 * the bus is opened.
 */
const FORMAT_VERSION = 3
/** 'SVCB': the file is a bus of this product. */
const APPLICATION_ID = 0x53564342

/** A file of the folder, by its number; `first` is the position of the first entry that it holds or will hold. */
export type Segment = { readonly first: number; readonly file: number }

type GroupRow = { first: number; count: number; atMs: number; bytes: Uint8Array }

export class BusIndex {
  private constructor(
    readonly path: string,
    readonly folder: string,
    private readonly database: Database,
  ) {}

  /**
   * Opens the index at `path` and creates it when it is missing. What the writer records survives a power cut. What
   * readers record may be lost in one; they then read those entries again. Throws, with a message for the operator,
   * when the file is not a bus that this program knows.
   */
  static open(path: string, side: 'reader' | 'writer'): BusIndex {
    const isNew = !existsSync(path)
    const folder = join(dirname(path), 'bus-segments')
    return openFile('bus', path, 'move it away, and batches that nobody has read yet are lost', () => {
      const database = new Database(path, { create: true, strict: true })
      try {
        if (isNew) chmodSync(path, 0o600)
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        useWriteAheadLog(database)
        database.run(`PRAGMA synchronous = ${side === 'writer' ? 'FULL' : 'NORMAL'}`)
        const hasMoved = database.transaction(() => migrate(database, folder)).immediate()
        if (hasMoved) database.run('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
      } catch (error) {
        database.close()
        throw error
      }
      return new BusIndex(path, folder, database)
    })
  }

  segmentPath(file: number): string {
    return segmentPath(this.folder, file)
  }

  /** All segments, by first position. */
  segments(): Segment[] {
    return this.database.query<Segment, []>('SELECT first, file FROM segments ORDER BY first').all()
  }

  /** The segment with the entry at `position`, or the first one after it. */
  segmentAt(position: number): Segment | null {
    const holding = 'SELECT first, file FROM segments WHERE first <= ? ORDER BY first DESC LIMIT 1'
    return this.database.query<Segment, [number]>(holding).get(position) ?? this.segmentAfter(position)
  }

  segmentAfter(position: number): Segment | null {
    const next = 'SELECT first, file FROM segments WHERE first > ? ORDER BY first LIMIT 1'
    return this.database.query<Segment, [number]>(next).get(position)
  }

  /** Idempotent: the caller may repeat it when it does not know whether it took effect. */
  addSegment({ first, file }: Segment): void {
    const sql =
      'INSERT INTO segments (first, file) VALUES (?, ?) ON CONFLICT (first) DO UPDATE SET file = excluded.file'
    this.database.query(sql).run(first, file)
  }

  removeSegmentsBefore(first: number): void {
    this.database.query('DELETE FROM segments WHERE first < ?').run(first)
  }

  /** Registers a consumer: from now on no entry is removed before `name` has passed it. */
  addConsumer(name: string): void {
    this.database.query('INSERT OR IGNORE INTO consumers (name, position) VALUES (?, 0)').run(name)
  }

  /** The position that the consumer has passed; 0 when it never passed any. */
  passed(consumer: string): number {
    const position = this.database.query<{ position: number }, [string]>(
      'SELECT position FROM consumers WHERE name = ?',
    )
    return position.get(consumer)?.position ?? 0
  }

  pass(consumer: string, position: number): void {
    const sql =
      'INSERT INTO consumers (name, position) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET position = max(position, excluded.position)'
    this.database.query(sql).run(consumer, position)
  }

  /** The position that every consumer has passed; 0 while there is no consumer. */
  passedByAll(): number {
    const least = this.database.query<{ position: number | null }, []>(
      'SELECT min(position) AS position FROM consumers',
    )
    return least.get()?.position ?? 0
  }

  refusedAtMs(): number {
    return this.database.query<{ atMs: number }, []>('SELECT at_ms AS atMs FROM refusal').get()?.atMs ?? 0
  }

  noteRefusal(atMs: number): void {
    this.database.query('UPDATE refusal SET at_ms = ?').run(Math.floor(atMs))
  }

  close(): void {
    this.database.close()
  }
}

const segmentPath = (folder: string, file: number): string => join(folder, `${file}.log`)

/** Creates a segment file and syncs the folder, so that later writes only need to sync the file. */
export function createSegmentFile(folder: string, file: number): number {
  const descriptor = openSync(segmentPath(folder, file), 'w+', 0o600)
  const directory = openSync(folder, 'r')
  fsyncSync(directory)
  closeSync(directory)
  return descriptor
}

/** True when groups of an older format were moved. */
function migrate(database: Database, folder: string): boolean {
  const number = (pragma: string): number => Number(Object.values(database.query(`PRAGMA ${pragma}`).get() ?? {})[0])
  const version = number('user_version')
  if (version > FORMAT_VERSION)
    throw new Error(`it is of format ${version}, this program knows ${FORMAT_VERSION}; use the newer program`)
  const tables = database
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .all()
    .map(row => row.name)
  // Files of the first format carry no mark; they are known by their tables.
  if (number('application_id') !== APPLICATION_ID && tables.length > 0 && !tables.includes('groups'))
    throw new Error('it is the database of something else; name another data_dir')
  if (version === FORMAT_VERSION) return false
  database.run('CREATE TABLE segments (first INTEGER PRIMARY KEY, file INTEGER NOT NULL UNIQUE)')
  database.run('CREATE TABLE IF NOT EXISTS consumers (name TEXT PRIMARY KEY, position INTEGER NOT NULL)')
  database.run('CREATE TABLE IF NOT EXISTS refusal (id INTEGER PRIMARY KEY CHECK (id = 1), at_ms INTEGER NOT NULL)')
  database.run('INSERT OR IGNORE INTO refusal (id, at_ms) VALUES (1, 0)')
  const isOlder = tables.includes('groups')
  if (isOlder) moveGroups(database, folder)
  database.run(`PRAGMA application_id = ${APPLICATION_ID}`)
  database.run(`PRAGMA user_version = ${FORMAT_VERSION}`)
  return isOlder
}

/**
 * Moves the groups of formats 1 and 2 into one segment. Their table is dropped in the same transaction, so either all
 * of it happens or nothing.
 */
function moveGroups(database: Database, folder: string): void {
  const { last } = database.query<{ last: number }, []>('SELECT ifnull(max(last), 0) AS last FROM head').get()!
  const rows = database.query<GroupRow, []>('SELECT first, count, at_ms AS atMs, bytes FROM groups ORDER BY first')
  const segment = createSegmentFile(folder, 1)
  let first = 0
  let end = 0
  for (const row of rows.iterate()) {
    if (first === 0) first = row.first
    const group = new Uint8Array(groupBytes(row.bytes.length))
    group.set(row.bytes, GROUP_HEADER_BYTES)
    sealGroup(group, { byteCount: row.bytes.length, first: row.first, count: row.count, atMs: row.atMs })
    writeBytes(segment, end, group)
    end += group.length
  }
  fdatasyncSync(segment)
  closeSync(segment)
  database.query('INSERT INTO segments (first, file) VALUES (?, 1)').run(first || last + 1)
  database.run('DROP TABLE groups')
  database.run('DROP TABLE head')
}
