// A check on each of its servers: the newest result, and the last 24 hours hour by hour. An hour without a result is
// not known, and nothing else: neither well nor failed.
import { sql } from 'drizzle-orm'
import { metricsPath, parseMetricsResponse } from '../../../../core/admin-api/series.ts'
import { compileMatchers } from '../../../../core/alerting/rules/matchers.ts'
import { matchesLabels } from '../../../../core/alerting/rules/matches-labels.ts'
import { findCheck } from '../../checks/check-list.ts'
import { defaultCheckRule, targetMatchers } from '../../checks/check-target.ts'
import type { Hub } from '../../hub-context.ts'
import type { CheckType } from '../../platform/db/schema.ts'
import { uuidList } from '../../platform/db/transaction.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import { resolveScope } from '../../scopes/scope.ts'
import { targetText } from './checks.ts'
import type { View } from './view.ts'

/** Each costs a call of its collector. */
const SERVERS_SHOWN = 15
const HOURS = 24
const HOUR_MS = 3_600_000
const AGE_MS = 20_000

const SECONDS: Partial<Readonly<Record<CheckType, string>>> = {
  http: 'http_duration_seconds',
  tcp: 'tcp_connect_seconds',
}

export type CheckOfServer = {
  readonly id: string
  readonly name: string
  /** The share of results that were good, 0 to 1, by hour, oldest first; null: no result. */
  readonly hours: readonly (number | null)[]
  readonly seconds: number | null
  readonly days: number | null
}

export type CheckView = {
  readonly id: string
  readonly name: string
  readonly type: CheckType
  readonly target: string
  readonly isEnabled: boolean
  readonly servers: number
  readonly rows: readonly CheckOfServer[]
}

type Asked = { readonly hub: Hub; readonly companyId: string; readonly type: CheckType; readonly metric: string }
type Matchers = ReturnType<typeof compileMatchers>['matchers']

/** A certificate that is good for a day or more counts as a good result. */
const goodShare = (type: CheckType, value: number): number => (type === 'cert' ? (value >= 1 ? 1 : 0) : value)

async function ofServer(
  asked: Asked,
  matchers: Matchers,
  server: { id: string; name: string },
): Promise<CheckOfServer> {
  const { hub, companyId, type, metric } = asked
  const none = { ...server, hours: Array.from({ length: HOURS }, () => null), seconds: null, days: null }
  const target = await hub.collectors.targetOfServer(companyId, server.id)
  if (target === null) return none
  const endMs = Math.ceil(hub.now() / HOUR_MS) * HOUR_MS
  const seconds = SECONDS[type]
  const query = { from: String((endMs - HOURS * HOUR_MS) / 1000), step: String(HOUR_MS / 1000), agg: 'avg' }
  const path = metricsPath(companyId, server.id, seconds === undefined ? [metric] : [metric, seconds], query)
  const answer = await hub.collectors.query(target, 'series', path)
  const parsed = answer?.status === 200 ? parseMetricsResponse(answer.body) : null
  const pointsOf = (name: string | undefined) =>
    parsed?.metrics.find(each => each.metric === name)?.series.find(({ labels }) => matchesLabels(matchers, labels))
      ?.points ?? []
  const hours: (number | null)[] = [...none.hours]
  for (const [tsMs, value] of pointsOf(metric)) {
    const hour = HOURS - 1 - Math.floor((endMs - 1 - tsMs) / HOUR_MS)
    if (hour >= 0 && hour < HOURS) hours[hour] = goodShare(type, value)
  }
  const last = pointsOf(metric).at(-1)?.[1] ?? null
  return { ...server, hours, seconds: pointsOf(seconds).at(-1)?.[1] ?? null, days: type === 'cert' ? last : null }
}

export const checkView: View<CheckView> = {
  permissions: ['monitoring.view', 'servers.view'],
  params: ['check'],
  ageMs: AGE_MS,
  async make({ hub, companyId, param }) {
    const { db } = hub.database
    if (!isUuid(param('check'))) throw notFound()
    const { check } = await findCheck(db, companyId, param('check'))
    const ids = await resolveScope(db, companyId, check.scope)
    const servers = await db.execute<{ id: string; name: string }>(sql`
      select id, name from servers where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])
      order by lower(name), id limit ${SERVERS_SHOWN}`)
    const { metric } = defaultCheckRule(check.type, check.name)
    const { matchers } = compileMatchers(targetMatchers(check.type, check.target), null)
    const asked = { hub, companyId, type: check.type, metric }
    return {
      ...{ id: check.id, name: check.name, type: check.type, target: targetText(check.type, check.target) },
      ...{ isEnabled: check.enabled, servers: ids.length },
      rows: await Promise.all(servers.map(server => ofServer(asked, matchers, server))),
    }
  },
}
