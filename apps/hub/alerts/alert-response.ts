// Alerts, their log and their counts as the API answers them (decision G-94).
import { Type } from '@sinclair/typebox'
import { eventTypes } from '../../../core/alerting/evaluate/event.ts'
import { ruleKinds, severities } from '../../../core/alerting/rules/rule.ts'
import { alertStates } from '../../../core/lifecycle/alert.ts'
import { oneOf } from '../platform/http/request-schema.ts'
import {
  amount,
  anyObject,
  id,
  listed,
  named,
  nullable,
  reference,
  serverReference,
  string,
  texts,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'

const group = named('AlertGroup', {
  key: string(),
  total: nullable(amount()),
  member_server_ids: listed(id()),
})
const number = () => nullable(Type.Number())

const alert = {
  id: id(),
  company_id: id(),
  type: oneOf(['threshold', 'check', 'no_data', 'agent_down', 'group_down']),
  server: serverReference,
  server_id: id(),
  agent_id: nullable(id()),
  rule: nullable(named('RuleReference', { id: id(), name: string(), kind: oneOf(ruleKinds) })),
  rule_id: nullable(id()),
  series_key: string(),
  labels: texts(),
  severity: oneOf(severities),
  state: oneOf(alertStates),
  opened_at: time(),
  resolved_at: nullable(time()),
  resolved_reason: nullable(string()),
  last_value: number(),
  peak_value: number(),
  threshold: number(),
  suppressed: Type.Boolean(),
  suppress_reason: nullable(string()),
  flapping: Type.Boolean(),
  group_id: nullable(id()),
  group: nullable(group),
  acknowledged_by: nullable(reference),
  acknowledged_at: nullable(time()),
  closed_by: nullable(reference),
  closed_at: nullable(time()),
  event_count: amount(),
  last_event_seq: amount(),
}
export const alertResponse = named('Alert', alert)

export const alertEventResponse = named('AlertEvent', {
  id: id(),
  alert_id: nullable(id()),
  event_id: string(),
  seq: amount(),
  type: wordOf(eventTypes),
  occurred_at: time(),
  payload: anyObject(),
})

export const alertCommentResponse = named('AlertComment', {
  id: id(),
  alert_id: id(),
  user: nullable(reference),
  action: wordOf(['comment', 'acknowledge', 'close']),
  comment: string(),
  created_at: time(),
})

/** One alert, with what people wrote to it, oldest first. */
export const alertWithComments = named('AlertWithComments', { ...alert, comments: listed(alertCommentResponse) })

const bySeverity = Type.Unsafe<Readonly<Record<string, number>>>(
  Type.Object({ info: amount(), warning: amount(), critical: amount() }),
)

export const alertStatsResponse = named('AlertStats', {
  active: amount(),
  acknowledged: amount(),
  suppressed: amount(),
  by_state: Type.Unsafe<Readonly<Record<string, number>>>(
    Type.Object({ open: amount(), acknowledged: amount(), resolved: amount(), closed: amount(), grouped: amount() }),
  ),
  by_severity: bySeverity,
})

export const overviewResponse = Type.Object({
  servers: Type.Object({ total: amount(), online: amount(), down: amount(), unknown: amount() }),
  agents: Type.Object({ total: amount(), online: amount(), offline: amount(), pending: amount() }),
  alerts: Type.Object({ active: amount(), acknowledged: amount(), suppressed: amount(), by_severity: bySeverity }),
  groups_open: amount(),
  top_servers: listed(Type.Object({ server: serverReference, active_alerts: amount() })),
  recent_alerts: listed(alertResponse),
})

export const timelineDay = Type.Object({
  day: Type.String({ format: 'date' }),
  opened: amount(),
  resolved: amount(),
})
