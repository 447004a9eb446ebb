// The samples that the rule editor judges: the worst series that a draft covers, whole, and what its matchers meet.
// Labels are matched here, with RE2, so that browsers need no regular expressions.
import type { ReplayedSeries } from '../../../core/alerting/evaluate/backtest.ts'
import { compileMatchers } from '../../../core/alerting/rules/matchers.ts'
import { type Matcher, matchesLabels } from '../../../core/alerting/rules/matches-labels.ts'
import { limits } from '../../../core/limits.ts'
import { metricByName } from '../../../core/series/catalogue.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import { resolveScope, type ScopeInput, toScope } from '../scopes/scope.ts'
import {
  coarseSeries,
  inTurns,
  type PreviewedServer,
  serversToRead,
  startReading,
  type Tenant,
  wholeSeries,
} from './previewed-samples.ts'

/** What decides which series are shown; a threshold moves without a new question. */
type PreviewedDraft = {
  readonly metric: string
  readonly matchers: Readonly<Record<string, unknown>>
  readonly scope: ScopeInput
  /** Whether high or low values are the bad ones. */
  readonly worst: 'high' | 'low'
  readonly hours: number
}

const SERIES_SHOWN = 5
const LABELS_SHOWN = 200
const HOUR_MS = 3_600_000
/** Steps of the first look, which only finds the worst series. */
const COARSE_STEPS = 288
/** A series whole, and when its server was heard. */
type PreviewedSeries = {
  readonly server: PreviewedServer
  readonly labels: Readonly<Record<string, string>>
  readonly points: ReplayedSeries['points']
  readonly heardAtMs: readonly number[]
}

export type LabelSet = {
  readonly labels: Readonly<Record<string, string>>
  readonly servers: number
  readonly isMatched: boolean
}

type Found = {
  readonly server: PreviewedServer
  readonly labels: Readonly<Record<string, string>>
  readonly worst: number
}

/** Distinct label sets over all servers that were read, the matched ones first. */
function labelSets(found: readonly Found[], matchers: readonly Matcher[]): LabelSet[] {
  const sets = new Map<string, { labels: Readonly<Record<string, string>>; servers: number; isMatched: boolean }>()
  for (const { labels } of found) {
    const key = JSON.stringify(Object.entries(labels).sort())
    const known = sets.get(key) ?? { labels, servers: 0, isMatched: matchesLabels(matchers, labels) }
    sets.set(key, { ...known, servers: known.servers + 1 })
  }
  const all = [...sets.values()].sort((one, other) => Number(other.isMatched) - Number(one.isMatched))
  return all.slice(0, LABELS_SHOWN)
}

/** The matchers of a draft; throws 422 on their fields. */
function matchersOf({ metric, matchers }: PreviewedDraft): readonly Matcher[] {
  const known = metricByName(metric)
  if (!known) throw invalidField('metric', 'unknown_reference')
  const compiled = compileMatchers(matchers, known.labels)
  const faults = compiled.faults.map(
    ({ reason, label, message }) => [`matchers.${label}`, words(`rule_${reason}`, { message })] as const,
  )
  if (faults.length > 0) throw faultsError(new Map(faults), 'invalid_request')
  return compiled.matchers
}

/** The worst series of at most 25 servers that the draft covers. Throws ApiError 422 for a draft that is none. */
export async function previewSeries(tenant: Tenant, draft: PreviewedDraft) {
  const { hub, companyId } = tenant
  const matchers = matchersOf(draft)
  const ids = await resolveScope(hub.database.db, companyId, toScope(draft.scope))
  const servers = await serversToRead(tenant, ids)
  const stepMs = limits.queryStepMinMs
  const toMs = Math.floor(hub.now() / stepMs) * stepMs
  const range = { fromMs: toMs - draft.hours * HOUR_MS, toMs }

  const coarseStepMs = Math.max(stepMs, (range.toMs - range.fromMs) / COARSE_STEPS)
  const looked = { ...range, metric: draft.metric, worst: draft.worst, stepMs: coarseStepMs }
  const reading = startReading(tenant)
  const coarse = await inTurns(servers, server => coarseSeries(reading, server.id, looked))
  const sign = draft.worst === 'high' ? 1 : -1
  const found = coarse.flatMap((series, at) =>
    (series ?? []).map(
      ({ labels, points }): Found => ({
        server: servers[at]!,
        labels,
        worst: points.reduce((worst, [, value]) => Math.max(worst, sign * value), Number.NEGATIVE_INFINITY),
      }),
    ),
  )
  const matched = found.filter(({ labels }) => matchesLabels(matchers, labels))
  const shown = [...matched].sort((one, other) => other.worst - one.worst).slice(0, SERIES_SHOWN)
  const ofServers = [...new Map(shown.map(({ server }) => [server.id, server])).values()]
  const whole = new Map(
    await inTurns(ofServers, async ({ id }) => [id, await wholeSeries(reading, id, draft.metric, range)] as const),
  )
  const series = shown.flatMap(({ server, labels }): PreviewedSeries[] => {
    const read = whole.get(server.id)
    const key = JSON.stringify(labels)
    const own = read?.series.find(each => JSON.stringify(each.labels) === key)
    return read && own ? [{ server, labels, points: own.points, heardAtMs: read.heardAtMs }] : []
  })
  const unanswered = [...coarse, ...whole.values()].filter(each => each === null).length
  const isConfigured = unanswered === 0 || (await hub.collectors.targets()).length > 0
  return {
    range,
    servers: { covered: ids.length, read: servers.length, unanswered },
    collector:
      unanswered === 0 ? ('ok' as const) : isConfigured ? ('unavailable' as const) : ('not_configured' as const),
    matched: matched.length,
    labels: labelSets(found, matchers),
    series,
  }
}
