// What the tab's title and icon carry on every page: how many alerts nobody is on, by severity.
import { sql } from 'drizzle-orm'
import type { Severity } from '../../../../core/alerting/rules/rule.ts'
import type { View } from './view.ts'

export type PulseView = Readonly<Record<Severity, number>>

export const pulseView: View<PulseView> = {
  permissions: ['monitoring.view'],
  params: [],
  async make({ hub, companyId }) {
    const rows = await hub.database.db.execute<{ severity: Severity; count: number }>(sql`
      select severity, count::int as count from monitoring_alert_counts where company_id = ${companyId} and state = 'open'`)
    const counts = { critical: 0, warning: 0, info: 0 }
    for (const { severity, count } of rows) counts[severity] = count
    return counts
  },
}
