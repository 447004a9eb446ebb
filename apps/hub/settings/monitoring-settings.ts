// Settings of a company (decision G-117).
import { eq } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { reloadCollectors } from '../collectors/collector-jobs.ts'
import type { Hub } from '../hub-context.ts'
import { effectivePlan } from '../plans/effective-plan.ts'
import type { Executor } from '../platform/db/connect.ts'
import { settings } from '../platform/db/schema.ts'
import { inTransaction, lockCompany } from '../platform/db/transaction.ts'
import { notFound } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { touchCompanyAgents } from '../servers/servers.ts'

type Row = typeof settings.$inferSelect

export async function settingsOf(db: Executor, companyId: string): Promise<Row> {
  const [row] = await db.select().from(settings).where(eq(settings.companyId, companyId))
  if (!row) throw notFound()
  return row
}

export function presentSettings(hub: Hub, row: Row) {
  const isGrace = row.metricsRetentionGraceUntil !== null && row.metricsRetentionGraceUntil.getTime() > hub.now()
  return {
    company_id: row.companyId,
    default_interval: row.defaultInterval,
    auto_create_server: row.autoCreateServer,
    group_down_min: row.groupDownMin,
    group_down_ratio: row.groupDownRatio,
    group_down_window_seconds: row.groupDownWindowSeconds,
    retention_note: row.retentionNote,
    alert_event_retention_days: row.alertEventRetentionDays ?? hub.config['events.retention_days'],
    metrics_retention_effective_days: row.metricsRetentionEffectiveDays,
    metrics_retention_previous_days: isGrace ? row.metricsRetentionPreviousDays : null,
    metrics_retention_grace_until: isGrace ? row.metricsRetentionGraceUntil : null,
    metrics_retention_changed_at: row.metricsRetentionChangedAt,
  }
}

type SettingsInput = {
  readonly default_interval?: number | undefined
  readonly auto_create_server?: boolean | undefined
  readonly group_down_min?: number | null | undefined
  readonly group_down_ratio?: number | null | undefined
  readonly group_down_window_seconds?: number | null | undefined
  readonly retention_note?: string | null | undefined
  readonly alert_event_retention_days?: number | undefined
}

/** Changes what is given. */
export async function updateSettings(context: RouteContext, given: SettingsInput): Promise<Row> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await settingsOf(tx.db, companyId)
    const set: Partial<Row> = {
      ...(given.default_interval === undefined ? {} : { defaultInterval: given.default_interval }),
      ...(given.auto_create_server === undefined ? {} : { autoCreateServer: given.auto_create_server }),
      ...(given.group_down_min === undefined ? {} : { groupDownMin: given.group_down_min }),
      ...(given.group_down_ratio === undefined ? {} : { groupDownRatio: given.group_down_ratio }),
      ...(given.group_down_window_seconds === undefined
        ? {}
        : { groupDownWindowSeconds: given.group_down_window_seconds }),
      ...(given.retention_note === undefined ? {} : { retentionNote: given.retention_note }),
      ...(given.alert_event_retention_days === undefined
        ? {}
        : { alertEventRetentionDays: given.alert_event_retention_days }),
    }
    if (Object.keys(set).length === 0) return before
    await tx.db.update(settings).set(set).where(eq(settings.companyId, companyId))
    const after = await settingsOf(tx.db, companyId)
    const changes = changesBetween(presentSettings(hub, before), presentSettings(hub, after))
    if (Object.keys(changes).length === 0) return after
    // Every agent record carries the interval, so all of them become newer.
    if (after.defaultInterval !== before.defaultInterval) await touchCompanyAgents(hub, tx, companyId)
    await reloadCollectors(hub, tx, 'settings')
    await auditRequest(tx, context, 'settings.update', { type: 'settings', id: companyId, name: null }, changes)
    return after
  })
}

/** The retention that is in force, and a grace that is running. */
export async function retentionOf(hub: Hub, companyId: string) {
  const [row, plan] = await Promise.all([
    settingsOf(hub.database.db, companyId),
    effectivePlan(hub.database.db, companyId),
  ])
  const shown = presentSettings(hub, row)
  return {
    plan: plan.code,
    metrics_retention_effective_days: shown.metrics_retention_effective_days,
    metrics_retention_previous_days: shown.metrics_retention_previous_days,
    metrics_retention_grace_until: shown.metrics_retention_grace_until,
    metrics_retention_changed_at: shown.metrics_retention_changed_at,
    retention_note: shown.retention_note,
  }
}
