// POST /events: events of collectors applied to alerts, once each, in one transaction a batch (document 2 "Hub processing
// rules"; decisions G-94 to G-102). Set-based: a batch of 200 costs about ten statements, whatever its size.
import { sql } from 'drizzle-orm'
import { type AlertEvent, eventPairKey } from '../../../core/alerting/event.ts'
import type { Severity } from '../../../core/alerting/rule.ts'
import { applyEvent, type EventContext } from '../../../core/lifecycle/alert.ts'
import { storeAlerts } from '../alerts/alert-store.ts'
import { inTransaction, lockCompany, type Tx, uuidList } from '../db/transaction.ts'
import { isUuid } from '../http/schema.ts'
import type { Hub } from '../hub-context.ts'
import { type Told, tellLater } from '../notifications/outbox.ts'
import { loadEventBook } from './event-book.ts'
import { batchOf, eventOf, type RejectReason } from './event-parse.ts'

export type EventsAnswer = {
  readonly accepted: string[]
  readonly rejected: { readonly event_id: string; readonly reason: RejectReason }[]
}

type DownRule = {
  id: string
  company_id: string
  severity: Severity
  enabled: boolean
  all: boolean
  resolved: string[]
}

/** What the batch needs to know of servers, rules and agents. */
type Surroundings = {
  readonly serverIds: ReadonlySet<string>
  /** Machines in a subnet or datacenter: a wide-area incident may claim them. */
  readonly groupableIds: ReadonlySet<string>
  readonly rules: ReadonlyMap<string, { id: string; kind: string; company_id: string }>
  readonly downRules: ReadonlyMap<string, DownRule>
  readonly agentByServer: ReadonlyMap<string, string>
  readonly agentIds: ReadonlySet<string>
}

const pair = (companyId: string, id: string): string => `${companyId} ${id}`

/** The agent that an agent event is about: its label, else its series_key. */
function namedAgent(event: AlertEvent): string | null {
  const id = event.labels.agent_id ?? event.series_key.replace(/^agent:/, '')
  return isUuid(id) ? id.toLowerCase() : null
}

async function loadSurroundings(tx: Tx, events: readonly AlertEvent[]): Promise<Surroundings> {
  const serverIds = uuidList(new Set(events.map(event => event.server_id)))
  const companyIds = uuidList(new Set(events.map(event => event.company_id)))
  const ruleIds = uuidList(new Set(events.map(event => event.rule_id).filter(isUuid)))
  const named = events.filter(event => event.type.startsWith('agent.')).map(namedAgent)
  const agentIds = uuidList(new Set(named.filter(id => id !== null)))
  const servers = await tx.db.execute<{ id: string; company_id: string; is_groupable: boolean }>(sql`
    select id, company_id, (subnet_id is not null or datacenter is not null) as is_groupable
    from servers where id = any(${serverIds}::uuid[]) and deleted_at is null`)
  const rules = await tx.db.execute<{ id: string; kind: string; company_id: string }>(
    sql`select id, kind, company_id from monitoring_rules where id = any(${ruleIds}::uuid[])`,
  )
  const downRules = await tx.db.execute<DownRule>(sql`
    select id, company_id, severity, enabled, (scope->>'all')::boolean as all, resolved_server_ids::text[] as resolved
    from monitoring_rules where company_id = any(${companyIds}::uuid[]) and kind = 'agent_down' and deleted_at is null`)
  const agents = await tx.db.execute<{ id: string; company_id: string; server_id: string | null; state: string }>(sql`
    select id, company_id, server_id, state from monitoring_agents
    where id = any(${agentIds}::uuid[]) or (server_id = any(${serverIds}::uuid[]) and state <> 'revoked')
    order by enrolled_at`)
  return {
    serverIds: new Set(servers.map(row => pair(row.company_id, row.id))),
    groupableIds: new Set(servers.filter(row => row.is_groupable).map(row => row.id)),
    rules: new Map(rules.map(row => [row.id, row])),
    downRules: new Map(downRules.map(row => [row.company_id, row])),
    agentByServer: new Map(
      agents
        .filter(row => row.server_id !== null && row.state !== 'revoked')
        .map(row => [pair(row.company_id, row.server_id ?? ''), row.id]),
    ),
    agentIds: new Set(agents.map(row => pair(row.company_id, row.id))),
  }
}

function contextOf(event: AlertEvent, around: Surroundings, nowMs: number): EventContext {
  const known = around.rules.get(event.rule_id.toLowerCase())
  const down = around.downRules.get(event.company_id)
  const named = event.type.startsWith('agent.') ? namedAgent(event) : null
  const isNamedKnown = named !== null && around.agentIds.has(pair(event.company_id, named))
  return {
    newId: Bun.randomUUIDv7(),
    nowMs,
    rule: known && known.company_id === event.company_id ? known : null,
    agentDownRule: down
      ? {
          id: down.id,
          severity: down.severity,
          applies: down.enabled && (down.all || down.resolved.includes(event.server_id)),
        }
      : null,
    agentId: isNamedKnown ? named : (around.agentByServer.get(pair(event.company_id, event.server_id)) ?? null),
  }
}

