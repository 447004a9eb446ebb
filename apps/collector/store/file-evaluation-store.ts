// The durable state of evaluation in files: one SQLite file with outbox, journal and series keys, and one snapshot file
// for each shard. An event and the state that it left behind are committed together before the thread continues.

import { Database } from 'bun:sqlite'
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { isOpenRecord, type JournalRecord, journalKey } from '../../../core/alerting/durability/journal-record.ts'
import { type RuleChangeRecord, ruleName } from '../../../core/alerting/durability/rule-change-record.ts'
import type { AlertEvent } from '../../../core/alerting/evaluate/event.ts'
import { eventPairKey } from '../../../core/alerting/evaluate/event-id.ts'
import { recordText } from '../../../core/alerting/rules/packed-rule.ts'
import type { RuleRecord } from '../../../core/alerting/rules/rule.ts'
import { assert } from '../../../core/assert.ts'
import { limits } from '../../../core/limits.ts'
import { openFault, openFile } from './open-file.ts'
import type { OutboxRow, OutboxStore, SetAsideKey, Skipped } from './outbox-store.ts'
import type { PlacedRecord, ShardStore, WrittenSnapshot } from './shard-store.ts'
import { useWriteAheadLog } from './write-ahead-log.ts'
import { newTurns, WriteTurns } from './write-turns.ts'

/**
 * 2: series keys are stored by shard, rule changes by their position on the bus. 3: each rule record is stored once,
 * and rule changes refer to it by name.
 */
const FORMAT_VERSION = 3
const STATE = 'evaluation state'

type NoteRow = {
  readonly position: number
  readonly since: number
  readonly rule_id: string
  readonly before: string | null
  readonly after: string | null
}

const openDatabase = (path: string): Database =>
  openFile(STATE, path, 'restore it from a backup, or move it away: alerts that are open then begin anew', () =>
    migrated(path),
  )

function migrated(path: string): Database {
  const database = new Database(path, { create: true, strict: true })
  useWriteAheadLog(database)
  database.run('PRAGMA synchronous = FULL')
  database
    .transaction(() => {
      const version = database.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
      if (version > FORMAT_VERSION)
        throw openFault(
          STATE,
          path,
          `it is of format ${version}, this program knows ${FORMAT_VERSION}; use the newer program`,
        )
      database.run(`CREATE TABLE IF NOT EXISTS outbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL UNIQUE, pair_key TEXT NOT NULL, type TEXT NOT NULL,
        created_ms INTEGER NOT NULL, event TEXT NOT NULL)`)
      database.run(`CREATE TABLE IF NOT EXISTS journal (
        id INTEGER PRIMARY KEY AUTOINCREMENT, shard INTEGER NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL,
        is_open INTEGER NOT NULL, record TEXT NOT NULL)`)
      // Open alerts stay in the journal for as long as they are open: they are what is left of a snapshot that cannot
      // be read.
      database.run('CREATE INDEX IF NOT EXISTS journal_open ON journal (key) WHERE is_open = 1')
      database.run('CREATE INDEX IF NOT EXISTS journal_by_shard ON journal (shard, position)')
      database.run(`CREATE TABLE IF NOT EXISTS shard_keys (
        shard INTEGER NOT NULL, full_key TEXT NOT NULL, PRIMARY KEY (shard, full_key)) WITHOUT ROWID`)
      database.run('CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT NOT NULL)')
      database.run(`CREATE TABLE IF NOT EXISTS rule_notes (
        id INTEGER PRIMARY KEY AUTOINCREMENT, thread INTEGER NOT NULL, position INTEGER NOT NULL, since INTEGER NOT NULL,
        rule_id TEXT NOT NULL, before TEXT, after TEXT)`)
      database.run('CREATE INDEX IF NOT EXISTS rule_notes_by_thread ON rule_notes (thread, rule_id)')
      database.run('CREATE TABLE IF NOT EXISTS rule_records (name TEXT PRIMARY KEY, record TEXT NOT NULL)')
      if (version === 1) fromFormat1(database)
      if (version === 1 || version === 2) fromFormat2(database)
      database.run(`PRAGMA user_version = ${FORMAT_VERSION}`)
    })
    .immediate()
  return database
}

/**
 * Format 1 did not record to which shard a series key belongs: every shard gets all keys, and drops those that it does
 * not use. Format 1 saved the shards before each rule change, so the rules in force at its end become the first.
 */
function fromFormat1(database: Database): void {
  const insert = database.query(
    'INSERT OR IGNORE INTO shard_keys (shard, full_key) SELECT ?, full_key FROM series_keys',
  )
  for (let shard = 0; shard < limits.stateShards; shard++) insert.run(shard)
  database.run('DROP TABLE series_keys')
  database.run(`INSERT INTO rule_notes (thread, position, since, rule_id, before, after)
    SELECT thread, 0, since, rule.value ->> 'id', NULL, rule.value FROM applied_rules, json_each(applied_rules.rules) AS rule`)
  database.run('DROP TABLE applied_rules')
}

