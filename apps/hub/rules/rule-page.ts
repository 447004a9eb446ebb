// What the page of a rule shows beside the rule: its alerts, its versions, and the silences that meet it.
import { sql } from 'drizzle-orm'
import type { Severity } from '../../../core/alerting/rules/rule.ts'
import { DAY_MS } from '../../../core/limits.ts'
import type { Executor } from '../platform/db/connect.ts'
import type { AuditChanges } from '../platform/db/schema-identity.ts'

const ALERTS_SHOWN = 20
const VERSIONS_SHOWN = 20
const SILENCES_SHOWN = 20
const ALERTS_DAYS = 30

type RuleAlert = {
  id: string
  server_id: string
  server_name: string
  series_key: string
  severity: Severity
  state: string
  opened_at: string
  resolved_at: string | null
  last_value: number | null
  peak_value: number | null
}

/** The newest alerts of a rule within the last 30 days. */
export const alertsOfRule = async (
  db: Executor,
  companyId: string,
  ruleId: string,
  nowMs: number,
): Promise<RuleAlert[]> =>
  db.execute<RuleAlert>(sql`
    select x.id, x.server_id, s.name as server_name, x.series_key, x.severity, x.state, x.opened_at, x.resolved_at,
      x.last_value, x.peak_value
    from monitoring_alerts x join servers s on s.id = x.server_id
    where x.company_id = ${companyId} and x.rule_id = ${ruleId}
      and x.opened_at >= ${new Date(nowMs - ALERTS_DAYS * DAY_MS).toISOString()}
    order by x.opened_at desc, x.id desc limit ${ALERTS_SHOWN}`)

type RuleVersion = { action: string; actor_name: string | null; created_at: string; changes: AuditChanges }

/** What was done to a rule, newest first, from the audit log. */
export const versionsOfRule = async (db: Executor, companyId: string, ruleId: string): Promise<RuleVersion[]> =>
  db.execute<RuleVersion>(sql`
    select action, actor_name, created_at, changes from audit_log
    where company_id = ${companyId} and subject_type = 'rule' and subject_id = ${ruleId}
    order by created_at desc, position desc limit ${VERSIONS_SHOWN}`)

type MeetingSilence = { id: string; reason: string; starts_at: string; ends_at: string; is_of_rule: boolean }

/** Silences, running or to come, that cover a server of the rule, or name the rule. */
export const silencesOfRule = async (db: Executor, companyId: string, ruleId: string): Promise<MeetingSilence[]> =>
  db.execute<MeetingSilence>(sql`
    select q.id, q.reason, q.starts_at, q.ends_at, r.id = any(q.rule_ids) as is_of_rule
    from monitoring_silences q, monitoring_rules r
    where r.id = ${ruleId} and r.company_id = ${companyId} and q.company_id = ${companyId}
      and q.deleted_at is null and q.cancelled_at is null and q.ends_at > now()
      and (cardinality(q.rule_ids) = 0 or r.id = any(q.rule_ids))
      and ((q.scope->>'all')::boolean or (r.scope->>'all')::boolean or q.resolved_server_ids && r.resolved_server_ids)
    order by q.starts_at, q.id limit ${SILENCES_SHOWN}`)