async function loadProcessedSeqs(tx: Tx, events: readonly AlertEvent[]): Promise<Map<string, number>> {
  const records = events.map(event => ({
    server_id: event.server_id,
    rule_key: event.rule_id,
    series_key: event.series_key,
  }))
  const rows = await tx.db.execute<{ server_id: string; rule_key: string; series_key: string; seq: string }>(sql`
    select s.server_id, s.rule_key, s.series_key, s.seq from monitoring_event_seqs s
    join (select distinct server_id, rule_key, series_key from jsonb_to_recordset(${JSON.stringify(records)}::jsonb)
      as k (server_id uuid, rule_key text, series_key text)) k using (server_id, rule_key, series_key)`)
  return new Map(rows.map(row => [`${row.server_id}\n${row.rule_key}\n${row.series_key}`, Number(row.seq)]))
}

async function loadSeenIds(tx: Tx, eventIds: readonly string[]): Promise<Set<string>> {
  const rows = await tx.db.execute<{ event_id: string }>(sql`
    select event_id from monitoring_alert_events
    where event_id in (select jsonb_array_elements_text(${JSON.stringify(eventIds)}::jsonb))`)
  return new Set(rows.map(row => row.event_id))
}

type Applied = { readonly event: AlertEvent; readonly alertId: string | null }

async function storeLog(tx: Tx, applied: readonly Applied[], seqs: ReadonlyMap<string, number>): Promise<void> {
  const log = applied.map(({ event, alertId }) => ({
    // In the order of time: new rows stand together in the index, however large it is.
    id: Bun.randomUUIDv7(),
    company_id: event.company_id,
    server_id: event.server_id,
    alert_id: alertId,
    event_id: event.event_id,
    seq: event.seq,
    type: event.type,
    occurred_at: event.occurred_at,
    payload: event,
  }))
  await tx.db.execute(sql`
    insert into monitoring_alert_events (id, company_id, server_id, alert_id, event_id, seq, type, occurred_at, payload)
    select * from jsonb_to_recordset(${JSON.stringify(log)}::jsonb) as x (id uuid, company_id uuid, server_id uuid,
      alert_id uuid, event_id text, seq bigint, type text, occurred_at timestamptz, payload jsonb)
    on conflict (event_id) do nothing`)
  const newest = new Map(applied.map(({ event }) => [eventPairKey(event), event]))
  const marks = [...newest].map(([key, event]) => ({
    server_id: event.server_id,
    rule_key: event.rule_id,
    series_key: event.series_key,
    seq: seqs.get(key) ?? event.seq,
  }))
  await tx.db.execute(sql`
    insert into monitoring_event_seqs (server_id, rule_key, series_key, seq)
    select * from jsonb_to_recordset(${JSON.stringify(marks)}::jsonb) as x (server_id uuid, rule_key text, series_key text, seq bigint)
    on conflict (server_id, rule_key, series_key) do update set seq = greatest(monitoring_event_seqs.seq, excluded.seq)`)
}

/** Applies a batch. Seen events and old ones are accepted and dropped; a rejected event does not hinder the others. */
export async function takeEvents(hub: Hub, body: unknown): Promise<EventsAnswer> {
  const batch = batchOf(body)
  const accepted: string[] = []
  const rejected: EventsAnswer['rejected'] = []
  const reject = (event_id: string, type: string, reason: RejectReason) => {
    rejected.push({ event_id, reason })
    hub.metrics.events.inc({ type, result: reason })
  }
  const events: AlertEvent[] = []
  for (const raw of batch) {
    const event = eventOf(raw)
    if (typeof event === 'string')
      reject(raw.event_id, event === 'unsupported_type' ? 'other' : String(raw.type), event)
    else events.push(event)
  }
  if (events.length > 0)
    await inTransaction(hub.database.db, async tx => {
      for (const id of [...new Set(events.map(event => event.company_id))].sort()) await lockCompany(tx, id)
      const around = await loadSurroundings(tx, events)
      const known = events.filter(event => around.serverIds.has(pair(event.company_id, event.server_id)))
      const knownIds = new Set(known.map(event => event.event_id))
      for (const event of events)
        if (!knownIds.has(event.event_id)) reject(event.event_id, event.type, 'unknown_server')
      if (known.length === 0) return
      const told = await applyBatch(hub, tx, known, around)
      accepted.push(...new Set(known.map(event => event.event_id)))
      await tellLater(hub, tx, told, around.groupableIds)
    })
  return { accepted, rejected }
}

async function applyBatch(hub: Hub, tx: Tx, known: readonly AlertEvent[], around: Surroundings): Promise<Told[]> {
  const seen = await loadSeenIds(
    tx,
    known.map(event => event.event_id),
  )
  const seqs = await loadProcessedSeqs(tx, known)
  const book = await loadEventBook(tx, known)
  const applied: Applied[] = []
  let told: Told[] = []
  for (const event of known) {
    const key = eventPairKey(event)
    const isSeen = seen.has(event.event_id)
    if (isSeen || event.seq <= (seqs.get(key) ?? -1)) {
      hub.metrics.events.inc({ type: event.type, result: isSeen ? 'seen' : 'old' })
      continue
    }
    seen.add(event.event_id)
    seqs.set(key, event.seq)
    const outcome = applyEvent(book.viewOf(event), event, contextOf(event, around, hub.now()))
    for (const alert of outcome.changed) {
      book.store(alert)
      // Collectors send the machines of an incident before the incident, whose message is theirs too.
      if (alert.state === 'grouped') told = told.filter(item => item.alert.id !== alert.id)
    }
    applied.push({ event, alertId: outcome.alertId })
    if (outcome.notify) told.push(outcome.notify)
    hub.metrics.events.inc({ type: event.type, result: 'applied' })
  }
  if (applied.length === 0) return told
  await storeAlerts(tx, book.created(), book.changed())
  await storeLog(tx, applied, seqs)
  return told
}
