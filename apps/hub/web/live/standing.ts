// What of a company changes slowly and stands on its first page: alerts a day, outdated agents, licences and quota near
// their end, how long its collector is silent. Read once in twenty seconds for all who look.
import { sql } from 'drizzle-orm'
import { isOlder, newestVersion } from '../../../../core/agent/version.ts'
import type { Hub } from '../../hub-context.ts'
import { quotaOf } from '../../licenses/licenses.ts'
import { timeline } from '../../overview/overview.ts'
import { type EndingLicense, endingLicenses } from './ending-licenses.ts'
import { type Freshness, RecentValues } from './recent-values.ts'

const AGE_MS = 20_000
const COMPANIES_MAX = 500
const DAYS = 30

export type Standing = {
  /** The last thirty days, today last; days of UTC as `2026-11-22`. */
  readonly days: readonly { readonly day: string; readonly opened: number; readonly resolved: number }[]
  readonly newestVersion: string | null
  readonly outdatedAgents: number
  /** `max` null: the plan has no limit. */
  readonly quota: { readonly used: number; readonly max: number | null }
  readonly endingLicenses: readonly EndingLicense[]
  /** When the collector of the company that is silent for longest last reported; null: there is none, or never. */
  readonly collectorHeardAtMs: number | null
}

type Versions = { agent_version: string | null; count: number }

/** Of the collectors that its agents report to; before the first agent of all of them. */
async function collectorHeardAt({ database }: Hub, companyId: string): Promise<number | null> {
  const [row] = await database.db.execute<{ own: string | null; any_of: string | null; has_own: boolean }>(sql`
    with own as (
      select distinct collector_id as id from monitoring_agents
      where company_id = ${companyId} and state <> 'revoked' and collector_id is not null)
    select min(c.last_heartbeat_at) filter (where own.id is not null) as own, max(c.last_heartbeat_at) as any_of,
      bool_or(own.id is not null) as has_own
    from monitoring_collectors c left join own on own.id = c.id`)
  const heard = row?.has_own ? row.own : row?.any_of
  return heard == null ? null : new Date(heard).getTime()
}

export class Standings {
  private readonly recent: RecentValues<Standing>

  constructor(private readonly hub: Hub) {
    this.recent = new RecentValues(AGE_MS, COMPANIES_MAX, hub.now)
  }

  of(companyId: string, wanted: Freshness): Promise<Standing> {
    return this.recent.of(companyId, wanted, () => this.read(companyId))
  }

  private async read(companyId: string): Promise<Standing> {
    const { hub } = this
    const { db } = hub.database
    const [days, versions, quota, ending, heardAtMs] = await Promise.all([
      timeline(hub, companyId, DAYS),
      db.execute<Versions>(sql`
        select agent_version, count(*)::int as count from monitoring_agents
        where company_id = ${companyId} and state <> 'revoked' group by 1`),
      quotaOf(db, companyId),
      endingLicenses(hub, companyId),
      collectorHeardAt(hub, companyId),
    ])
    const newest = newestVersion(versions.map(row => row.agent_version))
    const outdated = versions.filter(row => isOlder(row.agent_version, newest))
    return {
      days,
      newestVersion: newest,
      outdatedAgents: outdated.reduce((sum, row) => sum + row.count, 0),
      quota: { used: quota.agents, max: quota.agent_quota },
      endingLicenses: ending,
      collectorHeardAtMs: heardAtMs,
    }
  }
}
