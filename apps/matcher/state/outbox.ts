// Events that wait for the hub, in the order of their commit (MAT section 8). A row is what one commit told of one
// host; its events have numbers that follow each other. How many wait is counted in memory, by company.
import type { Database } from 'bun:sqlite'
import type { SecurityEvent } from '../../../core/matching/finding-event.ts'
import { isOutboxFull, ROW_BYTES } from './outbox-bound.ts'
import type { PurgedCompanies } from './purged-companies.ts'
import type { StateWriter } from './state-writer.ts'
import type { UseMarks } from './use-marks.ts'
import { decodeEvents, encodeEvents, type WaitingEvent } from './waiting-event.ts'

/** A row of the outbox. `settled`: how many of its first events were told. */
export type OutboxRow = {
  readonly id: number
  readonly company: number
  readonly host: number
  readonly at_ms: number
  readonly first_seq: number
  readonly event_count: number
  readonly settled: number
  readonly db_version: number
  readonly body: Uint8Array
}

/** What tells events of a host need of its row. */
type Sender = { readonly id: number; readonly company: number; readonly last_seq: number }

type Waiting = { events: number; rows: number; bytes: number; oldestAtMs: number }

export class Outbox {
  readonly #writer: StateWriter
  readonly #bytesMax: number
  readonly #marks: UseMarks
  readonly #purged: PurgedCompanies
  readonly #insert
  readonly #head
  readonly #settle
  readonly #delete
  readonly #sums
  readonly #oldest
  readonly #deleteOfHost
  readonly #deleteOfCompany
  readonly #ofHost
  readonly #lastId
  readonly #waiting = new Map<number, Waiting>()
  #bytes = 0
  readonly told: Record<SecurityEvent['type'], number> = {
    'finding.opened': 0,
    'finding.updated': 0,
    'finding.resolved': 0,
    'server.scanned': 0,
  }
  #listener: () => void = () => {}

