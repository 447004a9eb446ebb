// POST /events: events of collectors applied to alerts, once each, in one transaction a batch (document 2 "Hub
// processing rules"; decisions G-94 to G-102). Set-based: a batch of 200 costs about ten statements, whatever its size.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { AlertEvent } from '../../../core/alerting/evaluate/event.ts'
import { eventPairKey } from '../../../core/alerting/evaluate/event-id.ts'
import { applyEvent } from '../../../core/lifecycle/alert.ts'
import { storeAlerts } from '../alerts/alert-rows.ts'
import type { Hub } from '../hub-context.ts'
import { enqueueNotifications, type Notification } from '../notifications/outbox.ts'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
import { statementOfRows } from '../platform/db/statement-of-rows.ts'
import { inTransaction, lockCompanies, type Tx, together } from '../platform/db/transaction.ts'
import { countEvents } from '../platform/telemetry.ts'
import { type AlertSet, loadAlertSet } from './alert-set.ts'
import { contextOf, loadLookups } from './event-lookups.ts'
import { batchOf, eventOf, type RejectReason } from './event-parse.ts'

type EventsResponse = {
  readonly accepted: string[]
  readonly rejected: { readonly event_id: string; readonly reason: RejectReason }[]
}

/** The highest processed seq of a pair-key, and its newest alert. */
type Processed = { readonly seq: number; readonly alertId: string | null }

const processedOf = statementOfRows(
  { server_id: 'uuid', rule_key: 'text', series_key: 'text', place: 'integer' },
  keys => sql`
    select coalesce(json_agg(x.place), '[]') as places, json_agg(s.seq) as seqs, json_agg(s.alert_id) as alert_ids
    from ${keys} join monitoring_event_seqs s using (server_id, rule_key, series_key)`,
)

async function loadProcessed(tx: Tx, events: readonly AlertEvent[]): Promise<Map<string, Processed>> {
  const byKey = new Map(events.map(event => [eventPairKey(event), event]))
  const keys = [...byKey.keys()]
  const given = [...byKey.values()].map((event, place) => ({
    server_id: event.server_id,
    rule_key: event.rule_id,
    series_key: event.series_key,
    place,
  }))
  const [row] = await tx.db.execute<{ places: number[]; seqs: number[]; alert_ids: (string | null)[] }>(
    processedOf(given),
  )
  if (!row) return new Map()
  const { places, seqs, alert_ids: alertIds } = row
  return new Map(places.map((place, at) => [keys[place] ?? '', { seq: seqs[at] ?? -1, alertId: alertIds[at] ?? null }]))
}

const SEEN = fixedStatement<'ids'>(
  value => sql`
    select event_id from monitoring_alert_events
    where event_id in (select jsonb_array_elements_text(${value('ids')}::jsonb))`,
)

async function loadSeenIds(tx: Tx, events: readonly AlertEvent[]): Promise<Set<string>> {
  if (events.length === 0) return new Set()
  const rows = await tx.db.execute<{ event_id: string }>(
    SEEN({ ids: JSON.stringify(events.map(event => event.event_id)) }),
  )
  return new Set(rows.map(row => row.event_id))
}

/** What earlier batches have stored. */
type History = {
  readonly seen: Set<string>
  readonly seqs: Map<string, number>
  readonly book: AlertSet
}

/**
 * With `looksForIds` every event is looked up by its id. Without, only events whose seq is already processed: a
 * collector that sends an event again sends it with its seq, so nearly every batch is spared a look-up in the largest
 * index of all.
 */
async function loadHistory(tx: Tx, events: readonly AlertEvent[], looksForIds: boolean): Promise<History> {
  const processed = await loadProcessed(tx, events)
  const doubtful = looksForIds
    ? events
    : events.filter(event => event.seq <= (processed.get(eventPairKey(event))?.seq ?? -1))
  const newestIds = [...processed.values()].flatMap(({ alertId }) => alertId ?? [])
  const [seen, book] = await together([loadSeenIds(tx, doubtful), loadAlertSet(tx, events, newestIds)])
  return { seen, seqs: new Map([...processed].map(([key, { seq }]) => [key, seq])), book }
}

/**
 * An event that is already stored came with another seq or key: the batch must be applied again, with a look-up of
 * every id.
 */
class SeenBefore extends Error {}

type Applied = { readonly event: AlertEvent; readonly alertId: string | null }

const insertLog = statementOfRows(
  {
    id: 'uuid',
    company_id: 'uuid',
    server_id: 'uuid',
    alert_id: 'uuid',
    event_id: 'text',
    seq: 'bigint',
    type: 'text',
    occurred_at: 'timestamptz',
    payload: 'jsonb',
  },
  rows => sql`
    insert into monitoring_alert_events (id, company_id, server_id, alert_id, event_id, seq, type, occurred_at, payload)
    select x.id, x.company_id, x.server_id, x.alert_id, x.event_id, x.seq, x.type, x.occurred_at, x.payload from ${rows}
    on conflict (event_id) do nothing`,
)

/** Logs the events. Returns how many of them were new. */
async function storeLog(tx: Tx, applied: readonly Applied[]): Promise<number> {
  const log = applied.map(({ event, alertId }) => ({
    id: randomUUID(),
    company_id: event.company_id,
    server_id: event.server_id,
    alert_id: alertId,
    event_id: event.event_id,
    seq: event.seq,
    type: event.type,
    occurred_at: event.occurred_at,
    payload: event,
  }))
  const inserted = await tx.db.execute(insertLog(log))
  return inserted.count
}

