// The series of an alert from an hour before it to its end, with its threshold, where it recovers, for how long the
// condition held, and the same alert before.
import { useMemo } from 'preact/hooks'
import { instantOf } from '../../../address/time-range.ts'
import type { AlertView } from '../../../views/alert.ts'
import type { AlertFace } from '../../../views/alerts.ts'
import type { SeriesView } from '../../../views/server/series.ts'
import { alertWords } from '../../../words/alert.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { hrefTo, param, setParams } from '../../address/router.ts'
import { duration } from '../../format.ts'
import { nowMs } from '../../hub-clock.ts'
import { metricTitle } from '../../metric-title.ts'
import { Chart } from '../../parts/chart/chart.tsx'
import { ActFault } from '../../parts/fault.tsx'
import { may, textsOf } from '../../session.ts'
import { useView } from '../../view.ts'
import { chartDataOf, labelsKey } from '../server/metric-chart.tsx'

const t = textsOf({ ...alertsWords, ...alertWords })

const HOUR_MS = 3_600_000
const BEFORE_MS = HOUR_MS
/** A little of what follows, so that its end is seen. */
const AFTER_MS = 600_000
/** Of an alert that lasts longer a link shows the time that it names, not all of it. */
const LONG_MS = 24 * HOUR_MS
const AROUND_AFTER_MS = 6 * HOUR_MS
const HEIGHT = 240

type Ends = { readonly from: string; readonly to: string }

const iso = (atMs: number): string => new Date(atMs).toISOString()

/** What the chart shows while nobody has drawn a range in it: the alert, or the time of it that a link names. */
function usualEnds({ openedAtMs, endedAtMs }: AlertFace): Ends {
  const atMs = instantOf(param('at'), nowMs())
  const lastMs = endedAtMs ?? nowMs()
  if (atMs !== null && lastMs - openedAtMs > LONG_MS && atMs >= openedAtMs && atMs <= lastMs)
    return { from: iso(atMs - BEFORE_MS), to: iso(Math.min(atMs + AROUND_AFTER_MS, lastMs + AFTER_MS)) }
  return { from: iso(openedAtMs - BEFORE_MS), to: endedAtMs === null ? 'now' : iso(endedAtMs + AFTER_MS) }
}

function shownEnds(alert: AlertFace): Ends & { readonly isDrawn: boolean } {
  const [from, to] = [param('from'), param('to')]
  const isDrawn = instantOf(from, 0) !== null && instantOf(to, 0) !== null
  return isDrawn ? { from, to, isDrawn } : { ...usualEnds(alert), isDrawn }
}

/** Where a rule looks for what is high its peaks are drawn, and else what is lowest. */
function aggregateOf(rule: AlertView['rule']): string {
  const operator = rule?.operator ?? ''
  return operator.startsWith('>') ? 'max' : operator.startsWith('<') ? 'min' : 'avg'
}

/** The server's own page over the time that the chart shows. */
const serverAtThatTime = (alert: AlertFace): string => {
  const { from, to } = shownEnds(alert)
  return hrefTo('server', { server: alert.serverId }, { from, to })
}

function useChart(data: AlertView, metric: string) {
  const { alert, labels, rule } = data
  const { from, to } = shownEnds(alert)
  const view = useView<SeriesView>('server-series', {
    ...{ server: alert.serverId, metrics: metric, from, to },
    agg: aggregateOf(rule),
  })
  const found = view.data
  const chart = useMemo(() => {
    if (found === null) return null
    const all = found.metrics.find(each => each.metric === metric)?.series ?? []
    const own = all.filter(each => labelsKey(each.labels) === labelsKey(labels))
    return chartDataOf({ view: found, series: own.length > 0 ? own : all, past: null }, metricTitle(metric))
  }, [found])
  return { chart, fault: view.fault, collector: found?.collector ?? 'ok' }
}

function Notes({ data, isDrawn }: { readonly data: AlertView; readonly isDrawn: boolean }) {
  const { alert, rule } = data
  return (
    <>
      {rule?.forSeconds ? (
        <p class="chart-note">{t('pending_note', { time: duration(rule.forSeconds * 1000) })}</p>
      ) : null}
      <p class="alert-chart-links">
        <a href={serverAtThatTime(alert)}>{t('open_server', { server: alert.serverName })}</a>
        {rule !== null && may('monitoring.manage') ? (
          <a href={hrefTo('rule_edit', { rule: rule.id })}>{t('edit_rule')}</a>
        ) : null}
        {isDrawn ? (
          <button type="button" class="quiet" onClick={() => setParams({ from: null, to: null })}>
            {t('whole')}
          </button>
        ) : null}
      </p>
    </>
  )
}

export function AlertChart({ data, metric }: { readonly data: AlertView; readonly metric: string }) {
  const { alert, rule, before } = data
  const { chart, fault, collector } = useChart(data, metric)
  const { severity, threshold, openedAtMs, endedAtMs } = alert
  const thresholds = useMemo(
    () =>
      threshold === null
        ? []
        : [{ name: alert.ruleName ?? '', severity, value: threshold, recoverValue: rule?.recoverThreshold ?? null }],
    [threshold, severity, rule?.recoverThreshold],
  )
  const periods = useMemo(
    () => [alert, ...before].map(each => ({ fromMs: each.openedAtMs, toMs: each.endedAtMs, severity: each.severity })),
    [openedAtMs, endedAtMs, before],
  )
  const heldMs = (rule?.forSeconds ?? 0) * 1000
  const pending = useMemo(
    () => (heldMs === 0 ? null : { fromMs: openedAtMs - heldMs, toMs: openedAtMs }),
    [openedAtMs, heldMs],
  )
  return (
    <section class="alert-chart" aria-labelledby="alert-chart">
      <h2 id="alert-chart" class="visually-hidden">
        {t('chart')}
      </h2>
      <ActFault fault={fault} />
      <Chart
        title={metricTitle(metric)}
        unit={alert.unit}
        data={chart}
        isUnanswered={collector === 'unavailable' || collector === 'not_configured'}
        height={HEIGHT}
        {...{ thresholds, periods, pending }}
        onRange={(fromMs, toMs) => setParams({ from: iso(fromMs), to: iso(toMs) })}
      >
        <Notes data={data} isDrawn={shownEnds(alert).isDrawn} />
      </Chart>
    </section>
  )
}