  constructor(database: Database, writer: StateWriter, bytesMax: number, marks: UseMarks, purged: PurgedCompanies) {
    this.#writer = writer
    this.#bytesMax = bytesMax
    this.#marks = marks
    this.#purged = purged
    const columns = 'id, company, host, at_ms, first_seq, event_count, settled, db_version, body'
    this.#insert = database.prepare<
      { readonly id: number },
      [number, number, number, number, number, number, Uint8Array]
    >(`INSERT INTO outbox (company, host, at_ms, first_seq, event_count, db_version, body)
       VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`)
    this.#head = database.prepare<OutboxRow, [number, number]>(
      `SELECT ${columns} FROM outbox WHERE company = ? ORDER BY id LIMIT ?`,
    )
    this.#settle = database.prepare<unknown, [number, number]>('UPDATE outbox SET settled = ? WHERE id = ?')
    this.#delete = database.prepare<unknown, [number]>('DELETE FROM outbox WHERE id = ?')
    const sums = 'SELECT company, count(*) AS rows, sum(event_count - settled) AS events, sum(length(body)) AS bytes'
    this.#sums = database.prepare<SumRow, []>(`${sums}, min(at_ms) AS oldest FROM outbox GROUP BY company`)
    this.#ofHost = database.prepare<SumRow, [number]>(
      `${sums}, min(at_ms) AS oldest FROM outbox WHERE host = ? GROUP BY company`,
    )
    this.#oldest = database.prepare<{ readonly at_ms: number }, [number]>(
      'SELECT at_ms FROM outbox WHERE company = ? ORDER BY id LIMIT 1',
    )
    this.#deleteOfHost = database.prepare<unknown, [number]>('DELETE FROM outbox WHERE host = ?')
    this.#deleteOfCompany = database.prepare<{ readonly id: number }, [number, number]>(
      'DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE company = ? LIMIT ?) RETURNING id',
    )
    this.#lastId = database.prepare<{ readonly id: number | null }, []>(
      "SELECT seq AS id FROM sqlite_sequence WHERE name = 'outbox'",
    )
    for (const { company, events, rows, bytes: bodies, oldest } of this.#sums.all()) {
      if (purged.get(company) !== undefined) continue
      const bytes = bodies + rows * ROW_BYTES
      this.#waiting.set(company, { events, rows, bytes, oldestAtMs: oldest })
      this.#bytes += bytes
    }
  }

  get bytes(): number {
    return this.#bytes
  }

  get isFull(): boolean {
    return isOutboxFull(this.#bytes, this.#bytesMax)
  }

  get depth(): number {
    let depth = 0
    for (const waiting of this.#waiting.values()) depth += waiting.events
    return depth
  }

  get oldestAtMs(): number | null {
    let oldest: number | null = null
    for (const waiting of this.#waiting.values()) oldest = Math.min(oldest ?? Infinity, waiting.oldestAtMs)
    return oldest
  }

  /** Numbers of companies with waiting events → commit of the oldest. */
  companies(): ReadonlyMap<number, number> {
    return new Map([...this.#waiting].map(([company, { oldestAtMs }]) => [company, oldestAtMs]))
  }

  depthOf(company: number): number {
    return this.#waiting.get(company)?.events ?? 0
  }

  onWaiting(listener: () => void): void {
    this.#listener = listener
  }

  /** There is something to send that no row says yet. */
  announce(): void {
    this.#listener()
  }

  /**
   * Writes events of a host and returns its new last seq. seq grows strictly and goes on by the clock, so that neither
   * a clock set back nor a restored backup gives one twice (MAT-161).
   */
  tell(host: Sender, events: readonly WaitingEvent[], atMs: number, clockMs: number, dbVersion: number): number {
    if (events.length === 0) return host.last_seq
    const firstSeq = Math.max(host.last_seq + 1, clockMs)
    this.add({ company: host.company, host: host.id, at_ms: atMs, first_seq: firstSeq, db_version: dbVersion }, events)
    this.#writer.afterCommit(() => {
      for (const event of events) this.told[event.type]++
    })
    return firstSeq + events.length - 1
  }

  /** Appends a row as it is: also what comes back from the dead letters. */
  add(
    row: Pick<OutboxRow, 'company' | 'host' | 'at_ms' | 'first_seq' | 'db_version'>,
    events: readonly WaitingEvent[],
  ): void {
    this.#marks.addEvents(events)
    const body = encodeEvents(events)
    this.#insert.get(row.company, row.host, row.at_ms, row.first_seq, events.length, row.db_version, body)
    this.#writer.afterCommit(() => {
      this.#count(row.company, events.length, 1, body.length + ROW_BYTES, row.at_ms)
      this.#listener()
    })
  }

  /** The number that the newest row has or had. */
  lastId(): number {
    return this.#lastId.get()?.id ?? 0
  }

  /** The id of the oldest row of a company that waits, or null. */
  firstIdOf(company: number): number | null {
    return this.#head.get(company, 1)?.id ?? null
  }

  /** The oldest rows of a company, until they have `eventCount` events. */
  head(company: number, eventCount: number): readonly OutboxRow[] {
    const rows: OutboxRow[] = []
    let events = 0
    for (const row of this.#head.iterate(company, eventCount)) {
      rows.push(row)
      events += row.event_count - row.settled
      if (events >= eventCount) break
    }
    return rows
  }

  /** Marks the first `told` events of a row as told. Rows that are gone, and what is told already, change nothing. */
  settle(row: OutboxRow, told: number): void {
    const isDone = told >= row.event_count
    if (isDone) this.#delete.run(row.id)
    else this.#settle.run(told, row.id)
    this.#writer.afterCommit(() => {
      const bytes = isDone ? row.body.length + ROW_BYTES : 0
      this.#count(row.company, row.settled - told, isDone ? -1 : 0, -bytes, null)
    })
  }

  dropHost(host: number): void {
    // What waits of a purged company does not count any more.
    for (const sum of this.#ofHost.all(host)) if (this.#purged.get(sum.company) === undefined) this.#uncount(sum)
    this.#deleteOfHost.run(host)
  }

  /** What waits of a company that is purged counts no more; its rows are deleted afterwards. */
  forgetCompany(company: number): void {
    this.#writer.afterCommit(() => {
      this.#bytes -= this.#waiting.get(company)?.bytes ?? 0
      this.#waiting.delete(company)
    })
  }

  /** Deletes rows of a purged company, at most this many; false when none is left. */
  deleteOfCompany(company: number, count: number): boolean {
    return this.#deleteOfCompany.all(company, count).length === count
  }

  #uncount(sum: SumRow): void {
    this.#writer.afterCommit(() =>
      this.#count(sum.company, -sum.events, -sum.rows, -(sum.bytes + sum.rows * ROW_BYTES), null),
    )
  }

  /** `addedAtMs` is null when events go: then the oldest is looked up. */
  #count(company: number, events: number, rows: number, bytes: number, addedAtMs: number | null): void {
    if (this.#purged.get(company) !== undefined) return
    this.#bytes = Math.max(0, this.#bytes + bytes)
    const waiting = this.#waiting.get(company) ?? { events: 0, rows: 0, bytes: 0, oldestAtMs: addedAtMs ?? 0 }
    waiting.events += events
    waiting.rows += rows
    waiting.bytes += bytes
    if (waiting.rows <= 0) this.#waiting.delete(company)
    else {
      this.#waiting.set(company, waiting)
      if (addedAtMs === null && rows < 0) waiting.oldestAtMs = this.#oldest.get(company)?.at_ms ?? waiting.oldestAtMs
    }
  }
}

type SumRow = {
  readonly company: number
  readonly rows: number
  readonly events: number
  readonly bytes: number
  readonly oldest: number
}

/** The events of a row that were not told yet, each with its seq. */
export function untoldEvents(row: OutboxRow): { readonly seq: number; readonly event: WaitingEvent }[] {
  return decodeEvents(row.body)
    .map((event, place) => ({ seq: row.first_seq + place, event }))
    .slice(row.settled)
}
