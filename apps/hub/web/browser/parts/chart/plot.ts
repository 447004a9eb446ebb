// The plot of a chart: the only place that knows the library which draws it. Plots of a page share one crosshair and
// one range of time.
import { valueRange } from './value-axis.ts'
import 'uplot/dist/uPlot.min.css'
import uPlot from 'uplot'
import { clockTime, dayText, isUtc, percent, valueText } from '../../format.ts'
import { isolatedPoints, withGaps } from './line-gaps.ts'
import type { Period, TimeGrid } from './lines.ts'
import { type Canvas, drawBehind, drawThresholds, type Span, type Threshold, type Zone } from './marks.ts'
import { lineColour, lineDash, palette } from './palette.ts'

export type PlotLine = {
  readonly values: readonly (number | null)[]
  /** The same line some days ago, on the same grid; null: nothing to compare with. */
  readonly past: readonly (number | null)[] | null
}

export type PlotData = TimeGrid & {
  readonly fromMs: number
  readonly toMs: number
  readonly unit: string | null
  readonly lines: readonly PlotLine[]
  readonly thresholds: readonly Threshold[]
  readonly periods: readonly Period[]
  readonly pending: Span | null
  readonly zones: readonly Zone[]
  readonly nowMs: number
  /** The scale reaches at least that far: of charts that are compared. */
  readonly scaleMax: number
}

export type PlotEvents = {
  /** The crosshair stands on that place of the grid; null: it is gone. */
  readonly onCursor: (index: number | null) => void
  /** A range was drawn with the pointer. */
  readonly onRange: (fromMs: number, toMs: number) => void
}

/** In pixels. */
type PlotSize = { readonly width: number; readonly height: number }

const VALUE_AXIS = 62
/** Half of a time of day, which may stand at the end of the axis. */
const EDGE = 18
const FONT_PIXELS = 11
/** Ticks of bytes are powers of two and their multiples. */
const BYTE_STEPS = Array.from({ length: 52 }, (_, power) => 2 ** power)

/** All plots of the page, for the crosshair. */
const plots = new Set<Plot>()
/** The plot over which the pointer is, and whose crosshair the others follow. */
let leading: Plot | null = null

let lastTimes: { readonly key: string; readonly seconds: number[] } = { key: '', seconds: [] }

/** The instants of a grid, in seconds. Charts that come together are on the same. */
function timesOf(startMs: number, stepMs: number, length: number): number[] {
  const key = `${startMs} ${stepMs} ${length}`
  if (lastTimes.key !== key)
    lastTimes = { key, seconds: Array.from({ length }, (_, index) => (startMs + index * stepMs) / 1000) }
  return lastTimes.seconds
}

export class Plot {
  private readonly plot: uPlot
  private data: PlotData
  private isFollowing = false

  constructor(
    private readonly place: HTMLElement,
    data: PlotData,
    size: PlotSize,
    private readonly events: PlotEvents,
  ) {
    this.data = data
    // Drawn before it is in the document: there each font that is set would have all styles worked out first, and
    // with thirty charts thirty times. The library draws in the microtask before this one.
    this.plot = new uPlot(this.options(size), this.columns(), (_, init) => init())
    queueMicrotask(() => {
      if (plots.has(this)) place.append(this.plot.root)
    })
    plots.add(this)
  }

  /** Whether other data needs a plot of its own: the number of lines, or the unit, is another. */
  fits(data: PlotData): boolean {
    const pastCount = ({ lines }: PlotData) => lines.filter(({ past }) => past !== null).length
    return (
      data.unit === this.data.unit &&
      data.lines.length === this.data.lines.length &&
      pastCount(data) === pastCount(this.data)
    )
  }

  show(data: PlotData): void {
    this.data = data
    this.plot.setData(this.columns())
  }