/** Format 2 stored both records of a rule, before and after, with each change. */
function fromFormat2(database: Database): void {
  for (const side of ['before', 'after']) {
    const name = `rule_id || ':' || (${side} ->> 'sync_version')`
    database.run(`INSERT OR IGNORE INTO rule_records SELECT ${name}, ${side} FROM rule_notes WHERE ${side} IS NOT NULL`)
    database.run(`UPDATE rule_notes SET ${side} = ${name} WHERE ${side} IS NOT NULL`)
  }
}

/** The store of one thread; the threads share the file. */
type StoredEvent = { id: number; pair_key: string; event: string }
const outboxRow = (row: StoredEvent): OutboxRow => ({ id: row.id, pairKey: row.pair_key, event: JSON.parse(row.event) })

export class EvaluationStore implements ShardStore, OutboxStore {
  private readonly database: Database
  private readonly snapshotDir: string
  private readonly turns: WriteTurns
  /**
   * Number of this thread's last journal record, or at the start the last of any thread: later records of its shards
   * have greater numbers.
   */
  journalMark: number

  /** `turns`: shared by the stores of all threads that have this file open. */
  constructor(dataDir: string, snapshotDir: string, turns = newTurns()) {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    mkdirSync(snapshotDir, { recursive: true, mode: 0o700 })
    this.turns = new WriteTurns(turns)
    this.database = this.turns.run(() => openDatabase(join(dataDir, 'evaluation.db')))
    this.snapshotDir = snapshotDir
    this.journalMark =
      this.database.query<{ seq: number }, []>("SELECT seq FROM sqlite_sequence WHERE name = 'journal'").get()?.seq ?? 0
  }

  /** One durable transaction, in turn. */
  private write(work: () => void): void {
    this.turns.run(() => this.database.transaction(work).immediate())
  }

  /**
   * A transaction that may be lost in a power cut, since what it removes is then removed again: no sync of the disk
   * holds up the other threads. It is synced with the next durable one.
   */
  private writeUnsynced(work: () => void): void {
    this.turns.run(() => {
      this.database.run('PRAGMA synchronous = NORMAL')
      try {
        this.database.transaction(work).immediate()
      } finally {
        this.database.run('PRAGMA synchronous = FULL')
      }
    })
  }

  /** Commits events and the states behind them. An event that the outbox still holds is not added again. */
  commit(events: readonly AlertEvent[], journal: readonly JournalRecord[], position: number, nowMs: number): void {
    const mark = this.journalMark
    try {
      this.write(() => this.insert(events, journal, position, nowMs))
    } catch (error) {
      // What is rolled back gives its numbers back.
      this.journalMark = mark
      throw error
    }
  }

  private insert(
    events: readonly AlertEvent[],
    journal: readonly JournalRecord[],
    position: number,
    nowMs: number,
  ): void {
    const insertEvent = this.database.query(
      'INSERT OR IGNORE INTO outbox (event_id, pair_key, type, created_ms, event) VALUES (?, ?, ?, ?, ?)',
    )
    const supersede = this.database.query('UPDATE journal SET is_open = 0 WHERE key = ? AND is_open = 1')
    const insertRecord = this.database.query(
      'INSERT INTO journal (shard, position, key, is_open, record) VALUES (?, ?, ?, ?, ?)',
    )
    for (const event of events)
      insertEvent.run(event.event_id, eventPairKey(event), event.type, Math.floor(nowMs), JSON.stringify(event))
    for (const record of journal) {
      const key = journalKey(record)
      supersede.run(key)
      const { lastInsertRowid } = insertRecord.run(
        record.shard,
        position,
        key,
        isOpenRecord(record) ? 1 : 0,
        JSON.stringify(record),
      )
      const mark = Number(lastInsertRowid)
      assert(mark > this.journalMark, 'journal records are numbered upwards')
      this.journalMark = mark
    }
  }

  /** Commits events together with the state that led to them, a value stored by name. */
  commitKept(events: readonly AlertEvent[], name: string, value: unknown, nowMs: number): void {
    this.write(() => {
      this.insert(events, [], 0, nowMs)
      this.database.query('INSERT OR REPLACE INTO kept (name, value) VALUES (?, ?)').run(name, JSON.stringify(value))
    })
  }

  /** The value stored under a name, or null. */
  kept(name: string): unknown {
    const row = this.database.query<{ value: string }, [string]>('SELECT value FROM kept WHERE name = ?').get(name)
    return row ? JSON.parse(row.value) : null
  }

