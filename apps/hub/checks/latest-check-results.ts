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
import { defaultCheckRule, targetMatchers } from './check-target.ts'

type CheckResult = { server: { id: string; name: string }; value: number | null; sampled_at: Date | null }

/** The servers of one page of the check's scope, each with its newest value within 15 minutes. */
export async function checkResults(hub: Hub, row: CheckRow, page: Page) {
  const { check } = row
  const { db } = hub.database
  const ids = await resolveScope(db, check.companyId, check.scope)
  const servers = await db.execute<{ id: string; name: string }>(sql`
    select id, name from servers where company_id = ${check.companyId} and id = any(${uuidList(ids)}::uuid[])
    order by lower(name), id limit ${page.limit} offset ${page.offset}`)
  const { metric } = defaultCheckRule(check.type, check.name)
  const { matchers } = compileMatchers(targetMatchers(check.type, check.target), null)
  const fromSeconds = Math.floor((hub.now() - limits.statusValueAgeMs) / 1000)
  const query = { metric, from: String(fromSeconds), agg: 'last' }
  const isConfigured = (await hub.collectors.targets()).length > 0
  let isAvailable = isConfigured
  const results = await Promise.all(
    servers.map(async (server): Promise<CheckResult> => {
      const target = isConfigured ? await hub.collectors.targetOfServer(check.companyId, server.id) : null
      const answer = target
        ? await hub.collectors.query(target, 'series', seriesPath(check.companyId, server.id, query))
        : null
      if (answer?.status !== 200) isAvailable = false
      const data = answer?.status === 200 ? parseSeriesResponse(answer.body) : null
      for (const { labels, points } of data ? seriesOf(data) : []) {
        const last = points.at(-1)
        if (last && matchesLabels(matchers, labels)) return { server, value: last[1], sampled_at: new Date(last[0]) }
      }
      return { server, value: null, sampled_at: null }
    }),
  )
  const reason = isAvailable ? null : isConfigured ? 'unavailable' : 'not_configured'
  return { results, total: ids.length, collector: { available: isAvailable, reason } }
}
