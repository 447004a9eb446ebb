// The chart of a metric of a server: every series of it as a line of its own, with the rules that cover it and the
// periods of its alerts.
import '../../charts-kit.ts'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { ServerAlert } from '../../../views/server/alerts.ts'
import type { ChartOfMetric, CoveringRule, Labels } from '../../../views/server/charts.ts'
import type { GridSeries } from '../../../views/server/series.ts'
import { compareWords } from '../../../words/compare.ts'
import { serverWords } from '../../../words/server.ts'
import { isUtc, valueText } from '../../format.ts'
import { metricTitle } from '../../metric-title.ts'
import { Chart } from '../../parts/chart/chart.tsx'
import type { ChartData } from '../../parts/chart/chart-data.ts'
import { type ChartLine, pastOnGrid } from '../../parts/chart/lines.ts'
import { showRange } from '../../parts/time-range/shown-range.ts'
import { textsOf } from '../../session.ts'
import type { Loaded, SeriesLoader } from './series-loader.ts'

const t = textsOf(serverWords)
const compareText = textsOf(compareWords)

/** The label that names a series stands first. */
const FIRST = ['mount', 'interface', 'device', 'core', 'target', 'name', 'port']

/** The same for the same labels. */
export const labelsKey = (labels: Labels): string => JSON.stringify(Object.entries(labels).sort())

function namesOf(labels: Labels, title: string): Pick<ChartLine, 'name' | 'detail'> {
  const place = (name: string) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length)
  const [first, ...rest] = Object.entries(labels).sort(([one], [other]) => place(one) - place(other))
  if (first === undefined) return { name: title, detail: '' }
  return {
    name: first[0] === 'core' ? t('core', { core: first[1] }) : first[1],
    detail: rest.map(([, value]) => value).join(' '),
  }
}

const lineOf = ({ labels, values }: GridSeries, title: string): ChartLine => ({
  key: labelsKey(labels),
  ...namesOf(labels, title),
  values,
})

/** Series of a metric as a chart shows them. */
export function chartDataOf({ view, series, past }: Loaded, title: string): ChartData {
  const { startMs, stepMs, fromMs, toMs, readableFromMs, lockedBeforeMs } = view
  const grid = { startMs, stepMs, length: series[0]?.values.length ?? 0 }
  const pastLines = (past?.series ?? []).map(
    ({ labels, values }) =>
      [
        labelsKey(labels),
        pastOnGrid(grid, { startMs: past!.view.startMs, stepMs: past!.view.stepMs, values }, past!.days, isUtc.peek()),
      ] as const,
  )
  return {
    ...{ startMs, stepMs, fromMs, toMs, readableFromMs, lockedBeforeMs },
    lines: series.map(each => lineOf(each, title)),
    past: past && { days: past.days, lines: new Map(pastLines) },
  }
}

const operators: Readonly<Record<CoveringRule['operator'], string>> = {
  '>': '>',
  '>=': '≥',
  '<': '<',
  '<=': '≤',
  '==': '=',
  '!=': '≠',
}

function RuleNotes({ rules, unit }: Pick<ChartOfMetric, 'rules' | 'unit'>) {
  if (rules.length === 0) return null
  return (
    <ul class="plain chart-rules muted">
      {rules.map(({ id, name, operator, threshold, recoverThreshold }) => (
        <li key={id}>
          <span class="text">{name}</span>: {operators[operator]} {valueText(unit, threshold)}
          {recoverThreshold === null ? null : `, ${t('recovers_at', { value: valueText(unit, recoverThreshold) })}`}
        </li>
      ))}
    </ul>
  )
}

type Props = {
  readonly chart: ChartOfMetric
  readonly loader: SeriesLoader
  readonly alerts: readonly ServerAlert[]
  /** Said below the title, as how much it changed. */
  readonly note?: string
  /** Leads to the rule editor; null for who may not change rules. */
  readonly ruleHref: string | null
  /** Leads to the same metric of other servers. */
  readonly compareHref?: string
  /** A range was drawn; missing: all charts of the page show it. */
  readonly onRange?: (fromMs: number, toMs: number) => void
}

export function MetricChart({ chart, loader, alerts, note, ruleHref, compareHref, onRange = showRange }: Props) {
  const { metric, unit, labels, rules } = chart
  const place = useRef<HTMLDivElement>(null)
  const title = metricTitle(metric)
  const loaded = loader.of(metric).value
  const data = useMemo(() => loaded && chartDataOf(loaded, title), [loaded])
  const thresholds = useMemo(
    () =>
      rules.map(({ name, severity, threshold, recoverThreshold }) => ({
        ...{ name, severity },
        value: threshold,
        recoverValue: recoverThreshold,
      })),
    [rules],
  )
  const periods = useMemo(
    () =>
      alerts
        .filter(({ seriesKey }) => seriesKey === metric || seriesKey.startsWith(`${metric}{`))
        .map(({ openedAtMs, resolvedAtMs, severity }) => ({ fromMs: openedAtMs, toMs: resolvedAtMs, severity })),
    [alerts, metric],
  )
  useEffect(() => {
    const element = place.current
    if (element === null) return
    // A little before it is seen, so that it is there when it is.
    const seen = new IntersectionObserver(entries => loader.setSeen(metric, entries.at(-1)?.isIntersecting ?? false), {
      rootMargin: '200px',
    })
    seen.observe(element)
    return () => {
      seen.disconnect()
      loader.setSeen(metric, false)
    }
  }, [metric, loader])
  return (
    <div class="metric-chart" ref={place} data-rows={Math.min(labels.length, 7)}>
      <Chart title={title} unit={unit} data={data} thresholds={thresholds} periods={periods} onRange={onRange}>
        {note === undefined ? null : <p class="chart-note">{note}</p>}
        {periods.length === 0 ? null : <p class="chart-note">{t('alert_periods', { count: periods.length })}</p>}
        <RuleNotes rules={rules} unit={unit} />
        {ruleHref === null ? null : (
          <a class="chart-rule" href={ruleHref}>
            {t('rule_from_chart')}
            <span class="visually-hidden"> {title}</span>
          </a>
        )}
        {compareHref === undefined ? null : (
          <a class="chart-rule" href={compareHref}>
            {compareText('from_chart')}
            <span class="visually-hidden"> {title}</span>
          </a>
        )}
      </Chart>
    </div>
  )
}
