// The charts of a server: every metric that was ever sent, in groups, each mount, interface and device a line of its
// own.
import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { matchPage } from '../../../address/site-map.ts'
import type { AlertsView, ServerAlert } from '../../../views/server/alerts.ts'
import type { ChangedMetric, ChangesView } from '../../../views/server/changes.ts'
import type { ChartOfMetric, ChartsView } from '../../../views/server/charts.ts'
import { chartWords } from '../../../words/charts.ts'
import { metricGroupWords } from '../../../words/metrics.ts'
import { serverWords } from '../../../words/server.ts'
import { hrefTo, param, setParams } from '../../address/router.ts'
import { dayAndClock } from '../../format.ts'
import { usePageKeys } from '../../keys.ts'
import { metricTitle } from '../../metric-title.ts'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { shownEnds, shownRange } from '../../parts/time-range/shown-range.ts'
import { TimeRangePicker } from '../../parts/time-range/time-range.tsx'
import { company, may, textsOf } from '../../session.ts'
import { useView } from '../../view.ts'
import type { TabProps } from './late-props.ts'
import { MetricChart } from './metric-chart.tsx'
import { groupedMetrics, type MetricGroup } from './metric-groups.ts'
import { SeriesLoader } from './series-loader.ts'

const t = textsOf(serverWords)
const chartText = textsOf(chartWords)
const groupText = textsOf(metricGroupWords)

const AGGREGATES = ['avg', 'min', 'max', 'last'] as const
const COMPARED: readonly string[] = ['', '1d', '7d']

const daysOf = (compare: string): number => (compare === '1d' ? 1 : compare === '7d' ? 7 : 0)

/** `c` compares with the day before, then the week before, then with nothing. */
const compareKeys = {
  c: () => {
    const at = COMPARED.indexOf(param('compare'))
    setParams({ compare: COMPARED[(at + 1) % COMPARED.length] })
  },
}

/** The span is that of now, not one that moves on: what is ranked must not change under the eyes. */
function rankShown(): void {
  const { fromMs, toMs } = shownRange()
  setParams({ changed: '1', from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() })
}

