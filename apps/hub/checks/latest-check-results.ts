// GET /monitoring/checks/{check}/results: the latest result of a check on each server, read from the collector.

import { sql } from 'drizzle-orm'
import { parseSeriesResponse, seriesOf, seriesPath } from '../../../core/admin-api/series.ts'
import { compileMatchers } from '../../../core/alerting/rules/matchers.ts'
import { matchesLabels } from '../../../core/alerting/rules/matches-labels.ts'
import { limits } from '../../../core/limits.ts'
import type { Hub } from '../hub-context.ts'
import { uuidList } from '../platform/db/transaction.ts'
import type { Page } from '../platform/http/paging.ts'
import { resolveScope } from '../scopes/scope.ts'
import type { CheckRow } from './check-list.ts'
import { targetMatchers } from './check-target.ts'
import { defaultCheckRule } from './rule-of-new-check.ts'

type CheckResult = { server: { id: string; name: string }; value: number | null; sampled_at: Date | null }

/** What names the series of a check. */
type Checked = Pick<CheckRow['check'], 'companyId' | 'name' | 'type' | 'target'>
type LatestResult = { readonly value: number; readonly sampledAt: Date }

/** The newest value of a check on a server within 15 minutes; null for none, 'unavailable' when nobody can say. */
export async function latestResult(
  hub: Hub,
  { companyId, name, type, target }: Checked,
  serverId: string,
): Promise<LatestResult | 'unavailable' | null> {
  const collector = await hub.collectors.targetOfServer(companyId, serverId)
  if (!collector) return 'unavailable'
  const { metric } = defaultCheckRule(type, name)
  const { matchers } = compileMatchers(targetMatchers(type, target), null)
  const fromSeconds = Math.floor((hub.now() - limits.statusValueAgeMs) / 1000)
  const query = { metric, from: String(fromSeconds), agg: 'last' }
  const answer = await hub.collectors.query(collector, 'series', seriesPath(companyId, serverId, query))
  if (answer?.status !== 200) return 'unavailable'
  const data = parseSeriesResponse(answer.body)
  for (const { labels, points } of data ? seriesOf(data) : []) {
    const last = points.at(-1)
    if (last && matchesLabels(matchers, labels)) return { value: last[1], sampledAt: new Date(last[0]) }
  }
  return null
}

/** The servers of one page of the check's scope, each with its newest value within 15 minutes. */
export async function checkResults(hub: Hub, row: CheckRow, page: Page) {
  const { check } = row
  const { db } = hub.database
  const ids = await resolveScope(db, check.companyId, check.scope)
  const servers = await db.execute<{ id: string; name: string }>(sql`
    select id, name from servers where company_id = ${check.companyId} and id = any(${uuidList(ids)}::uuid[])
    order by lower(name), id limit ${page.limit} offset ${page.offset}`)
  const isConfigured = (await hub.collectors.targets()).length > 0
  let isAvailable = isConfigured
  const results = await Promise.all(
    servers.map(async (server): Promise<CheckResult> => {
      const latest = isConfigured ? await latestResult(hub, check, server.id) : null
      if (latest === 'unavailable') isAvailable = false
      return latest === null || latest === 'unavailable'
        ? { server, value: null, sampled_at: null }
        : { server, value: latest.value, sampled_at: latest.sampledAt }
    }),
  )
  const reason = isAvailable ? null : isConfigured ? 'unavailable' : 'not_configured'
  return { results, total: ids.length, collector: { available: isAvailable, reason } }
}
