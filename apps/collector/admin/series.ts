// GET /internal/v1/servers/{server_id}/series: request, read window, plan, store, reply (document 3 "Series parameters"
// and "Series response").
import type { SeriesResponse } from '../../../core/admin-api/series.ts'
import { planSeries } from '../../../core/query/query-plan.ts'
import { parseSeriesRequest } from '../../../core/query/series-request.ts'
import { type ReadWindow, readWindow } from '../../../core/retention/readable-and-deletable.ts'
import { badFields } from '../../admin-api/admin-error.ts'
import { type AdminCall, uuidOf } from '../../admin-api/call.ts'
import type { AdminDeps } from './deps.ts'

const instant = (ms: number): string => new Date(ms).toISOString()

/** The members about retention: present only where the plan limits reading, and in a grace. */
const windowMembers = (window: ReadWindow) => ({
  ...(window.retentionDays === undefined ? {} : { retention_days: window.retentionDays }),
  ...(window.previousDays === undefined ? {} : { retention_previous_days: window.previousDays }),
  ...(window.graceUntilMs === undefined ? {} : { retention_grace_until: instant(window.graceUntilMs) }),
  ...(window.lockedBeforeMs === undefined ? {} : { retention_locked_before: instant(window.lockedBeforeMs) }),
})

export async function serverSeries(deps: AdminDeps, { params, query }: AdminCall): Promise<SeriesResponse> {
  const nowMs = deps.nowMs()
  const serverId = uuidOf('server_id', params.server_id)
  const param = (name: string): string | undefined => query.get(name) ?? undefined
  const parsed = parseSeriesRequest(
    {
      company_id: param('company_id'),
      metric: param('metric'),
      from: param('from'),
      to: param('to'),
      step: param('step'),
      agg: param('agg'),
    },
    nowMs,
  )
  if ('faults' in parsed) throw badFields(parsed.faults)

  const { request } = parsed
  const window = readWindow(await deps.retention(request.companyId), nowMs)
  const planned = planSeries(request, {
    serverId,
    nowMs,
    readFromMs: window.readFromMs,
  })
  if ('fault' in planned) throw badFields([planned.fault])
  const { plan } = planned
  const startedMs = performance.now()
  const answer = await deps.samples.querySeries(plan)
  deps.onQuery(answer.source, (performance.now() - startedMs) / 1000)
  return {
    server_id: serverId,
    company_id: plan.companyId,
    metric: plan.metric,
    agg: plan.agg,
    from: instant(plan.fromMs),
    to: instant(plan.toMs),
    step_seconds: plan.stepMs / 1000,
    ...windowMembers(window),
    series: answer.series,
  }
}