function Toolbar({ find, onFind }: { readonly find: string; readonly onFind: (text: string) => void }) {
  usePageKeys(compareKeys)
  const isRanked = param('changed') !== ''
  return (
    <div class="toolbar chart-toolbar">
      <TimeRangePicker />
      <label>
        <span>{chartText('aggregate')}</span>
        <select
          value={param('agg') || 'avg'}
          onChange={event => setParams({ agg: event.currentTarget.value === 'avg' ? null : event.currentTarget.value })}
        >
          {AGGREGATES.map(each => (
            <option value={each} key={each}>
              {chartText(`agg_${each}`)}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>{chartText('compare')}</span>
        <select
          value={param('compare')}
          title="c"
          onChange={event => setParams({ compare: event.currentTarget.value })}
        >
          <option value="">{chartText('compare_none')}</option>
          <option value="1d">{chartText('compare_1d')}</option>
          <option value="7d">{chartText('compare_7d')}</option>
        </select>
      </label>
      <button
        type="button"
        aria-pressed={isRanked}
        onClick={() => (isRanked ? setParams({ changed: null }) : rankShown())}
      >
        {t('what_changed')}
      </button>
      <input
        type="search"
        aria-label={t('find_metric')}
        placeholder={t('find_metric')}
        value={find}
        onInput={event => onFind(event.currentTarget.value)}
      />
    </div>
  )
}

/** The rule editor with the metric filled in; null where there is none, or who looks may not change rules. */
function ruleHref(serverId: string, chart: ChartOfMetric): string | null {
  if (!may('monitoring.manage') || matchPage('/rules/new') === null) return null
  const search = new URLSearchParams({ metric: chart.metric, server: serverId })
  const [only, ...others] = chart.labels
  if (only !== undefined && others.length === 0)
    for (const [name, value] of Object.entries(only)) search.append('label', `${name}:${value}`)
  return `/c/${encodeURIComponent(company.slug)}/rules/new?${search}`
}

/** The same metric and time, beside the servers where it is highest. */
const compareHref = (serverId: string, { metric }: ChartOfMetric): string =>
  hrefTo('compare', {}, { metric, servers: serverId, from: param('from'), to: param('to') })

type ChartsProps = { readonly serverId: string; readonly loader: SeriesLoader; readonly alerts: readonly ServerAlert[] }

const ChartGrid = ({
  charts,
  noteOf,
  ...shared
}: ChartsProps & {
  readonly charts: readonly ChartOfMetric[]
  readonly noteOf?: (metric: string) => string | undefined
}) => (
  <div class="chart-grid">
    {charts.map(chart => (
      <MetricChart
        key={chart.metric}
        chart={chart}
        loader={shared.loader}
        alerts={shared.alerts}
        note={noteOf?.(chart.metric)}
        ruleHref={ruleHref(shared.serverId, chart)}
        compareHref={compareHref(shared.serverId, chart)}
      />
    ))}
  </div>
)

function Group({ group, ...shared }: ChartsProps & { readonly group: MetricGroup }) {
  return (
    <section aria-labelledby={`group-${group.name}`}>
      <h2 id={`group-${group.name}`}>{groupText(`group_${group.name}`)}</h2>
      <ChartGrid charts={group.charts} {...shared} />
    </section>
  )
}

/** The charts in the order of how much they changed. */
function Ranked({ charts, ...shared }: ChartsProps & { readonly charts: readonly ChartOfMetric[] }) {
  const { from, to } = shownEnds()
  const view = useView<ChangesView>('server-changes', { server: shared.serverId, from, to })
  if (view.data === null) return view.fault === null ? <Skeleton /> : <Fault fault={view.fault} onRetry={view.reload} />
  const { fromMs, toMs, changes } = view.data
  const byMetric = new Map<string, ChangedMetric>(
    changes.filter(({ change }) => change > 0).map(each => [each.metric, each]),
  )
  const changeOf = ({ metric }: ChartOfMetric): number => byMetric.get(metric)?.change ?? 0
  const ranked = charts.filter(chart => changeOf(chart) > 0).sort((one, other) => changeOf(other) - changeOf(one))
  const noteOf = (metric: string) => {
    const found = byMetric.get(metric)
    if (found === undefined) return undefined
    const series = Object.values(found.labels).join(' ')
    const percent = Math.round(found.change * 100)
    return series === '' ? t('changed_by', { percent }) : t('changed_series', { percent, series })
  }
  return (
    <section aria-labelledby="changed">
      <h2 id="changed">{t('what_changed')}</h2>
      <p class="muted">{t('what_changed_text', { from: dayAndClock(fromMs), to: dayAndClock(toMs) })}</p>
      {ranked.length === 0 ? <p>{t('nothing_changed')}</p> : <ChartGrid charts={ranked} noteOf={noteOf} {...shared} />}
    </section>
  )
}

const noAlerts: readonly ServerAlert[] = []

export function MetricsTab({ serverId }: TabProps) {
  const find = useSignal('')
  const { from, to } = shownEnds()
  const view = useView<ChartsView>('server-charts', { server: serverId })
  const alertsView = useView<AlertsView>('server-alerts', { server: serverId, from, to })
  const alerts = alertsView.data?.alerts ?? noAlerts
  const loader = useMemo(() => new SeriesLoader(serverId), [serverId])
  const [agg, days] = [param('agg') || 'avg', daysOf(param('compare'))]
  useEffect(() => loader.show({ from, to, agg, days }), [loader, from, to, agg, days])
  useEffect(() => () => loader.stop(), [loader])
  const charts = view.data?.charts
  const groups = useMemo(() => groupedMetrics(charts ?? []), [charts])
  if (view.data === null) return view.fault === null ? <Skeleton /> : <Fault fault={view.fault} onRetry={view.reload} />
  // Charts say how many alerts they had: drawn before that is known they would grow.
  if (alertsView.data === null && alertsView.fault === null) return <Skeleton />
  const { collector, isTruncated } = view.data
  if (view.data.charts.length === 0)
    return <NoMetrics isSilent={collector === 'unavailable' || collector === 'not_configured'} />
  const words = find.value.trim().toLowerCase()
  const isWanted = ({ metric }: ChartOfMetric) => `${metric} ${metricTitle(metric)}`.toLowerCase().includes(words)
  const shared = { serverId, loader, alerts }
  const found = view.data.charts.filter(isWanted)
  return (
    <>
      <Toolbar
        find={find.value}
        onFind={text => {
          find.value = text
        }}
      />
      {loader.fault.value !== null || collector === 'unavailable' ? (
        <p class="banner" role="status">
          {t('collector_silent')} {t('of_before')}
        </p>
      ) : null}
      {isTruncated ? <p class="muted">{t('truncated')}</p> : null}
      {found.length === 0 ? <p>{t('nothing_found')}</p> : null}
      {param('changed') !== '' ? (
        <Ranked charts={found} {...shared} />
      ) : words !== '' ? (
        <ChartGrid charts={found} {...shared} />
      ) : (
        groups.map(group => <Group key={group.name} group={group} {...shared} />)
      )}
    </>
  )
}

const NoMetrics = ({ isSilent }: { readonly isSilent: boolean }) => (
  <div class="notice">
    <p>{t(isSilent ? 'collector_silent' : 'no_metrics')}</p>
  </div>
)
