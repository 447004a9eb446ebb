// One metric of several servers: a small chart for each on one scale, or all as lines of one chart. Which servers,
// which metric and which time stand in the address.
import { useMemo } from 'preact/hooks'
import type { CompareView } from '../../../views/compare.ts'
import { compareWords } from '../../../words/compare.ts'
import { hrefTo, param, setParams } from '../../address/router.ts'
import { metricTitle } from '../../metric-title.ts'
import { Chart } from '../../parts/chart/chart.tsx'
import type { ChartData } from '../../parts/chart/chart-data.ts'
import { statisticsOf } from '../../parts/chart/lines.ts'
import { CollectorBanner } from '../../parts/collector-banner.tsx'
import { Fault } from '../../parts/fault.tsx'
import { FilterField } from '../../parts/filter-field.tsx'
import { Icon } from '../../parts/icons.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { shownEnds, showRange } from '../../parts/time-range/shown-range.ts'
import { TimeRangePicker } from '../../parts/time-range/time-range.tsx'
import { textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { chartDataOf } from '../server/metric-chart.tsx'
import { ServerPicker } from './server-picker.tsx'
import './compare.css'

const t = textsOf(compareWords)

type Compared = CompareView['servers'][number]

const dataOf = ({ view }: Compared, title: string): ChartData =>
  chartDataOf({ view, series: view.metrics.flatMap(({ series }) => series), past: null }, title)

/** All series of all servers on the grid of the first; a line of a server with several says which one it is. */
function linesOf(all: readonly (readonly [Compared, ChartData])[]): ChartData | null {
  const grid = all[0]?.[1]
  if (grid === undefined) return null
  const lines = all.flatMap(([{ id, name }, data]) => {
    const shift = Math.round((data.startMs - grid.startMs) / grid.stepMs)
    return data.lines.map(line => ({
      ...line,
      key: `${id} ${line.key}`,
      name,
      detail: data.lines.length > 1 ? [line.name, line.detail].filter(Boolean).join(' ') : line.detail,
      values: shift === 0 ? line.values : line.values.map((_, at) => line.values[at - shift] ?? null),
    }))
  })
  return { ...grid, lines }
}

const MetricChoice = ({ data }: { readonly data: CompareView }) => (
  <label class="inline">
    <span class="muted">{t('metric')}</span>
    <select value={data.metric} onChange={event => setParams({ metric: event.currentTarget.value })}>
      {data.metrics.map(({ name }) => (
        <option value={name} key={name}>
          {metricTitle(name)}
        </option>
      ))}
    </select>
  </label>
)

const FormChoice = () => (
  <fieldset class="segments" aria-label={t('shown_as')}>
    {(['charts', 'lines'] as const).map(form => (
      <button
        type="button"
        key={form}
        aria-pressed={(param('as') || 'charts') === form}
        onClick={() => setParams({ as: form === 'charts' ? null : form })}
      >
        {t(`as_${form}`)}
      </button>
    ))}
  </fieldset>
)

/** As many as the view shows. */
const CHOSEN_MAX = 8

/** The chosen servers, each of which can be left out, and the field that adds one. */
function Chosen({ data }: { readonly data: CompareView }) {
  const chosen = data.servers.filter(({ isChosen }) => isChosen)
  const ids = chosen.map(({ id }) => id)
  const leave = (id: string): void =>
    setParams({
      servers: ids.filter(each => each !== id).join(','),
    })
  return (
    <div class="toolbar">
      {ids.length < CHOSEN_MAX ? (
        <ServerPicker chosen={ids} />
      ) : (
        <span class="muted">{t('most', { count: CHOSEN_MAX })}</span>
      )}
      <span class="chips">
        {chosen.map(({ id, name }) => (
          <button type="button" class="chip" key={id} aria-label={t('remove', { name })} onClick={() => leave(id)}>
            <span class="text">{name}</span>
            <Icon name="close" />
          </button>
        ))}
        {chosen.length === 0 ? null : (
          <button type="button" class="chip" onClick={() => setParams({ servers: null })}>
            {t('highest')}
          </button>
        )}
      </span>
    </div>
  )
}

function aboutText({ chosen, servers, matching, total, collector }: CompareView): string {
  if (servers.length === 0 && collector !== 'ok') return ''
  if (chosen > 1) return t('of_chosen', { count: chosen })
  const count = servers.length - chosen
  const of = Math.min(matching, total)
  return chosen === 1 ? t('beside', { count, total: of }) : t('of_highest', { count, total: of })
}

function Charts({ data }: { readonly data: CompareView }) {
  const title = metricTitle(data.metric)
  const all = useMemo(() => data.servers.map(server => [server, dataOf(server, title)] as const), [data])
  const isLines = param('as') === 'lines'
  const lines = useMemo(() => (isLines ? linesOf(all) : null), [all, isLines])
  // One scale for all: what is higher looks higher.
  const scaleMax = useMemo(() => {
    const tops = all.flatMap(([, { lines: own }]) => own.map(({ values }) => statisticsOf(values).max ?? 0))
    return Math.max(0, ...tops)
  }, [all])
  if (all.length === 0) return data.collector === 'ok' ? <p class="notice">{t('nobody')}</p> : null
  if (isLines) return <Chart title={title} unit={data.unit} data={lines} height={360} onRange={showRange} />
  const { from, to } = shownEnds()
  return (
    <>
      <p class="muted">{t('one_scale')}</p>
      <div class="compare-grid">
        {all.map(([{ id, name, leftOut, view }, chart]) => (
          <Chart
            key={id}
            title={name}
            unit={data.unit}
            data={chart}
            isUnanswered={view.collector === 'unavailable'}
            scaleMax={scaleMax}
            height={120}
            onRange={showRange}
          >
            <a href={hrefTo('server', { server: id }, { from, to })}>
              {t('open')}
              <span class="visually-hidden"> {name}</span>
            </a>
            {leftOut === 0 ? null : <span class="muted"> {t('more_series', { count: leftOut })}</span>}
          </Chart>
        ))}
      </div>
    </>
  )
}

export function ComparePage() {
  const { data, fault, reload } = usePageView<CompareView>('compare')
  if (data === null) return fault === null ? <Skeleton lines={12} /> : <Fault fault={fault} onRetry={reload} />
  return (
    <>
      <div class="page-head">
        <h1>{t('title')}</h1>
        <span class="muted">{aboutText(data)}</span>
      </div>
      <div class="toolbar">
        <MetricChoice data={data} />
        <FormChoice />
        <TimeRangePicker />
      </div>
      <Chosen data={data} />
      {data.chosen > 1 ? null : (
        <div class="toolbar">
          <FilterField facets={data.facets} />
        </div>
      )}
      <h2 class="visually-hidden">{metricTitle(data.metric)}</h2>
      <Charts data={data} />
      <CollectorBanner state={data.collector === 'no_data' ? 'ok' : data.collector} />
    </>
  )
}