const raiseMarks = statementOfRows(
  { server_id: 'uuid', rule_key: 'text', series_key: 'text', seq: 'bigint', alert_id: 'uuid' },
  rows => sql`
    insert into monitoring_event_seqs as s (server_id, rule_key, series_key, seq, alert_id)
    select x.server_id, x.rule_key, x.series_key, x.seq, x.alert_id from ${rows}
    on conflict (server_id, rule_key, series_key) do update
      set seq = greatest(s.seq, excluded.seq), alert_id = excluded.alert_id`,
)

/** Stores for each pair-key the highest processed seq and the newest alert. */
async function storeMarks(tx: Tx, applied: readonly Applied[], { seqs, book }: History): Promise<void> {
  const newest = new Map(applied.map(({ event }) => [eventPairKey(event), event]))
  const marks = [...newest].map(([key, event]) => ({
    server_id: event.server_id,
    rule_key: event.rule_id,
    series_key: event.series_key,
    seq: seqs.get(key) ?? event.seq,
    alert_id: book.newestIdOf(key),
  }))
  await tx.db.execute(raiseMarks(marks))
}

type EventResult = 'applied' | 'seen' | 'old' | RejectReason
type Result = { readonly event: AlertEvent; readonly result: EventResult }

/**
 * Applies a batch. Events that were stored before and outdated ones are accepted and dropped; a rejected event does not
 * stop the others. Those rejected are named in the order in which they came.
 */
export async function receiveEvents(hub: Hub, body: unknown): Promise<EventsResponse> {
  const rejected: EventsResponse['rejected'] = []
  const events: AlertEvent[] = []
  const places = new Map<unknown, number>()
  for (const [place, raw] of batchOf(body).entries()) {
    places.set(raw.event_id, place)
    const event = eventOf(raw)
    if (typeof event !== 'string') {
      events.push(event)
      continue
    }
    rejected.push({ event_id: raw.event_id, reason: event })
    hub.metrics.events.inc({ type: event === 'unsupported_type' ? 'other' : String(raw.type), result: event })
  }
  const results = await applyOnce(hub, events)
  const accepted = new Set(results.filter(item => item.result !== 'unknown_server').map(item => item.event.event_id))
  countEvents(
    hub.metrics.events,
    results.map(({ event, result }) => ({ type: event.type, result })),
  )
  for (const { event, result } of results) {
    if (result === 'unknown_server' && !accepted.has(event.event_id))
      rejected.push({ event_id: event.event_id, reason: result })
  }
  const placeOf = ({ event_id }: { readonly event_id: string }): number => places.get(event_id) ?? 0
  return { accepted: [...accepted], rejected: rejected.sort((a, b) => placeOf(a) - placeOf(b)) }
}

/** Applies events in one transaction; when an id turns out to be stored only at the end, in a second one. */
async function applyOnce(hub: Hub, events: readonly AlertEvent[]): Promise<Result[]> {
  if (events.length === 0) return []
  const act = (looksForIds: boolean) => inTransaction(hub.database.db, tx => applyEvents(hub, tx, events, looksForIds))
  try {
    return await act(false)
  } catch (error) {
    if (error instanceof SeenBefore) return act(true)
    throw error
  }
}

/**
 * Applies events in one transaction. Throws SeenBefore for an event that turns out to be stored only when it is logged.
 */
async function applyEvents(hub: Hub, tx: Tx, events: readonly AlertEvent[], looksForIds: boolean): Promise<Result[]> {
  await lockCompanies(tx, new Set(events.map(event => event.company_id)))
  // Both reads are sent together, since the company stays locked until they are answered.
  const [around, history] = await together([loadLookups(tx, events), loadHistory(tx, events, looksForIds)])
  const { seen, seqs, book } = history
  const results: Result[] = []
  const applied: Applied[] = []
  let told: Notification[] = []
  for (const event of events) {
    const key = eventPairKey(event)
    const result: EventResult =
      around.servers.get(event.server_id) !== event.company_id
        ? 'unknown_server'
        : seen.has(event.event_id)
          ? 'seen'
          : event.seq <= (seqs.get(key) ?? -1)
            ? 'old'
            : 'applied'
    results.push({ event, result })
    if (result !== 'applied') continue
    seen.add(event.event_id)
    seqs.set(key, event.seq)
    const outcome = applyEvent(book.viewOf(event), event, contextOf(event, around, hub.now()))
    for (const alert of outcome.changed) {
      book.store(alert)
      // Collectors send the lost servers of an incident before the incident, whose notification covers them too.
      if (alert.state === 'grouped') told = told.filter(item => item.alert.id !== alert.id)
    }
    applied.push({ event, alertId: outcome.alertId })
    if (outcome.notify) told.push(outcome.notify)
  }
  if (applied.length > 0) {
    await storeAlerts(tx, book.created(), book.changed())
    const [loggedCount] = await together([
      storeLog(tx, applied),
      storeMarks(tx, applied, history),
      enqueueNotifications(hub, tx, told, around.waitingServerIds),
    ])
    if (loggedCount < applied.length && !looksForIds) throw new SeenBefore()
  }
  return results
}
