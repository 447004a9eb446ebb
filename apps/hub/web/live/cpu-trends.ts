// How busy servers were in the last hours, for the lines in a list: asked of the collector a server at a time, kept for
// minutes for all viewers. A list does not wait for the slowest: what is not known yet comes with its next answer.
import pLimit, { type LimitFunction } from 'p-limit'
import pTimeout from 'p-timeout'
import type { Hub } from '../../hub-context.ts'
import { askMetrics } from '../../servers/collector-questions.ts'
import { RecentValues } from './recent-values.ts'

const METRIC = 'cpu_usage_percent'
const HOURS = 3
const STEP_SECONDS = 300
const AGE_MS = 300_000
const SERVERS_MAX = 20_000
const WAIT_MS = 500
const ASKED_AT_ONCE = 8
/** More are not waited for: who scrolls through all servers does not make the collector answer for each. */
const WAITING_MAX = 400

/** The greatest value of each five minutes, the oldest first, 0 to 100; null where nothing was sent. */
export type CpuTrend = readonly (number | null)[]
type Kept = { readonly recent: RecentValues<CpuTrend | null>; readonly limit: LimitFunction }

const ofHub = new WeakMap<Hub, Kept>()

function keptOf(hub: Hub): Kept {
  const known = ofHub.get(hub)
  if (known) return known
  const fresh = {
    recent: new RecentValues<CpuTrend | null>(AGE_MS, SERVERS_MAX, hub.now),
    limit: pLimit(ASKED_AT_ONCE),
  }
  ofHub.set(hub, fresh)
  return fresh
}

/** Null: the collector does not say. */
async function readTrend(hub: Hub, companyId: string, serverId: string): Promise<CpuTrend | null> {
  const stepMs = STEP_SECONDS * 1_000
  const length = (HOURS * 3_600) / STEP_SECONDS
  const nowMs = hub.now()
  const fromMs = Math.ceil(nowMs / stepMs) * stepMs - length * stepMs
  const range = { fromMs, toMs: nowMs, agg: 'max', stepSeconds: STEP_SECONDS }
  const { data } = await askMetrics(hub, { id: serverId, companyId }, [METRIC], range)
  const series = data?.metrics.flatMap(each => each.series) ?? []
  if (series.length === 0) return null
  const trend = Array.from({ length }, (): number | null => null)
  for (const { points } of series)
    for (const [tsMs, value] of points) {
      const at = Math.floor((tsMs - fromMs) / stepMs)
      if (at >= 0 && at < length) trend[at] = Math.max(trend[at] ?? 0, Math.round(value * 10) / 10)
    }
  return trend
}

/** In the order of the ids; null: not known, or not yet. */
export async function cpuTrends(
  hub: Hub,
  companyId: string,
  serverIds: readonly string[],
): Promise<readonly (CpuTrend | null)[]> {
  const { recent, limit } = keptOf(hub)
  const trends = serverIds.map((id): Promise<CpuTrend | null> => {
    const key = `${companyId} ${id}`
    const known = recent.last(key, AGE_MS)
    if (known !== null) return Promise.resolve(known)
    if (limit.pendingCount > WAITING_MAX) return Promise.resolve(null)
    return recent.get(key, () => limit(() => readTrend(hub, companyId, id))).catch(() => null)
  })
  const known = () => serverIds.map(id => recent.last(`${companyId} ${id}`, AGE_MS))
  return pTimeout(Promise.all(trends), { milliseconds: WAIT_MS, fallback: known })
}
