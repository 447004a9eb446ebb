// Alerts between their rows and the pure lifecycle: turned once here, and stored many at a time.
import { sql } from 'drizzle-orm'
import type { Alert } from '../../../core/lifecycle/alert.ts'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
import { alerts } from '../platform/db/schema.ts'
import { statementOfRows } from '../platform/db/statement-of-rows.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'

type Row = typeof alerts.$inferSelect

/** The columns of an alert's life; the others are of people. */
const READ = [
  'id',
  'companyId',
  'type',
  'serverId',
  'agentId',
  'ruleId',
  'ruleKey',
  'seriesKey',
  'labels',
  'severity',
  'state',
  'openedAt',
  'resolvedAt',
  'resolvedReason',
  'lastValue',
  'peakValue',
  'threshold',
  'suppressed',
  'suppressReason',
  'flapping',
  'groupId',
  'groupTotal',
  'groupMemberIds',
  'eventCount',
  'lastEventSeq',
  'notifiedAt',
  'heldBack',
  'recoveryUntold',
] as const satisfies readonly (keyof Row)[]

/** As drizzle gives it, or as the driver does. */
type Instant = Date | string
type Turned = 'openedAt' | 'resolvedAt' | 'notifiedAt' | 'lastEventSeq'
type StoredAlert = Omit<Pick<Row, (typeof READ)[number]>, Turned> & {
  readonly openedAt: Instant
  readonly resolvedAt: Instant | null
  readonly notifiedAt: Instant | null
  readonly lastEventSeq: number | string
}

const msOf = (at: Instant): number => (typeof at === 'string' ? Date.parse(at) : at.getTime())
const msOrNull = (at: Instant | null): number | null => (at === null ? null : msOf(at))

export const toAlert = (row: StoredAlert): Alert => ({
  id: row.id,
  companyId: row.companyId,
  type: row.type,
  serverId: row.serverId,
  agentId: row.agentId,
  ruleId: row.ruleId,
  ruleKey: row.ruleKey,
  seriesKey: row.seriesKey,
  labels: row.labels,
  severity: row.severity,
  state: row.state,
  openedAtMs: msOf(row.openedAt),
  resolvedAtMs: msOrNull(row.resolvedAt),
  resolvedReason: row.resolvedReason,
  lastValue: row.lastValue,
  peakValue: row.peakValue,
  threshold: row.threshold,
  suppressed: row.suppressed,
  suppressReason: row.suppressReason,
  flapping: row.flapping,
  groupId: row.groupId,
  groupTotal: row.groupTotal,
  groupMemberIds: row.groupMemberIds,
  eventCount: row.eventCount,
  lastEventSeq: Number(row.lastEventSeq),
  notifiedAtMs: msOrNull(row.notifiedAt),
  heldBack: row.heldBack,
  recoveryUntold: row.recoveryUntold,
})

const BY_ID = fixedStatement<'ids'>(
  value => sql`
    select ${sql.join(
      READ.map(name => sql`${alerts[name]} as ${sql.identifier(name)}`),
      sql`, `,
    )}
    from ${alerts} where ${alerts.id} = any(${value('ids')}::uuid[])`,
)

/** The alerts with these ids. */
export async function alertsById(tx: Tx, ids: readonly string[]): Promise<Alert[]> {
  if (ids.length === 0) return []
  const rows = await tx.db.execute<StoredAlert>(BY_ID({ ids: uuidList(ids) }))
  return rows.map(toAlert)
}

const iso = (ms: number | null): string | undefined => (ms === null ? undefined : new Date(ms).toISOString())

/** The columns that change. */
const toChange = (alert: Alert) => ({
  id: alert.id,
  severity: alert.severity,
  state: alert.state,
  resolved_at: iso(alert.resolvedAtMs),
  resolved_reason: alert.resolvedReason,
  last_value: alert.lastValue,
  peak_value: alert.peakValue,
  threshold: alert.threshold,
  suppressed: alert.suppressed,
  suppress_reason: alert.suppressReason,
  flapping: alert.flapping,
  group_id: alert.groupId,
  group_total: alert.groupTotal,
  group_member_ids: alert.groupMemberIds,
  event_count: alert.eventCount,
  last_event_seq: alert.lastEventSeq,
  notified_at: iso(alert.notifiedAtMs),
  held_back: alert.heldBack,
  recovery_untold: alert.recoveryUntold,
})

