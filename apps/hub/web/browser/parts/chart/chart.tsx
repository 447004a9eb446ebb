// A chart: a plot with the legend below it, and a table that says the same. The crosshair and the range of time are
// those of all charts of the page.
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useMemo, useRef } from 'preact/hooks'
import { chartWords } from '../../../words/charts.ts'
import { dayAndClock, fullTime, isUtc, valueText } from '../../format.ts'
import { nowMs } from '../../hub-clock.ts'
import { textsOf } from '../../session.ts'
import type { ChartData } from './chart-data.ts'
import { ChartTable } from './chart-table.tsx'
import { Legend } from './legend.tsx'
import { type Period, statisticsOf } from './lines.ts'
import type { Span, Threshold, Zone } from './marks.ts'
import { paletteVersion } from './palette.ts'
import { Plot, type PlotData, type PlotEvents, setOnScreen } from './plot.ts'
import './chart.css'

const t = textsOf(chartWords)

type Props = {
  readonly title: string
  /** The unit of the values, as the catalogue names it. */
  readonly unit: string | null
  /** Null until it has come. */
  readonly data: ChartData | null
  /** Nobody could say what there is: an empty chart says that. */
  readonly isUnanswered?: boolean
  readonly thresholds?: readonly Threshold[]
  readonly periods?: readonly Period[]
  /** For how long a condition held before its alert opened. */
  readonly pending?: Span | null
  readonly height?: number
  /** The highest value of all charts of one scale. */
  readonly scaleMax?: number
  readonly onRange: (fromMs: number, toMs: number) => void
  /** Stands below the legend. */
  readonly children?: ComponentChildren
}

const HEIGHT = 160
const NAMED_MAX = 3

/** What a reader is told in place of the picture. */
function summaryOf({ title, unit, isUnanswered }: Props, { fromMs, toMs, lines }: ChartData): string {
  const said = lines.slice(0, NAMED_MAX).map(({ name, values }) => {
    const { last, max } = statisticsOf(values)
    return t('line_summary', { name, last: valueText(unit, last), max: valueText(unit, max) })
  })
  return t('chart_summary', {
    title,
    from: dayAndClock(fromMs),
    to: dayAndClock(toMs),
    lines: said.length === 0 ? t(isUnanswered ? 'no_answer' : 'no_points') : said.join('; '),
  })
}

function zonesOf({ fromMs, readableFromMs, lockedBeforeMs }: ChartData): Zone[] {
  const zones: Zone[] = []
  if (readableFromMs !== null && readableFromMs > fromMs) zones.push({ untilMs: readableFromMs, kind: 'unreadable' })
  if (lockedBeforeMs !== null && lockedBeforeMs > fromMs) zones.push({ untilMs: lockedBeforeMs, kind: 'locked' })
  return zones
}

function ZoneNotes({ data }: { readonly data: ChartData }) {
  return (
    <>
      {zonesOf(data).map(({ kind, untilMs }) => (
        <p class="muted chart-note" key={kind}>
          {t(kind === 'unreadable' ? 'beyond_retention' : 'locked_zone', { time: fullTime(untilMs) })}
        </p>
      ))}
    </>
  )
}

/** Draws what `data` says into a place, and follows its size, the colours and the zone of times. */
function usePlot(data: PlotData | null, height: number, events: PlotEvents, isShown: boolean) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<Plot | null>(null)
  // Told by the observer, not asked for: between the charts that come together each question would lay out the page.
  const width = useRef(0)
  const newest = useRef({ data, events })
  newest.current = { data, events }
  const remove = () => {
    plot.current?.remove()
    plot.current = null
  }
  const draw = () => {
    const { data: shown } = newest.current
    if (shown === null) return remove()
    if (plot.current?.fits(shown)) return plot.current.show(shown)
    remove()
    if (place.current === null || width.current === 0) return
    plot.current = new Plot(
      place.current,
      shown,
      { width: width.current, height },
      {
        onCursor: index => newest.current.events.onCursor(index),
        onRange: (fromMs, toMs) => newest.current.events.onRange(fromMs, toMs),
      },
    )
  }
  useEffect(draw, [data, isShown])
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const resized = new ResizeObserver(entries => {
      width.current = Math.floor(entries.at(-1)?.contentRect.width ?? 0)
      if (plot.current === null) draw()
      else plot.current.resize(width.current)
    })
    const seen = new IntersectionObserver(entries => setOnScreen(element, entries.at(-1)?.isIntersecting ?? false))
    resized.observe(element)
    seen.observe(element)
    const redraw = () => plot.current?.redraw()
    const stops = [paletteVersion.subscribe(redraw), isUtc.subscribe(redraw)]
    return () => {
      resized.disconnect()
      seen.disconnect()
      for (const stop of stops) stop()
      remove()
    }
  }, [isShown])
  return place
}

const nothing: readonly never[] = []

export function Chart(props: Props) {
  const {
    title,
    unit,
    data,
    thresholds = nothing,
    periods = nothing,
    pending = null,
    height = HEIGHT,
    scaleMax = 0,
  } = props
  const { onRange, children } = props
  const cursor = useSignal<number | null>(null)
  const isTable = useSignal(false)
  const titleId = useId()
  const plotData = useMemo(
    () =>
      data === null || data.lines.length === 0
        ? null
        : { ...toPlotData(data, unit), thresholds, periods, pending, scaleMax },
    [data, unit, thresholds, periods, pending, scaleMax],
  )
  const onCursor = (index: number | null) => {
    cursor.value = index
  }
  const place = usePlot(plotData, height, { onCursor, onRange }, !isTable.value)
  const isEmpty = data !== null && plotData === null
  return (
    <figure class="chart" aria-labelledby={titleId} aria-busy={data === null}>
      <figcaption class="chart-head">
        <h3 id={titleId}>{title}</h3>
        {plotData === null ? null : (
          <button
            type="button"
            class="quiet chart-act"
            onClick={() => {
              isTable.value = !isTable.value
            }}
          >
            {t(isTable.value ? 'as_chart' : 'as_table')}
            <span class="visually-hidden"> {title}</span>
          </button>
        )}
      </figcaption>
      {isTable.value && data !== null ? (
        <ChartTable title={title} unit={unit} data={data} />
      ) : (
        <div class="chart-place">
          {isEmpty ? <p class="chart-empty">{t(props.isUnanswered ? 'no_answer' : 'no_points')}</p> : null}
          <div
            class="chart-plot"
            ref={place}
            role="img"
            aria-label={data === null ? title : summaryOf(props, data)}
            data-height={height}
          />
        </div>
      )}
      {data === null ? null : <ZoneNotes data={data} />}
      {data === null || isEmpty ? null : <Legend unit={unit} data={data} cursor={cursor} />}
      {children === undefined ? null : <div class="chart-foot">{children}</div>}
    </figure>
  )
}

function toPlotData(
  data: ChartData,
  unit: string | null,
): Omit<PlotData, 'thresholds' | 'periods' | 'pending' | 'scaleMax'> {
  const { startMs, stepMs, fromMs, toMs } = data
  const lines = data.lines.map(({ key, values }) => ({ values, past: data.past?.lines.get(key) ?? null }))
  return { startMs, stepMs, fromMs, toMs, unit, lines, zones: zonesOf(data), nowMs: nowMs() }
}
