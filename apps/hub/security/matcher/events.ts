// POST /security/matcher/events: events applied to findings and scans, once each, in one transaction a batch (document
// 3 "Security matcher to hub"). Set-based: a batch of 200 costs about ten statements, whatever its size.
import {
  applyFindingEvent,
  type Finding,
  type RunningException,
  type VulnerabilityReference,
} from '../../../../core/lifecycle/finding.ts'
import type { Hub } from '../../hub-context.ts'
import { violatedUniqueIndex } from '../../platform/db/connect.ts'
import { inTransaction, type Tx, together } from '../../platform/db/transaction.ts'
import { countEvents } from '../../platform/telemetry.ts'
import {
  FINDINGS_KEY,
  findingKeyOf,
  insertFindings,
  lockFindings,
  type StoredFinding,
  updateFindings,
} from '../findings/finding-rows.ts'
import { batchOf, type Envelope, readContent } from './event-parse.ts'
import { EVENTS_KEY, type EventRecord, loadKnownIds, storeDays, storeEvents } from './event-rows.ts'
import { hostOf, type KnownHost, lockHosts, type UncomparedScan } from './known-hosts.ts'
import { loadReferences } from './references.ts'
import { exceptionKeyOf, linkExceptions, loadExceptions } from './running-exceptions.ts'
import { loadScanSeqs, markCompared, type NewScan, storeScans } from './scan-rows.ts'

type RejectReason = 'unknown_server' | 'unsupported_type' | 'invalid_payload'
/** `old`: its seq is not greater than the last one; `unknown`: it resolves a finding that there is none of. */
type EventResult = 'applied' | 'seen' | 'old' | 'unknown' | RejectReason
type Result = { readonly event: Envelope; readonly result: EventResult }

type EventsResponse = {
  readonly accepted: string[]
  readonly rejected: { readonly event_id: string; readonly reason: RejectReason }[]
}

/** An event that will be stored: its host is known and its payload is read. */
type Admitted = { readonly event: Envelope; readonly host: KnownHost; readonly content: ContentOf }
type ContentOf = Exclude<ReturnType<typeof readContent>, string>

/** An event of the batch is stored already, or another transaction was first with a finding of it: it is run again. */
const isOvertaken = (error: unknown): boolean => {
  const index = violatedUniqueIndex(error)
  return index === EVENTS_KEY || index === FINDINGS_KEY
}

const isRejected = (result: EventResult): result is RejectReason =>
  result === 'unknown_server' || result === 'unsupported_type' || result === 'invalid_payload'

/** What the batch found stored, and what it makes of it. */
class Book {
  readonly created = new Map<string, Finding>()
  readonly changed = new Map<string, Finding>()
  readonly scans = new Map<string, NewScan>()
  readonly days = new Map<string, { opened: number; resolved: number }>()
  /** Hosts without a report since that a first database has compared, by its version. */
  readonly compared = new Map<string, number>()
  /** By host: its last report, where it was not compared and this batch has said nothing else of it so far. */
  private readonly uncompared = new Map<string, UncomparedScan | null>()

  constructor(
    private readonly stored: ReadonlyMap<string, StoredFinding>,
    private readonly scanSeqs: ReadonlyMap<string, number>,
    private readonly references: ReadonlyMap<string, VulnerabilityReference>,
    private readonly exceptions: ReadonlyMap<string, RunningException>,
  ) {}

  private exceptionFor(key: string, content: ContentOf, host: KnownHost): RunningException | null {
    const own = this.stored.get(key)?.exception
    if (own || content.type !== 'seen' || host.serverId === null) return own ?? null
    return this.exceptions.get(exceptionKeyOf(host.serverId, content.columns)) ?? null
  }

  /** The id of the finding that the event is of, and what became of the event. */
  apply({ event, host, content }: Admitted): { findingId: string | null; result: EventResult } {
    if (content.type === 'scanned') return { findingId: null, result: this.applyScan(event, host, content) }
    const key = findingKeyOf({ companyId: host.companyId, findingKey: content.findingKey })
    const before = this.created.get(key) ?? this.changed.get(key) ?? this.stored.get(key)?.finding ?? null
    const after = applyFindingEvent(
      before,
      { ...content, ...host, seq: event.seq, occurredAtMs: Date.parse(event.occurred_at) },
      {
        // Grows with time, so that the keys of a batch lie together in the indexes.
        newId: Bun.randomUUIDv7(),
        reference: content.type === 'seen' ? (this.references.get(content.columns.vuln_id) ?? null) : null,
        exception: this.exceptionFor(key, content, host),
      },
    )
    if (after === null) return { findingId: null, result: 'unknown' }
    if (after === before) return { findingId: after.id, result: 'old' }
    if (this.stored.has(key)) this.changed.set(key, after)
    else this.created.set(key, after)
    if (content.type === 'seen') this.noteCompared(host, event.seq, content.dbVersion)
    this.count(event, before, after)
    return { findingId: after.id, result: 'applied' }
  }

  private applyScan(event: Envelope, host: KnownHost, scan: NewScan['scan']): EventResult {
    const last = this.scans.get(host.hostId)?.seq ?? this.scanSeqs.get(host.hostId) ?? -1
    if (event.seq <= last) return 'old'
    this.scans.set(host.hostId, { host, seq: event.seq, occurredAt: event.occurred_at, scan })
    const isUncompared = scan.matchStatus === 'no_db'
    this.uncompared.set(host.hostId, isUncompared ? { seq: event.seq, dbVersion: scan.dbVersion } : null)
    this.compared.delete(host.hostId)
    return 'applied'
  }

