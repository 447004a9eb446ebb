// "What changed here?": the metrics of a server by how much they differ in a span from the span four times as long
// before it.
import { changeOf } from '../../../../../core/query/changed-series.ts'
import { askMetrics } from '../../../servers/collector-questions.ts'
import { rangeOf } from '../../address/time-range.ts'
import type { View } from '../view.ts'
import type { Labels } from './charts.ts'
import { type CollectorState, shownServer } from './head.ts'

const BEFORE_SPANS = 4
/** Points of the span itself. */
const POINTS = 60
const STEP_MIN_SECONDS = 30

export type ChangedMetric = {
  readonly metric: string
  /** 0: as before; 1: altogether different. That of the series which changed most, whose labels stand beside it. */
  readonly change: number
  readonly labels: Labels
}

export type ChangesView = {
  readonly fromMs: number
  readonly toMs: number
  /** Most changed first. */
  readonly changes: readonly ChangedMetric[]
  readonly collector: CollectorState
}

export const serverChangesView: View<ChangesView> = {
  permissions: ['monitoring.view', 'servers.view'],
  optional: ['servers.delete'],
  params: ['server', 'from', 'to'],
  ageMs: 30_000,
  async make(context) {
    const { hub, companyId, param } = context
    const { server } = await shownServer(context)
    const { fromMs, toMs } = rangeOf(param('from'), param('to'), hub.now())
    const stepSeconds = Math.max(STEP_MIN_SECONDS, Math.ceil((toMs - fromMs) / 1_000 / POINTS))
    const range = { fromMs: fromMs - BEFORE_SPANS * (toMs - fromMs), toMs, agg: 'avg', stepSeconds }
    const { data, note } = await askMetrics(hub, { id: server.id, companyId }, null, range)
    const changes = (data?.metrics ?? []).flatMap(({ metric, series }): ChangedMetric[] => {
      const ranked = series.map(({ labels, points }) => ({
        metric,
        labels,
        change: changeOf(
          points.filter(([tsMs]) => tsMs < fromMs).map(([, value]) => value),
          points.filter(([tsMs]) => tsMs >= fromMs).map(([, value]) => value),
        ),
      }))
      const most = ranked.sort((one, other) => other.change - one.change)[0]
      return most === undefined ? [] : [{ ...most, change: Math.round(most.change * 1000) / 1000 }]
    })
    changes.sort((one, other) => other.change - one.change)
    return { fromMs, toMs, changes, collector: note.reason ?? 'ok' }
  },
}
