// What a changed plan does to the retention of a company and of those below it (document 1 "Settings", retention rule).
import { sql } from 'drizzle-orm'
import { changeRetention } from '../../../core/retention/plan-change.ts'
import { reloadCollectors } from '../collectors/collector-jobs.ts'
import type { Hub } from '../hub-context.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { effectivePlan } from './effective-plan.ts'

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
