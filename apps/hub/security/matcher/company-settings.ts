// GET /security/matcher/settings/{company}: how a company wants to be scanned, as far as its plan allows (document 3;
// decisions G-159, G-176).
import { sql } from 'drizzle-orm'
import { effectivePlan } from '../../plans/effective-plan.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import type { RouteContext } from '../../platform/http/route.ts'

type SettingsRow = {
  company_id: string
  version: number
  enabled: boolean
  scan_interval_hours: number
  content_scan: boolean
}

/** Throws 404 for a company that is not there. */
export async function scanSettings({ hub, params }: RouteContext) {
  const companyId = params.company_id ?? ''
  const { db } = hub.database
  // Without rows the company has what the columns of both tables begin with.
  const [row] = isUuid(companyId)
    ? await db.execute<SettingsRow>(sql`
        select c.id as company_id, coalesce(s.version, 1) as version, coalesce(s.enabled, true) as enabled,
          coalesce(s.scan_interval_hours, 24) as scan_interval_hours, coalesce(k.enabled, false) as content_scan
        from companies c left join security_settings s on s.company_id = c.id
          left join security_content_scan_settings k on k.company_id = c.id
        where c.id = ${companyId} and c.deleted_at is null`)
    : []
  if (!row) throw notFound()
  const plan = await effectivePlan(db, row.company_id)
  return {
    data: {
      ...row,
      scan_interval_hours: Math.max(row.scan_interval_hours, plan.scanMinIntervalHours),
      min_scan_interval_hours: plan.scanMinIntervalHours,
      history_days: plan.scanHistoryDays,
    },
    server_time: new Date(hub.now()).toISOString(),
  }
}
