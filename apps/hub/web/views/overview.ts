// The company at a glance: how many servers are in which state, what is open and how bad, and which servers are worst.
import type { Severity } from '../../../../core/alerting/rules/rule.ts'
import { alertStats } from '../../alerts/alerts.ts'
import { timeline } from '../../overview/overview.ts'
import type { CollectorState } from '../live/newest-values.ts'
import { liveServers, type ServerCounts, type ServerRow, serverCounts, sortedServers, toServerRow } from './servers.ts'
import type { View } from './view.ts'

const WORST_SHOWN = 10
const DAYS = 30

export type OverviewView = {
  readonly counts: ServerCounts
  readonly severities: Readonly<Record<Severity, number>>
  readonly open: number
  readonly acknowledged: number
  readonly suppressed: number
  readonly worst: readonly ServerRow[]
  readonly days: readonly { readonly day: string; readonly opened: number; readonly resolved: number }[]
  readonly collector: CollectorState
}

export const overviewView: View<OverviewView> = {
  permissions: ['monitoring.view', 'servers.view'],
  params: [],
  async make(context) {
    const { hub, companyId } = context
    const [{ servers, collector }, stats, days] = await Promise.all([
      liveServers(context),
      alertStats(hub.database.db, companyId),
      timeline(hub, companyId, DAYS),
    ])
    const troubled = servers.filter(({ openAlerts, connectivity }) => openAlerts > 0 || connectivity === 'down')
    const worst = sortedServers(troubled, 'state').slice(0, WORST_SHOWN)
    const { critical = 0, warning = 0, info = 0 } = stats.by_severity
    return {
      counts: serverCounts(servers),
      severities: { critical, warning, info },
      open: stats.active - stats.acknowledged,
      acknowledged: stats.acknowledged,
      suppressed: stats.suppressed,
      worst: worst.map(toServerRow),
      days,
      collector,
    }
  },
}
