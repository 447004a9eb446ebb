// GET /settings/{company}: the settings of a company that collectors need (document 1 "Settings").
import { sql } from 'drizzle-orm'
import { notFound } from '../platform/http/api-error.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'

/** Throws 404. */
export async function collectorSettings({ hub, params }: RouteContext) {
  const companyId = params.company_id ?? ''
  if (!isUuid(companyId)) throw notFound()
  const [row] = await hub.database.db.execute<Record<string, unknown> & { grace_until: string | null }>(sql`
    select company_id, group_down_min, group_down_ratio, group_down_window_seconds,
      metrics_retention_effective_days as metrics_retention_days, metrics_retention_previous_days,
      metrics_retention_grace_until as grace_until
    from monitoring_settings where company_id = ${companyId}`)
  if (!row) throw notFound()
  const { grace_until, ...rest } = row
  const isRunning = grace_until !== null && new Date(grace_until).getTime() > hub.now()
  return {
    data: {
      ...rest,
      metrics_retention_previous_days: isRunning ? rest.metrics_retention_previous_days : null,
      metrics_retention_grace_until: isRunning ? new Date(grace_until).toISOString() : null,
    },
  }
}