const CHANGING = {
  id: 'uuid',
  severity: 'text',
  state: 'text',
  resolved_at: 'timestamptz',
  resolved_reason: 'text',
  last_value: 'float8',
  peak_value: 'float8',
  threshold: 'float8',
  suppressed: 'boolean',
  suppress_reason: 'text',
  flapping: 'boolean',
  group_id: 'uuid',
  group_total: 'integer',
  group_member_ids: 'text',
  event_count: 'integer',
  last_event_seq: 'bigint',
  notified_at: 'timestamptz',
  held_back: 'text',
  recovery_untold: 'boolean',
} as const

/** The columns of a new alert. */
const toRecord = (alert: Alert) => ({
  ...toChange(alert),
  company_id: alert.companyId,
  type: alert.type,
  server_id: alert.serverId,
  agent_id: alert.agentId,
  rule_id: alert.ruleId,
  rule_key: alert.ruleKey,
  series_key: alert.seriesKey,
  labels: alert.labels,
  opened_at: iso(alert.openedAtMs),
})

/** One statement for all changes: the rows are matched by id. */
const update = statementOfRows(
  CHANGING,
  rows => sql`
    update monitoring_alerts a set severity = x.severity, state = x.state, resolved_at = x.resolved_at,
      resolved_reason = x.resolved_reason, last_value = x.last_value, peak_value = x.peak_value, threshold = x.threshold,
      suppressed = x.suppressed, suppress_reason = x.suppress_reason, flapping = x.flapping, group_id = x.group_id,
      group_total = x.group_total, group_member_ids = x.group_member_ids::uuid[], event_count = x.event_count,
      last_event_seq = x.last_event_seq, notified_at = x.notified_at, held_back = x.held_back,
      recovery_untold = x.recovery_untold,
      -- An alert that opens again waits for somebody anew.
      acknowledged_by = case when a.state in ('resolved', 'acknowledged') and x.state = 'open' then null else a.acknowledged_by end,
      acknowledged_at = case when a.state in ('resolved', 'acknowledged') and x.state = 'open' then null else a.acknowledged_at end
    from ${rows} where a.id = x.id`,
)

const insert = statementOfRows(
  {
    ...CHANGING,
    company_id: 'uuid',
    type: 'text',
    server_id: 'uuid',
    agent_id: 'uuid',
    rule_id: 'uuid',
    rule_key: 'text',
    series_key: 'text',
    labels: 'jsonb',
    opened_at: 'timestamptz',
  },
  rows => sql`
    insert into monitoring_alerts (id, severity, state, resolved_at, resolved_reason, last_value, peak_value, threshold,
      suppressed, suppress_reason, flapping, group_id, group_total, group_member_ids, event_count, last_event_seq,
      notified_at, held_back, recovery_untold, company_id, type, server_id, agent_id, rule_id, rule_key, series_key, labels, opened_at)
    select x.id, x.severity, x.state, x.resolved_at, x.resolved_reason, x.last_value, x.peak_value, x.threshold,
      x.suppressed, x.suppress_reason, x.flapping, x.group_id, x.group_total, x.group_member_ids::uuid[], x.event_count,
      x.last_event_seq, x.notified_at, x.held_back, x.recovery_untold, x.company_id, x.type, x.server_id, x.agent_id, x.rule_id,
      x.rule_key, x.series_key, x.labels, x.opened_at from ${rows}`,
)

/** Stores new alerts and changed ones. Changed ones go first: a key that becomes free can be taken by a new alert. */
export async function storeAlerts(tx: Tx, created: readonly Alert[], changed: readonly Alert[]): Promise<void> {
  if (changed.length > 0) await tx.db.execute(update(changed.map(toChange)))
  if (created.length > 0) await tx.db.execute(insert(created.map(toRecord)))
}