  /**
   * Journal records of a shard that a snapshot at `position` and `mark` does not reflect, in the order they were made.
   */
  *journalAfter(shard: number, position: number, mark: number): Generator<PlacedRecord> {
    const rows = this.database.query<{ position: number; record: string }, [number, number, number]>(
      'SELECT position, record FROM journal WHERE shard = ? AND (position > ? OR id > ?) ORDER BY id',
    )
    for (const row of rows.iterate(shard, position, mark))
      yield { position: row.position, record: JSON.parse(row.record) }
  }

  /** Keys of series that servers of the shard send. */
  keys(shard: number): string[] {
    return this.database
      .query<{ full_key: string }, [number]>('SELECT full_key FROM shard_keys WHERE shard = ?')
      .all(shard)
      .map(row => row.full_key)
  }

  keepKeys(shard: number, keys: readonly string[]): void {
    if (keys.length === 0) return
    const insert = this.database.query('INSERT OR IGNORE INTO shard_keys (shard, full_key) VALUES (?, ?)')
    this.write(() => {
      for (const key of keys) insert.run(shard, key)
    })
  }

  /** Keys that no snapshot of the shard needs any more. */
  dropKeys(shard: number, keys: readonly string[]): void {
    if (keys.length === 0) return
    const remove = this.database.query('DELETE FROM shard_keys WHERE shard = ? AND full_key = ?')
    this.writeUnsynced(() => {
      for (const key of keys) remove.run(shard, key)
    })
  }

  /** Records rule changes before a thread activates them. */
  keepRules(thread: number, changes: readonly RuleChangeRecord[]): void {
    const insert = this.database.query(
      'INSERT INTO rule_notes (thread, position, since, rule_id, before, after) VALUES (?, ?, ?, ?, ?, ?)',
    )
    this.write(() => {
      for (const { position, since, ruleId, before, after } of changes)
        insert.run(thread, position, since, ruleId, this.keepRecord(before), this.keepRecord(after))
    })
  }

  /** Stores the record of a rule, once for all threads. Returns the name by which changes refer to it. */
  private keepRecord(rule: RuleRecord | null): string | null {
    if (!rule) return null
    const name = ruleName(rule)
    const isThere = this.database.query('SELECT 1 FROM rule_records WHERE name = ?').get(name) !== null
    if (!isThere) this.database.query('INSERT INTO rule_records VALUES (?, ?)').run(name, recordText(rule))
    return name
  }

  /** The rule changes that a thread recorded, in their order. */
  ruleChanges(thread: number): RuleChangeRecord[] {
    const record = (text: string | null) => (text === null ? null : JSON.parse(text))
    return this.database
      .query<NoteRow, [number]>(
        `SELECT position, since, rule_id, b.record AS before, a.record AS after FROM rule_notes
          LEFT JOIN rule_records b ON b.name = before LEFT JOIN rule_records a ON a.name = after
          WHERE thread = ? ORDER BY id`,
      )
      .all(thread)
      .map(({ position, since, rule_id: ruleId, before, after }) => ({
        ...{ position, since, ruleId, before: record(before), after: record(after) },
      }))
  }

  /**
   * Every snapshot of the thread reflects the rule changes up to `position`, so these are removed. The last change of
   * each rule stays, as if it came before the whole bus, since the set may not be stored yet.
   */
  passRules(thread: number, position: number): void {
    this.writeUnsynced(() => {
      const removed = this.database
        .query(
          `DELETE FROM rule_notes WHERE thread = ?1 AND position <= ?2
            AND id NOT IN (SELECT max(id) FROM rule_notes WHERE thread = ?1 GROUP BY rule_id)`,
        )
        .run(thread, position)
      const passed = this.database
        .query('UPDATE rule_notes SET before = NULL, position = 0 WHERE thread = ? AND position BETWEEN 1 AND ?')
        .run(thread, position)
      if (removed.changes + passed.changes > 0)
        this.database.run(`DELETE FROM rule_records WHERE name NOT IN (
          SELECT before FROM rule_notes WHERE before IS NOT NULL UNION SELECT after FROM rule_notes WHERE after IS NOT NULL)`)
    })
  }

  /** Writes a snapshot and puts it in place, at once. */
  saveSnapshot(shard: number, bytes: Uint8Array, position: number, mark: number): void {
    const temporary = `${this.snapshotPath(shard)}.new`
    const file = openSync(temporary, 'w', 0o600)
    try {
      // Not `writeSync`: on a disk that is nearly full that writes a part, and says so only by its result.
      writeFileSync(file, bytes)
      fsyncSync(file)
    } catch (error) {
      rmSync(temporary, { force: true })
      throw error
    } finally {
      closeSync(file)
    }
    this.publishSnapshot(temporary, shard, position, mark)
  }

