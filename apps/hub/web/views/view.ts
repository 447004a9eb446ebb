// What a page is sent: a view has the keys that it needs, the parameters that decide what is in it, and a maker. One
// answer serves all viewers who ask for the same within two seconds.
import type { Hub } from '../../hub-context.ts'
import type { ActiveAlerts } from '../live/active-alerts.ts'
import type { Fleets } from '../live/fleet.ts'
import type { LiveServers } from '../live/live-servers.ts'
import type { NewestValues } from '../live/newest-values.ts'
import type { Freshness } from '../live/recent-values.ts'
import type { ScanCoverage } from '../live/scan-coverage.ts'
import type { Standings } from '../live/standing.ts'

export type ViewContext = {
  readonly hub: Hub
  readonly companyId: string
  /** The view's parameters and no other, as they came: not to be trusted. Empty where missing. */
  readonly param: (name: string) => string
  /** Whether the viewer has one of the keys that the view names in `optional`. */
  readonly may: (permission: string) => boolean
  readonly fleets: Source<Fleets>
  /** The worst first. */
  readonly alerts: Source<ActiveAlerts>
  readonly newest: Source<NewestValues> & {
    readonly ofMetric: (companyId: string, metric: string) => ReturnType<NewestValues['ofMetric']>
  }
  readonly live: Pick<LiveServers, 'join'>
  readonly standings: Source<Standings>
  readonly scans: Source<ScanCoverage>
}

/** What is known of a company, as fresh as the viewer wants it. */
type Source<T extends { of: (companyId: string, wanted: Freshness) => unknown }> = {
  readonly of: (companyId: string) => ReturnType<T['of']>
}

export type View<T = unknown> = {
  /** All of these are needed, or the view is refused. */
  readonly permissions: readonly string[]
  /** Keys that decide about parts of it: viewers with and without them get answers of their own. */
  readonly optional?: readonly string[]
  readonly params: readonly string[]
  /** How long an answer is good for all; 2 s unless said otherwise. */
  readonly ageMs?: number
  /** A value of JSON. Throws ApiError, as a route does: 404 for what the company does not have. */
  readonly make: (context: ViewContext) => Promise<T>
}

/** More rows than any list has, and a number that the database takes. */
const OFFSET_MAX = 1_000_000_000

/** Where a window begins, as the address says. */
export const askedOffset = (text: string): number => Math.min(OFFSET_MAX, Math.max(0, Math.floor(Number(text) || 0)))
