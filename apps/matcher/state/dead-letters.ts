// Events that the hub will never take, set aside, each with its reason, until an operator has them tried again or
// dropped (MAT-167). Which events come here: delivery.ts, by what hub-link/send-events.ts was answered.
import type { Database } from 'bun:sqlite'
import { securityEvent } from './event-payload.ts'
import type { OutboxRow } from './outbox.ts'
import type { StateParts } from './state-parts.ts'
import type { DeadLetter } from './state-types.ts'
import { decodeEvents, encodeEvents, type WaitingEvent } from './waiting-event.ts'

const REASON_CHARACTERS = 500

type DeadRow = {
  readonly id: number
  readonly company: number
  readonly host: number
  readonly event_id: string
  readonly at_ms: number
  readonly reason: string
  readonly seq: number
  readonly occurred_ms: number
  readonly db_version: number
  readonly body: Uint8Array
}

/** Where an event stood in the outbox. */
type DeadSource = { readonly row: OutboxRow; readonly seq: number; readonly event: WaitingEvent }

export class DeadLetters {
  readonly #parts: StateParts
  readonly #addDead
  readonly #dead
  readonly #deadById
  readonly #dropDead
  readonly #countDead

  constructor(database: Database, parts: StateParts) {
    this.#parts = parts
    const columns = 'id, company, host, event_id, at_ms, reason, seq, occurred_ms, db_version, body'
    this.#addDead = database.prepare<unknown, Omit<DeadRow, 'id'>>(
      `INSERT OR IGNORE INTO dead_letter (${columns.slice(4)}) VALUES
       (:company, :host, :event_id, :at_ms, :reason, :seq, :occurred_ms, :db_version, :body)`,
    )
    this.#dead = database.prepare<DeadRow, [number, number]>(
      `SELECT ${columns} FROM dead_letter WHERE id > ? ORDER BY id LIMIT ?`,
    )
    this.#deadById = database.prepare<DeadRow, [number]>(`SELECT ${columns} FROM dead_letter WHERE id = ?`)
    this.#dropDead = database.prepare<unknown, [number]>('DELETE FROM dead_letter WHERE id = ?')
    this.#countDead = database.prepare<{ readonly count: number }, []>('SELECT count(*) AS count FROM dead_letter')
  }

  list(after: number, limit: number): DeadLetter[] {
    return this.#dead.all(after, limit).flatMap(row => {
      const host = this.#parts.hosts.byId.get(row.host)
      const [waiting] = decodeEvents(row.body)
      if (host === null || waiting === undefined) return []
      const frame = { host, seq: row.seq, occurredAtMs: row.occurred_ms, dbVersion: row.db_version }
      const event = securityEvent(this.#parts, frame, waiting)
      const { id, reason } = row
      return [{ id, companyId: host.company_id, eventId: row.event_id, atMs: row.at_ms, reason, event }]
    })
  }

  get count(): number {
    return this.#countDead.get()?.count ?? 0
  }

  retry(ids: readonly number[] | null): Promise<number> {
    return this.#takeDead(ids, row =>
      this.#parts.outbox.add(
        {
          company: row.company,
          host: row.host,
          at_ms: row.occurred_ms,
          first_seq: row.seq,
          db_version: row.db_version,
        },
        decodeEvents(row.body),
      ),
    )
  }

  drop(ids: readonly number[] | null): Promise<number> {
    return this.#takeDead(ids, () => {})
  }

  #takeDead(ids: readonly number[] | null, each: (row: DeadRow) => void): Promise<number> {
    return this.#parts.writer.write(() => {
      const rows =
        ids === null ? this.#dead.all(0, Number.MAX_SAFE_INTEGER) : ids.flatMap(id => this.#deadById.get(id) ?? [])
      for (const row of rows) {
        each(row)
        this.#dropDead.run(row.id)
      }
      return rows.length
    })
  }

  /** Within a work of the writer only. */
  bury(eventId: string, reason: string, source: DeadSource): void {
    const { row, seq, event } = source
    this.#parts.marks.addEvents([event])
    this.#addDead.run({
      company: row.company,
      host: row.host,
      event_id: eventId,
      at_ms: this.#parts.options.now(),
      reason: reason.slice(0, REASON_CHARACTERS),
      seq,
      occurred_ms: row.at_ms,
      db_version: row.db_version,
      body: encodeEvents([event]),
    })
  }
}
