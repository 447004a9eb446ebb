// An event as the collector sends it to the hub (document 2 "Envelope" and "Types"; decisions G-78, G-80). Its id:
// event-id.ts.
import type { Severity } from '../rules/rule.ts'

export const eventTypes = [
  'alert.opened',
  'alert.resolved',
  'alert.reminder',
  'alert.flapping',
  'agent.down',
  'agent.up',
  'group_down',
  'group_update',
  'group_resolved',
] as const
export type EventType = (typeof eventTypes)[number]

/** Why an alert ends, and where that is decided. Ends that the hub decides are no events. */
const resolveReasons = [
  // evaluate-sample.ts; of a whole server or a group agent-down.ts and group-down.ts; of a flapping one sweep.ts.
  'recovered',
  // no-data.ts.
  'no_data',
  // evaluate-sample.ts, for an alert that was opened for want of data.
  'data_returned',
  // The other three: rules/apply-rule-change.ts.
  'rule_changed',
  'out_of_scope',
  'rule_removed',
] as const
export type ResolveReason = (typeof resolveReasons)[number]
export type SuppressReason = 'maintenance' | 'silence' | 'decommissioned'

/** The rule_id of events that do not come from a company's rule. */
export const agentDownRuleId = 'agent_down'
export const groupDownRuleId = 'group_down'

/** The envelope. Every field is always present; the extra fields of a type stand beside them (document 2 "Types"). */
export type AlertEvent = {
  readonly event_id: string
  readonly type: EventType
  readonly seq: number
  /** RFC 3339 UTC. */
  readonly occurred_at: string
  readonly company_id: string
  readonly server_id: string
  readonly rule_id: string
  readonly rule_version: number
  readonly series_key: string
  readonly severity: Severity
  readonly value: number | null
  readonly threshold: number | null
  readonly suppressed: boolean
  readonly suppress_reason: SuppressReason | null
  readonly group_key: string | null
  readonly labels: Readonly<Record<string, string>>
  readonly reason?: ResolveReason | 'entered' | 'exited'
  readonly duration_seconds?: number
  readonly peak_value?: number | null
  readonly transitions?: number
  readonly member_server_ids?: readonly string[]
  readonly group_total?: number
}
