// Loads the points of charts as they come on screen, a few metrics a request, the next when the last has answered.
// What is shown stays until its successor has come. A range that moves with the time is loaded again now and then.
import { type Signal, signal } from '@preact/signals'
import { rangeOf } from '../../../address/time-range.ts'
import type { GridSeries, SeriesView } from '../../../views/server/series.ts'
import { type ApiFault, isObject } from '../../api.ts'
import { connection } from '../../connection/live.ts'
import { isUtc } from '../../format.ts'
import { nowMs } from '../../hub-clock.ts'
import { daysBefore } from '../../parts/chart/lines.ts'
import { readView } from '../../view-request.ts'

const METRICS_A_REQUEST = 6
const RELOAD_MIN_MS = 15_000
const RELOAD_MAX_MS = 120_000
const POINTS = 500
const RETRY_MS = 5_000

/** What charts show: the ends as the address has them. */
type SeriesQuery = {
  readonly from: string
  readonly to: string
  readonly agg: string
  /** Days before that it is compared with; 0: nothing. */
  readonly days: number
}

export type Loaded = {
  readonly view: SeriesView
  readonly series: readonly GridSeries[]
  readonly past: { readonly view: SeriesView; readonly series: readonly GridSeries[]; readonly days: number } | null
}

type Chart = { readonly loaded: Signal<Loaded | null>; version: number; isSeen: boolean }

const isFault = (error: unknown): error is ApiFault => isObject(error) && 'errors' in error

export class SeriesLoader {
  /** Why the last request was refused; null once one is answered. */
  readonly fault = signal<ApiFault | null>(null)
  private readonly charts = new Map<string, Chart>()
  /** Metrics that answers had no place for: asked for alone. */
  private readonly alone = new Set<string>()
  private query: SeriesQuery | null = null
  private version = 0
  private isLoading = false
  private control = new AbortController()
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(private readonly serverId: string) {}

  /** The points of a metric; null until they have come. */
  of(metric: string): Signal<Loaded | null> {
    return this.chart(metric).loaded
  }

  setSeen(metric: string, isSeen: boolean): void {
    this.chart(metric).isSeen = isSeen
    if (isSeen) this.start()
  }

  /** Loads another range; the charts keep what they show until it has come. */
  show(query: SeriesQuery): void {
    if (JSON.stringify(query) === JSON.stringify(this.query)) return
    this.query = query
    this.control.abort()
    this.control = new AbortController()
    this.isLoading = false
    this.renew()
  }

  stop(): void {
    clearTimeout(this.timer)
    this.control.abort()
  }

  private chart(metric: string): Chart {
    const known = this.charts.get(metric)
    if (known) return known
    const chart: Chart = { loaded: signal(null), version: 0, isSeen: false }
    this.charts.set(metric, chart)
    return chart
  }

  private renew(): void {
    clearTimeout(this.timer)
    this.version++
    this.start()
    const { query } = this
    if (query === null || !query.to.startsWith('now')) return
    const { fromMs, toMs } = rangeOf(query.from, query.to, nowMs())
    const afterMs = Math.min(RELOAD_MAX_MS, Math.max(RELOAD_MIN_MS, (toMs - fromMs) / POINTS))
    this.timer = setTimeout(() => {
      if (document.hidden || connection.peek() !== 'live') this.timer = setTimeout(() => this.renew(), RETRY_MS)
      else this.renew()
    }, afterMs)
  }

  /** Gathered for a moment: charts of a row come on screen together. */
  private start(): void {
    if (this.isLoading || this.query === null) return
    this.isLoading = true
    const { control } = this
    setTimeout(() => {
      if (!control.signal.aborted) void this.loadNext(control.signal)
    })
  }

  private waiting(): string[] {
    const waiting = [...this.charts]
      .filter(([, { isSeen, version }]) => isSeen && version !== this.version)
      .map(([metric]) => metric)
    const single = waiting.find(metric => this.alone.has(metric))
    return single === undefined ? waiting.slice(0, METRICS_A_REQUEST) : [single]
  }

  private async loadNext(abort: AbortSignal): Promise<void> {
    const { query, version } = this
    const metrics = this.waiting()
    if (query === null || metrics.length === 0) {
      this.isLoading = false
      return
    }
    try {
      const [view, past] = await Promise.all([this.read(query, metrics, abort), this.readPast(query, metrics, abort)])
      if (abort.aborted) return
      this.fault.value = null
      this.take(metrics, version, query, view, past)
    } catch (error) {
      if (abort.aborted) return
      if (isFault(error)) this.fault.value = error
      this.isLoading = false
      setTimeout(() => this.start(), RETRY_MS)
      return
    }
    await this.loadNext(abort)
  }

  private take(
    metrics: readonly string[],
    version: number,
    query: SeriesQuery,
    view: SeriesView,
    past: SeriesView | null,
  ): void {
    for (const metric of metrics) {
      if (view.leftOut.includes(metric) && metrics.length > 1) {
        this.alone.add(metric)
        continue
      }
      const seriesIn = ({ metrics: found }: SeriesView) => found.find(each => each.metric === metric)?.series ?? []
      const chart = this.chart(metric)
      chart.version = version
      chart.loaded.value = {
        view,
        series: seriesIn(view),
        past: past && { view: past, series: seriesIn(past), days: query.days },
      }
    }
  }

  private read(
    { from, to, agg }: Omit<SeriesQuery, 'days'>,
    metrics: readonly string[],
    abort: AbortSignal,
  ): Promise<SeriesView> {
    return readView<SeriesView>(
      'server-series',
      { server: this.serverId, metrics: metrics.join(','), from, to, agg },
      abort,
    )
  }

  private async readPast(
    query: SeriesQuery,
    metrics: readonly string[],
    abort: AbortSignal,
  ): Promise<SeriesView | null> {
    if (query.days === 0) return null
    const { fromMs, toMs } = rangeOf(query.from, query.to, nowMs())
    const before = (atMs: number) => new Date(daysBefore(atMs, query.days, isUtc.peek())).toISOString()
    return this.read({ from: before(fromMs), to: before(toMs), agg: query.agg }, metrics, abort)
  }
}
