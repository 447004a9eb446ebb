// What a chart draws, from values on a grid of time: statistics, periods, and the past that it is compared with. Where
// a line is interrupted: line-gaps.ts.

/** A line: its name, and a value for every instant of the grid; null where nothing was sent. */
export type ChartLine = {
  readonly key: string
  readonly name: string
  /** Said beside the name, as the device of a mount. */
  readonly detail: string
  readonly values: readonly (number | null)[]
}

/** Instants at `startMs` and every `stepMs` from there. */
export type TimeGrid = { readonly startMs: number; readonly stepMs: number }

export type LineStatistics = {
  readonly last: number | null
  readonly min: number | null
  readonly avg: number | null
  readonly max: number | null
}

/** Known of lines that are there still: the legend and what is read out ask for the same. */
const known = new WeakMap<readonly (number | null)[], LineStatistics>()

export function statisticsOf(values: readonly (number | null)[]): LineStatistics {
  const before = known.get(values)
  if (before !== undefined) return before
  const found = countedStatistics(values)
  known.set(values, found)
  return found
}

function countedStatistics(values: readonly (number | null)[]): LineStatistics {
  let [count, sum, min, max] = [0, 0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  let last: number | null = null
  for (const value of values) {
    if (value === null) continue
    count++
    sum += value
    last = value
    if (value < min) min = value
    if (value > max) max = value
  }
  return count === 0 ? { last: null, min: null, avg: null, max: null } : { last, min, avg: sum / count, max }
}

/** The instant at the same time of day that many days before: across a change of clock too, unless in UTC. */
export function daysBefore(atMs: number, days: number, isUtc: boolean): number {
  if (isUtc) return atMs - days * 86_400_000
  const date = new Date(atMs)
  date.setDate(date.getDate() - days)
  return date.getTime()
}

/** The values of a line some days ago, for each instant of the grid of now. */
export function pastOnGrid(
  grid: TimeGrid & { readonly length: number },
  past: TimeGrid & { readonly values: readonly (number | null)[] },
  days: number,
  isUtc: boolean,
): (number | null)[] {
  return Array.from({ length: grid.length }, (_, index) => {
    const atMs = daysBefore(grid.startMs + index * grid.stepMs, days, isUtc)
    return past.values[Math.floor((atMs - past.startMs) / past.stepMs)] ?? null
  })
}

export type Severity = 'critical' | 'warning' | 'info'
/** `toMs` null: it has not ended. */
export type Period = { readonly fromMs: number; readonly toMs: number | null; readonly severity: Severity }

const RANKS: readonly Severity[] = ['info', 'warning', 'critical']

/** Periods that overlap are one, of the worst severity among them: what is drawn twice would look twice as bad. */
export function merged(periods: readonly Period[], nowMs: number): Required<Period>[] {
  const open: { fromMs: number; toMs: number; severity: Severity }[] = []
  for (const { fromMs, toMs, severity } of [...periods].sort((one, other) => one.fromMs - other.fromMs)) {
    const endMs = toMs ?? nowMs
    const last = open.at(-1)
    if (last === undefined || fromMs > last.toMs) open.push({ fromMs, toMs: endMs, severity })
    else {
      last.toMs = Math.max(last.toMs, endMs)
      if (RANKS.indexOf(severity) > RANKS.indexOf(last.severity)) last.severity = severity
    }
  }
  return open
}
