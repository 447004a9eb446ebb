// The company at a glance: how many servers are in which state, what is open and how bad, which servers are worst, and
// what will soon need somebody.
import { sql } from 'drizzle-orm'
import { type Severity, severities } from '../../../../core/alerting/rules/rule.ts'
import { alertStats } from '../../alerts/alerts.ts'
import type { Hub } from '../../hub-context.ts'
import type { CollectorState } from '../live/newest-values.ts'
import type { Standing } from '../live/standing.ts'
import { type AlertFace, facesWhere } from './alerts.ts'
import { liveServers, type ServerCounts, type ServerRow, serverCounts, sortedServers, toServerRow } from './servers.ts'
import type { View } from './view.ts'

const WORST_SHOWN = 10
const INCIDENTS_SHOWN = 5
/** Who has no more servers than this has only begun. */
const FIRST_SERVERS = 2

export type OverviewView = {
  readonly counts: ServerCounts
  /** Open alerts that nobody has acknowledged. */
  readonly unacknowledged: Readonly<Record<Severity, number>>
  readonly acknowledged: number
  readonly suppressed: number
  readonly incidents: readonly AlertFace[]
  readonly worst: readonly ServerRow[]
  /** The one server whose charts stand here while there are few of them; null: there are more, or none. */
  readonly first: { readonly id: string; readonly name: string; readonly hasReported: boolean } | null
  readonly standing: Standing
  readonly collector: CollectorState
}

async function unacknowledgedOf({ database }: Hub, companyId: string): Promise<Record<Severity, number>> {
  const rows = await database.db.execute<{ severity: Severity; count: number }>(sql`
    select severity, sum(count)::int as count from monitoring_alert_counts
    where company_id = ${companyId} and state = 'open' group by severity`)
  const counts = { critical: 0, warning: 0, info: 0 }
  for (const severity of severities) counts[severity] = rows.find(row => row.severity === severity)?.count ?? 0
  return counts
}

export const overviewView: View<OverviewView> = {
  permissions: ['monitoring.view', 'servers.view'],
  params: [],
  async make(context) {
    const { hub, companyId } = context
    const [{ servers, collector }, stats, unacknowledged, incidents, standing] = await Promise.all([
      liveServers(context),
      alertStats(hub.database.db, companyId),
      unacknowledgedOf(hub, companyId),
      facesWhere(hub, companyId, sql`x.type = 'group_down' and x.state in ('open', 'acknowledged')`, INCIDENTS_SHOWN),
      context.standings.of(companyId),
    ])
    const troubled = servers.filter(({ openAlerts, connectivity }) => openAlerts > 0 || connectivity === 'down')
    const worst = sortedServers(troubled, 'state').slice(0, WORST_SHOWN)
    const first = servers.length <= FIRST_SERVERS ? (servers.find(server => server.hasAgent) ?? null) : null
    return {
      counts: serverCounts(servers),
      unacknowledged,
      acknowledged: stats.acknowledged,
      suppressed: stats.suppressed,
      incidents,
      worst: worst.map(toServerRow),
      first: first && { id: first.id, name: first.name, hasReported: first.values !== undefined },
      standing,
      collector,
    }
  },
}

/** A company below the one that is shown, as a row. */
export type CompanyBrief = {
  readonly counts: ServerCounts
  readonly unacknowledged: Readonly<Record<Severity, number>>
  readonly incidents: number
  readonly quota: Standing['quota']
}

export const companyBriefView: View<CompanyBrief> = {
  permissions: ['monitoring.view', 'servers.view'],
  params: [],
  ageMs: 10_000,
  async make(context) {
    const { hub, companyId } = context
    const [fleet, unacknowledged, standing, incidents] = await Promise.all([
      context.fleets.of(companyId),
      unacknowledgedOf(hub, companyId),
      context.standings.of(companyId),
      hub.database.db.execute<{ count: number }>(sql`select count(*)::int as count from monitoring_alerts
        where company_id = ${companyId} and type = 'group_down' and state in ('open', 'acknowledged')`),
    ])
    return {
      counts: serverCounts(fleet),
      unacknowledged,
      incidents: incidents[0]?.count ?? 0,
      quota: standing.quota,
    }
  },
}
