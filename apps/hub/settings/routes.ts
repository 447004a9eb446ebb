// REST: /monitoring/settings (decision G-117): per company, with the retention columns to read only.

import { type Static, Type } from '@sinclair/typebox'
import { eq } from 'drizzle-orm'
import { limits } from '../../../core/limits.ts'
import { auditRequest, changesBetween } from '../audit/audit.ts'
import { reloadCollectors } from '../collectors/collector-jobs.ts'
import { effectivePlan } from '../companies/plan.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { settings } from '../platform/db/schema.ts'
import { inTransaction, lockCompany } from '../platform/db/transaction.ts'
import { notFound } from '../platform/http/api-error.ts'
import { boolean, integer, optional, text } from '../platform/http/request-schema.ts'
import { amount, answer, id, named, nullable, string, time } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { touchCompanyAgents } from '../servers/servers.ts'

const TAG = 'Monitoring overview and settings'
const COUNT_MAX = 1_000_000
const WINDOW_SECONDS_MAX = 86_400

const body = Type.Object({
  default_interval: Type.Optional(integer(limits.intervalSecondsMin, limits.intervalSecondsMax)),
  auto_create_server: Type.Optional(boolean()),
  group_down_min: optional(integer(1, COUNT_MAX)),
  group_down_ratio: optional(Type.Number({ exclusiveMinimum: 0, maximum: 1 })),
  group_down_window_seconds: optional(integer(1, WINDOW_SECONDS_MAX)),
  retention_note: optional(text(1000)),
  alert_event_retention_days: Type.Optional(integer(1, 3650)),
})

const retention = {
  metrics_retention_effective_days: nullable(amount()),
  metrics_retention_previous_days: nullable(amount()),
  metrics_retention_grace_until: nullable(time()),
  metrics_retention_changed_at: nullable(time()),
}
const settingsAnswer = named('MonitoringSettings', {
  company_id: id(),
  default_interval: amount(),
  auto_create_server: Type.Boolean(),
  group_down_min: nullable(amount()),
  group_down_ratio: nullable(Type.Number()),
  group_down_window_seconds: nullable(amount()),
  retention_note: nullable(string()),
  alert_event_retention_days: amount(),
  ...retention,
})
const retentionAnswer = named('Retention', { plan: string(), ...retention, retention_note: nullable(string()) })

type Row = typeof settings.$inferSelect

export async function settingsOf(db: Executor, companyId: string): Promise<Row> {
  const [row] = await db.select().from(settings).where(eq(settings.companyId, companyId))
  if (!row) throw notFound()
  return row
}

function present(hub: Hub, row: Row) {
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

async function update(context: RouteContext, given: Static<typeof body>): Promise<Row> {
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
    const changes = changesBetween(present(hub, before), present(hub, after))
    if (Object.keys(changes).length === 0) return after
    // Every agent record carries the interval, so all of them become newer.
    if (after.defaultInterval !== before.defaultInterval) await touchCompanyAgents(hub, tx, companyId)
    await reloadCollectors(hub, tx, 'settings')
    await auditRequest(tx, context, 'settings.update', { type: 'settings', id: companyId, name: null }, changes)
    return after
  })
}

export const settingsRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/monitoring/settings',
    tag: TAG,
    summary: 'Show the settings',
    permissions: ['monitoring.view'],
    answer: answer(settingsAnswer),
    handle: async ({ hub, companyId }) => ({ data: present(hub, await settingsOf(hub.database.db, companyId)) }),
  }),
  route({
    method: 'PATCH',
    path: '/monitoring/settings',
    tag: TAG,
    summary: 'Change the settings',
    permissions: ['monitoring.manage'],
    body,
    answer: answer(settingsAnswer),
    handle: async context => ({ data: present(context.hub, await update(context, context.body)) }),
  }),
  route({
    method: 'GET',
    path: '/monitoring/settings/retention',
    tag: TAG,
    summary: 'Effective retention and a running grace',
    permissions: ['monitoring.view'],
    answer: answer(retentionAnswer),
    async handle({ hub, companyId }) {
      const [row, plan] = await Promise.all([
        settingsOf(hub.database.db, companyId),
        effectivePlan(hub.database.db, companyId),
      ])
      const shown = present(hub, row)
      return {
        data: {
          plan: plan.code,
          metrics_retention_effective_days: shown.metrics_retention_effective_days,
          metrics_retention_previous_days: shown.metrics_retention_previous_days,
          metrics_retention_grace_until: shown.metrics_retention_grace_until,
          metrics_retention_changed_at: shown.metrics_retention_changed_at,
          retention_note: shown.retention_note,
        },
      }
    },
  }),
]
