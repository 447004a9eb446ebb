// Name and labels of a new series, normalised or refused, and which warnings the agent gets about what was dropped
// (document 3 "Limits"; decisions G-56, G-57, G-58). Points (time, value, limits of series) are judged in
// decode-and-admit.ts. The slow path of the decoder: it runs for a series whose raw key is new, and for series that
// break a rule.
import { limits } from '../limits.ts'
import { metricByName } from '../series/catalogue.ts'
import { isLabelKey, isMetricName, isReservedLabel, targetLabel, truncateLabelValue } from '../series/labels.ts'
import { fullSeriesKey } from '../series/series-key.ts'

/** Points dropped, by the reason label of svc_ingest_dropped_total. */
export const dropReasons = [
  'series_limit_dropped',
  'company_series_limit',
  'invalid_name',
  'invalid_label',
  'not_finite',
  'too_old',
  'too_new',
] as const
export type DropReason = (typeof dropReasons)[number]

/** Limits in force for a request. */
export type AdmissionLimits = {
  readonly seriesPerAgentMax: number
  /** 0 = off. */
  readonly seriesPerCompanyMax: number
  readonly pointsMax: number
  readonly pointAgeMaxMs: number
  readonly pointAheadMaxMs: number
}

/** What happened to a request's points. */
export class AdmissionReport {
  readonly dropped: Record<DropReason, number> = {
    series_limit_dropped: 0,
    company_series_limit: 0,
    invalid_name: 0,
    invalid_label: 0,
    not_finite: 0,
    too_old: 0,
    too_new: 0,
  }
  droppedPoints = 0
  readonly warnings: string[] = []
  /**
   * Set when the agent's series limit was reached: how many series were in use, and the first new one that was dropped.
   */
  seriesLimit: { inUse: number; firstDropped: string } | null = null

  drop(reason: DropReason, points: number): void {
    this.dropped[reason] += points
    this.droppedPoints += points
  }

  /** Adds a warning unless it is there already; at most 20 in one acknowledgement. */
  warn(text: string): void {
    if (this.warnings.length < limits.warningsPerAckMax && !this.warnings.includes(text)) this.warnings.push(text)
  }

  /** The warnings of the answer. Called once, after the last series. */
  finish(seriesPerAgentMax: number): string[] {
    const { dropped, seriesLimit } = this
    if (seriesLimit) {
      this.warn('series limit reached')
      this.warn(
        `series dropped: ${seriesLimit.firstDropped} and all after it; ${seriesLimit.inUse} of ${seriesPerAgentMax} in use`,
      )
    }
    if (dropped.company_series_limit > 0) this.warn('company series limit reached')
    const outOfWindow = dropped.too_old + dropped.too_new
    if (outOfWindow > 0) this.warn(`points out of time window: ${outOfWindow}`)
    return this.warnings
  }

  /** The warnings for the log: without label values, which can be secret (a URL with a key in it). */
  loggable(): string[] {
    const first = this.seriesLimit?.firstDropped ?? ''
    const labelsAt = first.indexOf('{')
    if (labelsAt < 0) return this.warnings
    return this.warnings.map(text => text.replace(first, () => `${first.slice(0, labelsAt)}{…}`))
  }
}

/**
 * The longest text of an agent in a warning or a log line: twice the limit of a name, so that a name slightly too long
 * is shown completely.
 */
const SHOWN_MAX = 128

/** Makes a text of an agent safe for a warning or a log line: printable and short. */
const shown = (text: string): string => {
  const printable = [...text].map(c => (c < ' ' || c === '\u007f' ? '?' : c)).join('')
  return printable.length > SHOWN_MAX ? `${printable.slice(0, SHOWN_MAX)}…` : printable
}

/** A series after normalisation, or why it is refused. `isNoted`: a label was removed or cut, and a warning says so. */
type NormalSeries = { readonly key: string; readonly isNoted: boolean } | { readonly refused: DropReason }

/**
 * Whether a label is the target of a check. A long target is shortened with a hash, so that two stay distinct; the
 * rules of checks match this shortened form (decision G-195).
 */
const isCheckTarget = (name: string, key: string): boolean =>
  key === 'target' && (metricByName(name)?.labels.includes(key) ?? false)

/** Validates and normalises name and labels; adds warnings to the report. */
export function normaliseSeries(
  name: string,
  labels: ReadonlyMap<string, string>,
  report: AdmissionReport,
): NormalSeries {
  if (!isMetricName(name)) {
    report.warn(`invalid series: ${shown(name)}`)
    return { refused: 'invalid_name' }
  }
  const kept: Record<string, string> = {}
  let count = 0
  let isNoted = false
  for (const [key, value] of labels) {
    if (!isLabelKey(key)) {
      report.warn(`invalid label: ${shown(key)}`)
      return { refused: 'invalid_label' }
    }
    if (isReservedLabel(key)) {
      report.warn(`reserved label dropped: ${key}`)
      isNoted = true
      continue
    }
    const cut = isCheckTarget(name, key) ? targetLabel(value) : truncateLabelValue(value)
    if (cut !== value) {
      report.warn(`label value truncated: ${key}`)
      isNoted = true
    }
    if (cut === '') continue
    kept[key] = cut
    count++
  }
  if (count > limits.labelsPerSeriesMax) {
    report.warn(`invalid series: ${shown(name)}`)
    return { refused: 'invalid_label' }
  }
  return { key: fullSeriesKey(name, kept), isNoted }
}
