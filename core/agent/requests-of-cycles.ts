// What one cycle of the agent yields, and how cycles become the series of a request: merged by series, and halved when
// a request is too large (document 3 "Limits", "Errors" 413; decision G-55). What is left out of too many series:
// series-ceiling.ts.
import { assert } from '../assert.ts'
import { limits } from '../limits.ts'
import { distinctLabelValue, type Labels } from '../series/labels.ts'
import { fullSeriesKey } from '../series/series-key.ts'
import { reportedValue } from './reported-value.ts'

/** One value read in a cycle. `tsMs` only where it differs from the cycle's instant (results of checks). */
export type Sample = { readonly name: string; readonly labels: Labels; readonly value: number; readonly tsMs?: number }

type SeriesPoint = { readonly tsMs: number; readonly value: number }
export type PointSeries = { readonly name: string; readonly labels: Labels; readonly points: readonly SeriesPoint[] }

/** A sample without labels. */
export const plain = (name: string, value: number): Sample => ({ name, labels: {}, value })

function shortLabels(labels: Labels): Labels {
  // At most three bytes for each character: these values are within the limit in UTF-8 too.
  const isShort = Object.values(labels).every(value => value.length * 3 <= limits.labelValueBytesMax)
  if (isShort) return labels
  return Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, distinctLabelValue(value)]))
}

/** The samples of a cycle as series of one point each; values that are no finite number are left out. */
export function seriesOfCycle(samples: readonly Sample[], cycleAtMs: number): PointSeries[] {
  return mergeSeries(
    samples
      .filter(sample => Number.isFinite(sample.value))
      .map(({ name, labels, value, tsMs }) => ({
        name,
        labels: shortLabels(labels),
        points: [{ tsMs: tsMs ?? cycleAtMs, value: reportedValue(name, value) }],
      })),
  )
}

/**
 * Merges series with the same name and labels; points keep their order, and of two points at one instant the later one
 * counts.
 */
export function mergeSeries(series: readonly PointSeries[]): PointSeries[] {
  const byKey = new Map<string, { name: string; labels: Labels; points: Map<number, number> }>()
  for (const { name, labels, points } of series) {
    const key = fullSeriesKey(name, labels)
    const merged = byKey.get(key) ?? { name, labels, points: new Map<number, number>() }
    byKey.set(key, merged)
    for (const { tsMs, value } of points) merged.points.set(tsMs, value)
  }
  return [...byKey.values()].map(({ name, labels, points }) => ({
    name,
    labels,
    points: [...points].map(([tsMs, value]) => ({ tsMs, value })),
  }))
}

export const pointCount = (series: readonly PointSeries[]): number =>
  series.reduce((count, { points }) => count + points.length, 0)

/** Splits series into two halves, or the points of a single series; null for a single point. */
export function halveSeries(series: readonly PointSeries[]): [PointSeries[], PointSeries[]] | null {
  assert(series.length > 0, 'there is something to halve')
  if (series.length > 1) {
    const middle = Math.ceil(series.length / 2)
    return [series.slice(0, middle), series.slice(middle)]
  }
  const [only] = series
  if (!only || only.points.length < 2) return null
  const middle = Math.ceil(only.points.length / 2)
  return [[{ ...only, points: only.points.slice(0, middle) }], [{ ...only, points: only.points.slice(middle) }]]
}

/** How many of the oldest entries fit together into one request of at most `pointsMax` points; at least one. */
export function groupCount(entryPoints: readonly number[], pointsMax: number): number {
  let points = 0
  let count = 0
  for (const entry of entryPoints) {
    if (count > 0 && points + entry > pointsMax) break
    points += entry
    count++
  }
  return count
}
