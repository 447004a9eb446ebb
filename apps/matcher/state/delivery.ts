// Batches of events for the hub: read in the order of their commit, removed when the hub has them, and set aside when
// it will never take them (MAT-163 to MAT-168). A batch is not current any more when a purge took events out of it.
import type { Database } from 'bun:sqlite'
import type { SecurityEvent } from '../../../core/matching/finding-event.ts'
import type { DeadLetters } from './dead-letters.ts'
import { type EventFrame, securityEvent } from './event-payload.ts'
import type { HostRow } from './host-rows.ts'
import { type OutboxRow, untoldEvents } from './outbox.ts'
import type { Resyncs } from './resync.ts'
import type { Retellings } from './retelling.ts'
import type { StateParts } from './state-parts.ts'
import type { EventBatch } from './state-types.ts'
import type { WaitingEvent } from './waiting-event.ts'

const BATCH_EVENTS = 200

type BatchPlace = {
  readonly company: number
  readonly revision: number
  /** By row of the outbox: how many of its first events are told once the batch is settled. */
  readonly told: ReadonlyMap<number, number>
  readonly sources: ReadonlyMap<string, EventSource>
}

/** `version`: that of the host when the event was made. */
type EventSource = {
  readonly row: OutboxRow
  readonly seq: number
  readonly event: WaitingEvent
  readonly version: number
}

export class Delivery {
  readonly #parts: StateParts
  readonly #resyncs: Resyncs
  readonly #retellings: Retellings
  readonly #deadLetters: DeadLetters
  readonly #places = new WeakMap<EventBatch, BatchPlace>()
  readonly #companies
  readonly #companyId

  constructor(
    database: Database,
    parts: StateParts,
    resyncs: Resyncs,
    retellings: Retellings,
    deadLetters: DeadLetters,
  ) {
    this.#parts = parts
    this.#deadLetters = deadLetters
    this.#resyncs = resyncs
    this.#retellings = retellings
    this.#companies = database.prepare<{ readonly company_id: string }, [number]>(
      'SELECT company_id FROM company WHERE id = ?',
    )
    this.#companyId = (company: number): string => this.#companies.get(company)?.company_id ?? ''
  }

  companiesWaiting(): string[] {
    const waiting = new Map(this.#parts.outbox.companies())
    for (const company of this.#resyncs.companies()) if (!waiting.has(company)) waiting.set(company, Infinity)
    // Of a company that is purged nothing waits, also before memory has learnt it.
    const purged = this.#parts.purged.all()
    return [...waiting]
      .filter(([company]) => !purged.has(company))
      .sort((a, b) => a[1] - b[1])
      .map(([company]) => this.#companyId(company))
  }

  async nextBatch(companyId: string): Promise<EventBatch | null> {
    const company = this.#parts.hosts.company(companyId)
    if (company === undefined) return null
    await this.#resyncs.makeNext(company, BATCH_EVENTS)
    if (this.#parts.purged.get(company) !== undefined) return null
    const revision = this.#parts.eventsRevision(company)
    const hosts = new Map<number, HostRow | null>()
    const told = new Map<number, number>()
    const sources = new Map<string, EventSource>()
    const events: SecurityEvent[] = []
    let oldestAtMs = Infinity
    for (const row of this.#parts.outbox.head(company, BATCH_EVENTS)) {
      if (!hosts.has(row.host)) hosts.set(row.host, this.#parts.hosts.byId.get(row.host))
      const host = hosts.get(row.host)
      const untold = untoldEvents(row).slice(0, BATCH_EVENTS - events.length)
      told.set(row.id, row.settled + untold.length)
      oldestAtMs = Math.min(oldestAtMs, row.at_ms)
      // A host that was deleted has no waiting events; its row cannot be missing while they are there.
      if (!host) continue
      for (const { seq, event } of untold) {
        const made = securityEvent(this.#parts, frameOf(row, host, seq), event)
        sources.set(made.event_id, { row, seq, event, version: host.version })
        events.push(made)
      }
    }
    if (events.length === 0) return null
    const batch: EventBatch = { companyId, events, oldestAtMs }
    this.#places.set(batch, { company, revision, told, sources })
    return batch
  }

  isCurrent(batch: EventBatch): boolean {
    const place = this.#places.get(batch)
    return place !== undefined && this.#parts.eventsRevision(place.company) === place.revision
  }

  settle(
    batch: EventBatch,
    dead: readonly { readonly eventId: string; readonly reason: string }[],
    unknownServer: readonly string[],
  ): Promise<boolean> {
    return this.#parts.writer.write(() => {
      const place = this.#places.get(batch)
      // What was purged meanwhile is neither told again nor a dead letter.
      if (place === undefined || this.#parts.purged.get(place.company) !== undefined) return false
      const waiting = this.#parts.outbox.head(place.company, BATCH_EVENTS)
      for (const row of waiting) {
        const told = place.told.get(row.id)
        if (told !== undefined && told > row.settled) this.#parts.outbox.settle(row, told)
      }
      const rowsLeft = new Set(waiting.map(row => row.id))
      for (const { eventId, reason } of dead) {
        const source = place.sources.get(eventId)
        // What was purged meanwhile is no dead letter either.
        if (source && rowsLeft.has(source.row.id)) this.#deadLetters.bury(eventId, reason, source)
      }
      const refused = unknownServer.flatMap(eventId => place.sources.get(eventId) ?? [])
      return this.#noteRefused(refused.filter(({ row }) => rowsLeft.has(row.id)))
    })
  }

  /** True when hosts wait for what the feed says of them. */
  #noteRefused(refused: readonly EventSource[]): boolean {
    const byHost = Map.groupBy(refused, ({ row }) => row.host)
    let isWaiting = false
    for (const [host, sources] of byHost) {
      const version = Math.max(...sources.map(source => source.version))
      const events = sources.map(({ event }) => event)
      if (this.#retellings.refused(host, version, events)) isWaiting = true
    }
    return isWaiting
  }
}

const frameOf = (row: OutboxRow, host: HostRow, seq: number): EventFrame => ({
  host,
  seq,
  occurredAtMs: row.at_ms,
  dbVersion: row.db_version,
})