  /**
   * Writes a snapshot beside the one in force and syncs it while the thread continues, since a disk may take a second
   * for that. One write at a time for each shard.
   */
  async writeSnapshot(shard: number, bytes: Uint8Array, position: number, mark: number): Promise<WrittenSnapshot> {
    const temporary = `${this.snapshotPath(shard)}.written`
    const file = await open(temporary, 'w', 0o600)
    try {
      await file.writeFile(bytes)
      await file.sync()
    } catch (error) {
      rmSync(temporary, { force: true })
      throw error
    } finally {
      await file.close()
    }
    return {
      publish: () => this.publishSnapshot(temporary, shard, position, mark),
      discard: () => rmSync(temporary, { force: true }),
    }
  }

  /** Puts a snapshot in force and deletes the journal records that it reflects, except those of open alerts. */
  private publishSnapshot(temporary: string, shard: number, position: number, mark: number): void {
    renameSync(temporary, this.snapshotPath(shard))
    const reflected = this.database.query(
      'DELETE FROM journal WHERE shard = ? AND position <= ? AND id <= ? AND is_open = 0',
    )
    this.writeUnsynced(() => reflected.run(shard, position, mark))
  }

  /** The bytes of a shard's snapshot, or null when it has none. */
  loadSnapshot(shard: number): Uint8Array | null {
    try {
      return readFileSync(this.snapshotPath(shard))
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
      throw error
    }
  }

  private snapshotPath(shard: number): string {
    return join(this.snapshotDir, `shard-${String(shard).padStart(2, '0')}.snapshot`)
  }

  outboxDepth(): number {
    return this.database.query<{ depth: number }, []>('SELECT count(*) AS depth FROM outbox').get()!.depth
  }

  oldestEventMs(): number | null {
    return this.database.query<{ oldest: number | null }, []>('SELECT min(created_ms) AS oldest FROM outbox').get()!
      .oldest
  }

  /** The oldest events, in order. */
  nextEvents(limit: number, skipped: Skipped = { pairKeys: [], companyIds: [] }): OutboxRow[] {
    const { pairKeys, companyIds } = skipped
    const ofCompany = companyIds.length > 0 ? "AND event ->> 'company_id' NOT IN (SELECT value FROM json_each(?3))" : ''
    const ofPair = pairKeys.length > 0 ? 'AND pair_key NOT IN (SELECT value FROM json_each(?2))' : ''
    return this.database
      .query<StoredEvent, [number, string, string]>(
        `SELECT id, pair_key, event FROM outbox WHERE ?2 IS NOT NULL AND ?3 IS NOT NULL ${ofPair} ${ofCompany}
          ORDER BY id LIMIT ?1`,
      )
      .all(limit, JSON.stringify(pairKeys), JSON.stringify(companyIds))
      .map(outboxRow)
  }

  oldestEventOf(key: SetAsideKey): OutboxRow | null {
    const [column, value] = 'pairKey' in key ? ['pair_key', key.pairKey] : ["event ->> 'company_id'", key.companyId]
    const row = this.database
      .query<StoredEvent, [string]>(`SELECT id, pair_key, event FROM outbox WHERE ${column} = ? ORDER BY id LIMIT 1`)
      .get(value)
    return row && outboxRow(row)
  }

  /**
   * Removes events that the hub has accepted, or will never accept. After a power cut they may be told again, under the
   * same ids.
   */
  removeEvents(ids: readonly number[]): void {
    const remove = this.database.query('DELETE FROM outbox WHERE id = ?')
    this.writeUnsynced(() => {
      for (const id of ids) remove.run(id)
    })
  }

  /** Removes the events and open alerts of a purged company, or of one of its servers. */
  removeEventsOf(companyId: string, serverId: string | null): void {
    this.write(() => {
      this.database
        .query("DELETE FROM outbox WHERE event ->> 'company_id' = ?1 AND (?2 IS NULL OR event ->> 'server_id' = ?2)")
        .run(companyId, serverId)
      this.database
        .query(
          "DELETE FROM journal WHERE is_open = 1 AND record ->> 'companyId' = ?1 AND (?2 IS NULL OR record ->> 'serverId' = ?2)",
        )
        .run(companyId, serverId)
    })
  }

  /**
   * Trims the outbox to its bound: the oldest reminders are removed first, then the oldest events. Returns the number
   * removed.
   */
  trimOutbox(eventsMax: number): number {
    const over = this.outboxDepth() - eventsMax
    if (over <= 0) return 0
    const remove = this.database.query(
      "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox ORDER BY type <> 'alert.reminder', id LIMIT ?)",
    )
    this.write(() => remove.run(over))
    return over
  }

  close(): void {
    this.turns.run(() => this.database.close())
  }
}
