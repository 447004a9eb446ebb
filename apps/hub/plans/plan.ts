// The effective plan of a company, and the effects of a change (decision G-05; document 1 "Settings", retention rule).
import { sql } from 'drizzle-orm'
import { changeRetention } from '../../../core/retention/plan-change.ts'
import { reloadCollectors } from '../collectors/collector-jobs.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import type { PlanOverrides } from '../platform/db/schema-identity.ts'
import type { Tx } from '../platform/db/transaction.ts'

type EffectivePlan = {
  readonly code: string
  readonly agentQuota: number | null
  readonly metricsRetentionDays: number | null
  /** The company that owns the quota: the nearest with its own plan or quota, else the root. */
  readonly quotaCompanyId: string
  /** The most scan hosts; null: no limit. */
  readonly scanHosts: number | null
  /** How long events of findings are kept; null: for ever. */
  readonly scanHistoryDays: number | null
  readonly scanMinIntervalHours: number
  /** The nearest company with its own plan, else the root: it owns what overrides cannot change. */
  readonly planCompanyId: string
}

type PlanRow = {
  code: string
  agent_quota: number | null
  metrics_retention_days: number | null
  scan_hosts: number | null
  scan_history_days: number | null
  scan_min_interval_hours: number
}
type ChainRow = Omit<PlanRow, 'code'> & {
  id: string
  plan_overrides: PlanOverrides
  is_running: boolean
  code: string | null
}

const PLAN_COLUMNS = sql`p.code, p.agent_quota, p.metrics_retention_days, p.scan_hosts, p.scan_history_days,
  p.scan_min_interval_hours`
const NO_PLAN: PlanRow = {
  code: 'free',
  agent_quota: 3,
  metrics_retention_days: 7,
  scan_hosts: 1,
  scan_history_days: 30,
  scan_min_interval_hours: 24,
}

/**
 * The company's own plan while it has not expired, else its parent's effective plan, else free. The company's overrides
 * replace single values of it, until its plan expires.
 */
export async function effectivePlan(db: Executor, companyId: string): Promise<EffectivePlan> {
  const chain = await db.execute<ChainRow>(sql`
    with recursive chain as (
      select id, parent_id, plan_code, plan_expires_at, plan_overrides, 0 as depth from companies where id = ${companyId}
      union all select c.id, c.parent_id, c.plan_code, c.plan_expires_at, c.plan_overrides, chain.depth + 1
        from companies c join chain on c.id = chain.parent_id where chain.depth < 32)
    select chain.id, chain.plan_overrides, coalesce(chain.plan_expires_at > now(), true) as is_running,
      ${PLAN_COLUMNS}
    from chain left join plans p on p.code = chain.plan_code order by depth`)
  const overrides: PlanOverrides[] = []
  let base: PlanRow | null = null
  let quotaCompanyId: string | null = null
  let planCompanyId: string | null = null
  for (const row of chain) {
    if (!row.is_running) continue
    if (row.code !== null || row.plan_overrides.agent_quota !== undefined) quotaCompanyId ??= row.id
    overrides.push(row.plan_overrides)
    if (row.code !== null) {
      base = { ...row, code: row.code }
      planCompanyId = row.id
      break
    }
  }
  if (!base) {
    const [free] = await db.execute<PlanRow>(sql`select ${PLAN_COLUMNS} from plans p where p.code = 'free'`)
    base = free ?? NO_PLAN
  }
  const root = chain.at(-1)?.id ?? companyId
  // From the farthest ancestor to the company itself: the nearest override wins.
  const merged: PlanOverrides = Object.assign({}, ...overrides.reverse())
  return {
    code: base.code,
    agentQuota: merged.agent_quota === undefined ? base.agent_quota : merged.agent_quota,
    metricsRetentionDays:
      merged.metrics_retention_days === undefined ? base.metrics_retention_days : merged.metrics_retention_days,
    quotaCompanyId: quotaCompanyId ?? root,
    scanHosts: base.scan_hosts,
    scanHistoryDays: base.scan_history_days,
    scanMinIntervalHours: base.scan_min_interval_hours,
    planCompanyId: planCompanyId ?? root,
  }
}

type RetentionRow = {
  effective: number | null
  previous: number | null
  grace_until: string | null
  changed_at: string | null
}

const toMs = (value: string | null): number | null => (value === null ? null : new Date(value).getTime())
const toIso = (value: number | null): string | null => (value === null ? null : new Date(value).toISOString())

/**
 * Applies the retention rule to one company with its settings row locked. True when the effective retention changed.
 */
async function applyRetentionOf(tx: Tx, companyId: string, nowMs: number): Promise<boolean> {
  const [row] = await tx.db.execute<RetentionRow>(sql`
    select metrics_retention_effective_days as effective, metrics_retention_previous_days as previous,
      metrics_retention_grace_until as grace_until, metrics_retention_changed_at as changed_at
    from monitoring_settings where company_id = ${companyId} for update`)
  if (!row) return false
  const before = {
    effectiveDays: row.effective,
    previousDays: row.previous,
    graceUntilMs: toMs(row.grace_until),
    changedAtMs: toMs(row.changed_at),
  }
  const plan = await effectivePlan(tx.db, companyId)
  const after = changeRetention(before, plan.metricsRetentionDays, nowMs)
  if (after === before) return false
  await tx.db.execute(sql`
    update monitoring_settings set metrics_retention_effective_days = ${after.effectiveDays},
      metrics_retention_previous_days = ${after.previousDays}, metrics_retention_grace_until = ${toIso(after.graceUntilMs)},
      metrics_retention_changed_at = ${toIso(after.changedAtMs)} where company_id = ${companyId}`)
  return true
}

/** Applies the retention rule to a company and everything below it, after a change of plan, expiry or parent. */
export async function applyRetention(hub: Hub, tx: Tx, companyId: string): Promise<void> {
  const family = await tx.db.execute<{ id: string }>(sql`
    with recursive tree as (
      select id, 0 as depth from companies where id = ${companyId}
      union all select c.id, t.depth + 1 from companies c join tree t on c.parent_id = t.id where t.depth < 32)
    select id from tree order by depth, id`)
  let hasChanged = false
  for (const { id } of family) hasChanged = (await applyRetentionOf(tx, id, hub.now())) || hasChanged
  if (hasChanged) await reloadCollectors(hub, tx, 'settings')
}
