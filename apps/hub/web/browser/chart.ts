// The sparkline of CPU and memory of one server over the last hour. New values are added as snapshots bring them.
import uPlot from 'uplot'
import { chartMinutes, type LatestValues, type ServerSeries } from '../live-view.ts'
import { clockTime, percent } from './format.ts'
import { t } from './page.ts'

const HEIGHT = 104
const WINDOW_SECONDS = chartMinutes * 60
/** A longer pause than this many usual steps is a gap in the line. */
const GAP_STEPS = 2.5
const FEW_POINTS = 4
const VALUE_AXIS = 40
const EDGE = 6
const LABEL_HALF = 16

const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

type Columns = { times: number[]; cpu: (number | null)[]; memory: (number | null)[] }

/** The usual distance between values, in seconds. */
function usualStep(times: readonly number[], atLeast: number): number {
  const steps = times.slice(1).map((time, index) => time - (times[index] ?? time))
  const middle = steps.sort((a, b) => a - b)[Math.floor(steps.length / 2)] ?? atLeast
  return Math.max(middle, atLeast)
}

/** The columns with an empty place in every pause, so that the line is not drawn across it. */
function withGaps({ times, cpu, memory }: Columns, step: number): uPlot.AlignedData {
  const out: Columns = { times: [], cpu: [], memory: [] }
  times.forEach((time, index) => {
    const before = times[index - 1]
    if (before !== undefined && time - before > step * GAP_STEPS) {
      out.times.push(before + step)
      out.cpu.push(null)
      out.memory.push(null)
    }
    out.times.push(time)
    out.cpu.push(cpu[index] ?? null)
    out.memory.push(memory[index] ?? null)
  })
  return [out.times, out.cpu, out.memory]
}

export class Chart {
  private plot: uPlot | null = null
  private columns: Columns | null = null
  private nowSeconds = Date.now() / 1000
  private stepSeconds = 30

  constructor(
    private readonly place: HTMLElement,
    private readonly readout: HTMLElement,
  ) {}

  get isLoaded(): boolean {
    return this.columns !== null
  }

  get isEmpty(): boolean {
    return (this.columns?.times.length ?? 0) === 0
  }

  load(series: ServerSeries): void {
    this.columns = { times: [...series.times], cpu: [...series.cpu], memory: [...series.memory] }
    this.stepSeconds = series.stepSeconds
    this.draw()
  }

  /** Moves the window to `nowMs` and adds the newest values. */
  advance(nowMs: number, latest: LatestValues | null): void {
    this.nowSeconds = nowMs / 1000
    const { columns } = this
    if (!columns) return
    const at = latest?.sampledAtMs ? Math.round(latest.sampledAtMs / 1000) : null
    if (latest && at !== null && at > (columns.times.at(-1) ?? 0)) {
      columns.times.push(at)
      columns.cpu.push(latest.cpu)
      columns.memory.push(latest.memory)
    }
    const first = columns.times.findIndex(time => time >= this.nowSeconds - WINDOW_SECONDS - this.stepSeconds)
    const old = first < 0 ? columns.times.length : first
    for (const column of [columns.times, columns.cpu, columns.memory]) column.splice(0, old)
    this.draw()
  }

  /** Fits the width of its place. */
  resize(): void {
    const width = this.place.clientWidth
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT })
    else if (!this.plot) this.draw()
  }

  /** Draws anew, in the colours that hold now. */
  recolor(): void {
    this.remove()
    this.draw()
  }

  remove(): void {
    this.plot?.destroy()
    this.plot = null
  }

  private draw(): void {
    const { columns } = this
    if (!columns || columns.times.length === 0) {
      this.remove()
      return
    }
    const data = withGaps(columns, usualStep(columns.times, this.stepSeconds))
    if (this.plot) {
      this.plot.setData(data)
      return
    }
    const width = this.place.clientWidth
    if (width === 0) return
    this.plot = new uPlot(this.options(width), data, this.place)
  }

  private options(width: number): uPlot.Options {
    const [muted, grid] = [color('--muted'), color('--border')]
    const font = `11px ${color('--font')}`
    const line = (name: string): uPlot.Series => ({
      stroke: color(name),
      width: 1.75,
      points: { show: plot => (plot.data[0]?.length ?? 0) <= FEW_POINTS, size: 5, fill: color(name) },
    })
    return {
      width,
      height: HEIGHT,
      padding: [6, EDGE, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
      scales: {
        x: { time: true, range: () => [this.nowSeconds - WINDOW_SECONDS, this.nowSeconds] },
        y: { range: [0, 100] },
      },
      axes: [
        {
          size: 20,
          gap: 4,
          space: 56,
          font,
          stroke: muted,
          grid: { show: false },
          ticks: { show: false },
          values: (plot, splits) => splits.map(seconds => this.timeLabel(plot, seconds)),
        },
        {
          size: VALUE_AXIS,
          gap: 4,
          font,
          stroke: muted,
          grid: { stroke: grid, width: 1 },
          ticks: { show: false },
          splits: () => [0, 50, 100],
          values: (_plot, splits) => splits.map(value => `${value} %`),
        },
      ],
      series: [{}, line('--cpu'), line('--memory')],
      hooks: { setCursor: [plot => this.showReadout(plot)] },
    }
  }

  /** Empty where a label would run into the other axis or over the edge. */
  private timeLabel(plot: uPlot, seconds: number): string {
    const fromEnd = ((this.nowSeconds - seconds) / WINDOW_SECONDS) * (plot.width - VALUE_AXIS - EDGE)
    const isInside = fromEnd >= LABEL_HALF - EDGE && plot.width - VALUE_AXIS - EDGE - fromEnd >= LABEL_HALF + EDGE
    return isInside ? clockTime(seconds * 1000) : ''
  }

  private showReadout(plot: uPlot): void {
    const index = plot.cursor.idx
    const time = index == null ? undefined : plot.data[0]?.[index]
    if (index == null || time === undefined) {
      this.readout.textContent = ''
      return
    }
    const [cpu, memory] = [plot.data[1]?.[index] ?? null, plot.data[2]?.[index] ?? null]
    this.readout.textContent = `${clockTime(time * 1000)}  ${t('cpu')} ${percent(cpu)}  ${t('memory')} ${percent(memory)}`
  }
}