  /** A newer database than the one of the report has found something: the report is compared now (decision G-199). */
  private noteCompared(host: KnownHost, seq: number, dbVersion: number): void {
    const known = this.uncompared.get(host.hostId)
    const uncompared = known === undefined ? host.uncompared : known
    if (uncompared === null || seq <= uncompared.seq || dbVersion <= uncompared.dbVersion) return
    this.uncompared.set(host.hostId, null)
    this.compared.set(host.hostId, dbVersion)
  }

  private count(event: Envelope, before: Finding | null, after: Finding): void {
    const isOpened = after.status !== 'resolved' && (before === null || before.status === 'resolved')
    const isResolved = after.status === 'resolved' && before?.status !== 'resolved'
    if (!isOpened && !isResolved) return
    const key = `${after.companyId} ${new Date(event.occurred_at).toISOString().slice(0, 10)}`
    const day = this.days.get(key) ?? { opened: 0, resolved: 0 }
    this.days.set(key, { opened: day.opened + Number(isOpened), resolved: day.resolved + Number(isResolved) })
  }
}

async function openBook(tx: Tx, admitted: readonly Admitted[]): Promise<Book> {
  const findings = admitted.flatMap(({ host, content }) =>
    content.type === 'scanned' ? [] : [{ companyId: host.companyId, findingKey: content.findingKey }],
  )
  const seen = admitted.flatMap(({ host, content }) => (content.type === 'seen' ? [{ host, content }] : []))
  const [stored, scanSeqs, references, exceptions] = await together([
    lockFindings(tx, findings),
    loadScanSeqs(
      tx,
      new Set(admitted.filter(({ content }) => content.type === 'scanned').map(({ host }) => host.hostId)),
    ),
    loadReferences(tx, new Set(seen.map(({ content }) => content.columns.vuln_id))),
    loadExceptions(
      tx,
      seen.flatMap(({ host, content }) =>
        host.serverId === null
          ? []
          : [{ serverId: host.serverId, companyId: host.companyId, columns: content.columns }],
      ),
    ),
  ])
  return new Book(stored, scanSeqs, references, exceptions)
}

/**
 * Sorts the events of a batch into those that will be stored and those that are known or refused. A matcher seldom
 * sends what it has sent before: with `looksForIds` every event is looked up by its id, without only those that would
 * be refused, since a known one that is stored again makes the batch run again.
 */
async function admit(
  tx: Tx,
  events: readonly Envelope[],
  looksForIds: boolean,
): Promise<{ admitted: Admitted[]; results: Result[] }> {
  const hosts = await lockHosts(tx, events)
  const read = events.map(event => {
    const host = hostOf(event, hosts)
    return { event, host, content: host === null ? ('unknown_server' as const) : readContent(event) }
  })
  const doubtful = looksForIds ? read : read.filter(({ content }) => typeof content === 'string')
  const known = await loadKnownIds(
    tx,
    doubtful.map(({ event }) => event),
  )
  const admitted: Admitted[] = []
  const results: Result[] = []
  for (const { event, host, content } of read) {
    if (known.has(event.event_id)) results.push({ event, result: 'seen' })
    else if (host === null || typeof content === 'string')
      results.push({ event, result: typeof content === 'string' ? content : 'unknown_server' })
    else {
      known.add(event.event_id)
      admitted.push({ event, host, content })
    }
  }
  return { admitted, results }
}

/** Applies a batch in one transaction. Throws what `isOvertaken` says. */
async function applyEvents(hub: Hub, tx: Tx, events: readonly Envelope[], looksForIds: boolean): Promise<Result[]> {
  const { admitted, results } = await admit(tx, events, looksForIds)
  if (admitted.length === 0) return results
  const book = await openBook(tx, admitted)
  const records: EventRecord[] = []
  for (const item of admitted) {
    const { findingId, result } = book.apply(item)
    records.push({ event: item.event, host: item.host, findingId })
    results.push({ event: item.event, result })
  }
  const created = [...book.created.values()]
  await together([
    insertFindings(tx, created),
    updateFindings(tx, [...book.changed.values()]),
    storeEvents(tx, records, hub.now()),
    storeScans(tx, [...book.scans.values()]),
    storeDays(tx, book.days),
    linkExceptions(tx, created),
  ])
  await markCompared(tx, book.compared)
  return results
}

const RUNS_MAX = 6

async function applyOnce(hub: Hub, events: readonly Envelope[]): Promise<Result[]> {
  for (let run = 1; ; run++) {
    try {
      return await inTransaction(hub.database.db, tx => applyEvents(hub, tx, events, run > 1))
    } catch (error) {
      if (run === RUNS_MAX || !isOvertaken(error)) throw error
    }
  }
}

/** Applies a batch. Known and old events are accepted; one that is rejected does not stop the others. */
export async function receiveEvents(hub: Hub, body: unknown): Promise<EventsResponse> {
  const events = batchOf(body)
  const results = await applyOnce(hub, events)
  hub.findingSums.note(results.filter(({ result }) => result === 'applied').length)
  const reasons = new Map<string, RejectReason>()
  const accepted = new Set<string>()
  countEvents(
    hub.metrics.securityEvents,
    results.map(({ event, result }) => ({ type: result === 'unsupported_type' ? 'other' : event.type, result })),
  )
  for (const { event, result } of results) {
    if (isRejected(result)) reasons.set(event.event_id, result)
    else accepted.add(event.event_id)
  }
  const ids = [...new Set(events.map(event => event.event_id))]
  return {
    accepted: ids.filter(id => accepted.has(id)),
    rejected: ids.flatMap(id => {
      const reason = reasons.get(id)
      return reason === undefined || accepted.has(id) ? [] : [{ event_id: id, reason }]
    }),
  }
}
