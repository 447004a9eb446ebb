// Events and journal records as a store of the evaluation keeps them, of one server that the tests name.
import type { JournalRecord } from '../../core/alerting/durability/journal-record.ts'
import type { AlertEvent } from '../../core/alerting/evaluate/event.ts'
import { eventId } from '../../core/alerting/evaluate/event-id.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'

export const eventCompany = '11111111-1111-4111-8111-111111111111'
export const eventServer = '22222222-2222-4222-8222-222222222222'
export const eventAgent = '33333333-3333-4333-8333-333333333333'
export const eventShard = shardOfServer(eventServer)

export const alertEvent = (
  seq: number,
  type: AlertEvent['type'] = 'alert.opened',
  changes: Partial<AlertEvent> = {},
): AlertEvent => ({
  event_id: eventId(eventServer, 'rule', 'cpu_usage_percent', seq, type),
  type,
  seq,
  occurred_at: new Date(seq * 1000).toISOString(),
  company_id: eventCompany,
  server_id: eventServer,
  rule_id: 'rule',
  rule_version: 1,
  series_key: type.startsWith('agent.') ? `agent:${eventAgent}` : 'cpu_usage_percent',
  severity: 'critical',
  value: 1,
  threshold: 1,
  suppressed: false,
  suppress_reason: null,
  group_key: null,
  labels: {},
  ...changes,
})

const owner = { companyId: eventCompany, serverId: eventServer, shard: eventShard }

/** A record that ends something: it goes with the next snapshot. */
export const closedRecord = (leftAtMs: number): JournalRecord => ({
  ...owner,
  kind: 'left',
  key: 'k',
  agentIds: [eventAgent],
  leftAtMs,
})

export const presenceRecord = (state: 'down' | 'up'): JournalRecord => ({
  ...owner,
  kind: 'presence',
  key: 'k',
  presence: { agentId: eventAgent, agentWord: 1, state, lastSeenMs: 1, intervalSeconds: 30, downSinceMs: 1, seq: 1 },
})