  resize(width: number): void {
    if (width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: this.plot.height })
  }

  /** Draws anew, in the colours and the zone that hold now. */
  redraw(): void {
    this.plot.redraw(true, true)
  }

  remove(): void {
    plots.delete(this)
    if (leading === this) {
      leading = null
      for (const other of plots) other.follow(null)
    }
    this.plot.destroy()
  }

  private columns(): uPlot.AlignedData {
    const { startMs, stepMs, lines } = this.data
    const length = lines.reduce((most, { values }) => Math.max(most, values.length), 0)
    const times = timesOf(startMs, stepMs, length)
    const past = lines.flatMap(line => (line.past === null ? [] : [withGaps(line.past)]))
    return [times, ...past, ...lines.map(({ values }) => withGaps(values))]
  }

  private series(): uPlot.Series[] {
    const isolated: uPlot.Series.Points.Filter = (plot, index) => isolatedPoints([...(plot.data[index] ?? [])])
    const line = (index: number, isPast: boolean): uPlot.Series => ({
      stroke: () => lineColour(index),
      width: isPast ? 1 : 1.5,
      alpha: isPast ? 0.55 : 1,
      dash: isPast ? [4, 4] : [...lineDash(index)],
      points: isPast ? { show: false } : { show: true, filter: isolated, size: 5, fill: () => lineColour(index) },
    })
    const { lines } = this.data
    const past = lines.flatMap(({ past }, index) => (past === null ? [] : [line(index, true)]))
    return [{}, ...past, ...lines.map((_, index) => line(index, false))]
  }

  private axes(): uPlot.Axis[] {
    const font = `${FONT_PIXELS}px ${palette().font}`
    const common = { font, stroke: () => palette().text, ticks: { show: false }, gap: 4 } as const
    return [
      {
        ...common,
        // Below the lowest value's half line, which would touch the first time.
        gap: 9,
        size: 27,
        space: 64,
        grid: { show: false },
        values: (_plot, splits, _axis, _space, incr) => splits.map(seconds => timeLabel(seconds * 1000, incr)),
      },
      {
        ...common,
        size: VALUE_AXIS,
        space: 32,
        grid: { stroke: () => palette().grid, width: 1 },
        values: (_plot, splits) => splits.map(value => axisText(this.data.unit, value)),
        ...(this.data.unit === 'bytes' || this.data.unit === 'bytes/s' ? { incrs: BYTE_STEPS } : {}),
        ...(this.data.unit === 'bool' ? { splits: () => [0, 1] } : {}),
      },
    ]
  }

  private options(size: PlotSize): uPlot.Options {
    return {
      ...size,
      padding: [8, EDGE, 0, 0],
      legend: { show: false },
      tzDate: seconds => {
        const date = new Date(seconds * 1000)
        return isUtc.peek() ? uPlot.tzDate(date, 'Etc/UTC') : date
      },
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false },
        points: { size: 6 },
        bind: { dblclick: () => null },
      },
      scales: {
        x: { time: true, range: () => [this.data.fromMs / 1000, this.data.toMs / 1000] },
        y: { range: (_plot, min, max) => valueRange(this.data, min, max) },
      },
      axes: this.axes(),
      series: this.series(),
      hooks: {
        drawClear: [() => drawBehind(this.canvas(), this.data)],
        draw: [() => drawThresholds(this.canvas(), this.data.thresholds, value => axisText(this.data.unit, value))],
        setCursor: [() => this.cursorMoved()],
        setSelect: [() => this.selected()],
      },
    }
  }

  private canvas(): Canvas {
    const { ctx, bbox } = this.plot
    return {
      context: ctx,
      ...bbox,
      ratio: uPlot.pxRatio,
      xOf: atMs => this.plot.valToPos(atMs / 1000, 'x', true),
      yOf: value => this.plot.valToPos(value, 'y', true),
    }
  }

  private cursorMoved(): void {
    const { idx, left } = this.plot.cursor
    this.events.onCursor(idx == null || left === undefined || left < 0 ? null : idx)
    if (this.isFollowing) return
    const share = left === undefined || left < 0 ? null : left / this.plot.over.clientWidth
    // A plot that is new says that it has no crosshair: the others have nothing to follow.
    if (share === null && leading !== this) return
    leading = share === null ? null : this
    for (const other of plots) if (other !== this) other.follow(share)
  }

  /** Sets the crosshair to that share of the width; null takes it away. */
  private follow(share: number | null): void {
    if (!isOnScreen(this.place)) return
    this.isFollowing = true
    const left = share === null ? -10 : share * this.plot.over.clientWidth
    this.plot.setCursor({ left, top: share === null ? -10 : 1 }, true)
    this.isFollowing = false
  }

  private selected(): void {
    const { left, width } = this.plot.select
    if (width <= 0) return
    const [from, to] = [this.plot.posToVal(left, 'x'), this.plot.posToVal(left + width, 'x')]
    this.plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    this.events.onRange(Math.round(from * 1000), Math.round(to * 1000))
  }
}

/** Known by the observer of each chart: measuring thirty places at every move would cost more than moving. */
const onScreen = new WeakSet<Element>()
const isOnScreen = (place: Element): boolean => onScreen.has(place)
export function setOnScreen(place: Element, isShown: boolean): void {
  if (isShown) onScreen.add(place)
  else onScreen.delete(place)
}

/** Whole percents have no decimals on an axis. */
const axisText = (unit: string | null, value: number): string =>
  unit === 'percent' && Number.isInteger(value) ? percent(value) : valueText(unit, value)

const HOUR_SECONDS = 3_600

/** Midnight is shown as the day. */
function timeLabel(atMs: number, stepSeconds: number): string {
  if (stepSeconds >= 24 * HOUR_SECONDS) return dayText(atMs)
  const clock = clockTime(atMs)
  return clock === '00:00' ? dayText(atMs) : clock
}
