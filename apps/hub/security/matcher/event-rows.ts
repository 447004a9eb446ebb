// Rows of security_finding_events, the log of what the matcher told, and what was opened and resolved each day.
import { sql } from 'drizzle-orm'
import { statementOfRows } from '../../platform/db/statement-of-rows.ts'
import type { Tx } from '../../platform/db/transaction.ts'
import type { Envelope } from './event-parse.ts'
import type { KnownHost } from './known-hosts.ts'

export type EventRecord = { readonly event: Envelope; readonly host: KnownHost; readonly findingId: string | null }

const known = statementOfRows(
  { event_id: 'text' },
  ids => sql`
    select event_id from security_finding_events where event_id in (select x.event_id collate "C" from ${ids})`,
)

/** The ids of events that are stored already. */
export async function loadKnownIds(tx: Tx, events: readonly Envelope[]): Promise<Set<string>> {
  if (events.length === 0) return new Set()
  const rows = await tx.db.execute<{ event_id: string }>(known(events))
  return new Set(rows.map(row => row.event_id))
}

const insert = statementOfRows(
  {
    event_id: 'text',
    company_id: 'uuid',
    host_id: 'uuid',
    server_id: 'uuid',
    finding_id: 'uuid',
    seq: 'bigint',
    type: 'text',
    occurred_at: 'timestamptz',
    received_at: 'timestamptz',
    payload: 'jsonb',
  },
  rows => sql`
    insert into security_finding_events
      (event_id, company_id, host_id, server_id, finding_id, seq, type, occurred_at, payload, received_at)
    select x.event_id, x.company_id, x.host_id, x.server_id, x.finding_id, x.seq, x.type, x.occurred_at, x.payload, x.received_at
    from ${rows}`,
)

/** The unique key of events. */
export const EVENTS_KEY = 'security_finding_events_pkey'

/**
 * Stores events, all transactions in one order of ids. Violates EVENTS_KEY when one is known, or another one was first.
 */
export async function storeEvents(tx: Tx, records: readonly EventRecord[], nowMs: number): Promise<void> {
  const receivedAt = new Date(nowMs).toISOString()
  const inOrder = records.toSorted((one, other) => (one.event.event_id < other.event.event_id ? -1 : 1))
  const log = inOrder.map(({ event, host, findingId }) => ({
    event_id: event.event_id,
    company_id: host.companyId,
    host_id: host.hostId,
    server_id: host.serverId,
    finding_id: findingId,
    seq: event.seq,
    type: event.type,
    occurred_at: new Date(event.occurred_at).toISOString(),
    received_at: receivedAt,
    payload: event.payload,
  }))
  await tx.db.execute(insert(log))
}

/** Adds to what was opened and resolved, by company and day in UTC. */
export async function storeDays(
  tx: Tx,
  days: ReadonlyMap<string, { readonly opened: number; readonly resolved: number }>,
): Promise<void> {
  if (days.size === 0) return
  const changes = [...days].map(([key, counts]) => {
    const [company_id, day] = key.split(' ')
    return { company_id, day, ...counts }
  })
  await tx.db.execute(sql`
    insert into security_finding_day_changes (company_id, day, opened, resolved)
    select x.company_id, x.day, x.opened, x.resolved
    from jsonb_to_recordset(${JSON.stringify(changes)}::jsonb) as x (company_id uuid, day date, opened bigint, resolved bigint)`)
}
