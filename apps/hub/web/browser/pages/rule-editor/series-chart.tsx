// A series with the alerts that would have been, and the threshold, which is dragged: one small picture a series, all
// on one scale, so that the line means the same everywhere.
import type { RulePreviewView } from '../../../views/rule-preview.ts'
import { ruleEditorWords } from '../../../words/rule-editor.ts'
import { valueText } from '../../format.ts'
import type { Firing, JudgedSeries } from '../../judge/judge-messages.ts'
import { textsOf } from '../../session.ts'

const t = textsOf(ruleEditorWords)

const WIDTH = 600
const HEIGHT = 84
/** A longer pause is a gap in the line, as evaluation has it. */
const GAP_MS = 300_000

type Scale = { readonly low: number; readonly high: number; readonly step: number }

/** 1, 2 or 5 times a power of ten, at most `width`. */
function niceStep(width: number): number {
  const power = 10 ** Math.floor(Math.log10(width))
  const [found = 1] = [5, 2, 1].filter(times => times * power <= width)
  return found * power
}

/** The scale of all series: from zero, or below where values are, up to what is highest, the threshold included. */
export function scaleOf(series: readonly JudgedSeries[], threshold: number | null, unit: string | null): Scale {
  let [low, high] = unit === 'percent' ? [0, 100] : unit === 'bool' ? [0, 1] : [0, Number.NEGATIVE_INFINITY]
  for (const { values } of series)
    for (const value of values) {
      if (value < low) low = value
      if (value > high) high = value
    }
  if (threshold !== null) [low, high] = [Math.min(low, threshold), Math.max(high, threshold)]
  if (!(high > low)) high = low + 1
  if (unit !== 'percent') high += (high - low) * 0.1
  return { low, high, step: niceStep((high - low) / 200) }
}

const yOf = ({ low, high }: Scale, value: number): number => HEIGHT - ((value - low) / (high - low)) * HEIGHT

type Range = { readonly fromMs: number; readonly toMs: number }

const xOf = ({ fromMs, toMs }: Range, atMs: number): number => ((atMs - fromMs) / (toMs - fromMs)) * WIDTH

/** Highest and lowest of each column of pixels: a peak of one sample is seen in a week of them. */
function pathOf({ tsMs, values }: JudgedSeries, range: Range, scale: Scale): string {
  const parts: string[] = []
  let at = 0
  while (at < tsMs.length) {
    const column = Math.floor(xOf(range, tsMs[at]!))
    const isAfterGap = at === 0 || tsMs[at]! - tsMs[at - 1]! > GAP_MS
    let [low, high] = [values[at]!, values[at]!]
    const [first] = [values[at]!]
    let last = first
    at++
    while (at < tsMs.length && Math.floor(xOf(range, tsMs[at]!)) === column && tsMs[at]! - tsMs[at - 1]! <= GAP_MS) {
      last = values[at]!
      if (last < low) low = last
      if (last > high) high = last
      at++
    }
    const points = low === high ? [first] : [first, low, high, last]
    for (const [index, value] of points.entries())
      parts.push(`${isAfterGap && index === 0 ? 'M' : 'L'}${column} ${yOf(scale, value).toFixed(1)}`)
    if (isAfterGap && points.length === 1) parts.push(`h0.1`)
  }
  return parts.join('')
}

const widthOf = (range: Range, { openedAtMs, resolvedAtMs }: Firing): number =>
  Math.max(1, xOf(range, resolvedAtMs ?? range.toMs) - xOf(range, openedAtMs))

type Props = {
  readonly name: string
  readonly series: JudgedSeries
  readonly firings: readonly Firing[]
  readonly range: Range
  readonly scale: Scale
  readonly unit: string | null
  readonly severity: string
  readonly threshold: number | null
  readonly recover: number | null
  readonly onThreshold: (value: number) => void
}

/** The value at a height of the picture, in whole steps of the scale. */
function valueAt(event: PointerEvent, picture: Element, { low, high, step }: Scale): number {
  const box = picture.getBoundingClientRect()
  const share = 1 - (event.clientY - box.top) / box.height
  const value = Math.min(high, Math.max(low, low + share * (high - low)))
  return Number((Math.round(value / step) * step).toPrecision(8))
}

export function SeriesChart(props: Props) {
  const { name, series, firings, range, scale, unit, threshold, recover } = props
  const label = t('chart_of', {
    name,
    count: firings.length,
    max: valueText(
      unit,
      series.values.reduce((max, value) => Math.max(max, value), Number.NEGATIVE_INFINITY),
    ),
    min: valueText(
      unit,
      series.values.reduce((min, value) => Math.min(min, value), Number.POSITIVE_INFINITY),
    ),
  })
  const drag = (event: PointerEvent): void => {
    // A finger scrolls the page; for it there is the slider.
    if (event.pointerType === 'touch' || (event.buttons & 1) === 0) return
    const picture = event.currentTarget as Element
    if (event.type === 'pointerdown') picture.setPointerCapture(event.pointerId)
    props.onThreshold(valueAt(event, picture, scale))
  }
  return (
    <figure class="series-chart">
      <figcaption>
        <span class="text">{name}</span> <span class="muted">{t('told_times', { count: firings.length })}</span>
      </figcaption>
      <svg
        role="img"
        aria-label={label}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        data-severity={props.severity}
        onPointerDown={drag}
        onPointerMove={drag}
      >
        {firings.map(firing => (
          <g key={firing.openedAtMs}>
            <rect class="band" x={xOf(range, firing.openedAtMs)} y="0" width={widthOf(range, firing)} height={HEIGHT} />
            <rect class="strip" x={xOf(range, firing.openedAtMs)} y="0" width={widthOf(range, firing)} height="4" />
          </g>
        ))}
        <path class="values" d={pathOf(series, range, scale)} />
        {recover === null ? null : (
          <line class="recover" x1="0" x2={WIDTH} y1={yOf(scale, recover)} y2={yOf(scale, recover)} />
        )}
        {threshold === null ? null : (
          <line class="threshold" x1="0" x2={WIDTH} y1={yOf(scale, threshold)} y2={yOf(scale, threshold)} />
        )}
      </svg>
    </figure>
  )
}

/** The name of a series: its server and its labels. */
export const seriesName = ({ serverName, labels }: RulePreviewView['series'][number]): string =>
  [serverName, ...Object.values(labels)].join(' ')
