// What of a batch is kept, and what the sender is told about the rest (document 3 "Limits"; decisions G-56, G-57,
// G-58). The slow path of the decoder: it runs for a series whose raw bytes were not seen before, and for offenders.
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
  /** The agent's series limit was met: how many were in use, and the first new series that found no place. */
  seriesLimit: { inUse: number; firstDropped: string } | null = null

  drop(reason: DropReason, points: number): void {
    this.dropped[reason] += points
    this.droppedPoints += points
  }

  /** Adds a warning once; at most 20 an answer. */
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

  /**
   * The warnings as a log may have them: without values of labels, which can be secret (an address with a key in it).
   */
  loggable(): string[] {
    const first = this.seriesLimit?.firstDropped ?? ''
    const labelsAt = first.indexOf('{')
    if (labelsAt < 0) return this.warnings
    return this.warnings.map(text => text.replace(first, () => `${first.slice(0, labelsAt)}{…}`))
  }
}

/**
 * Longest text of an agent in a warning or a log: twice what a name may have, so that one just too long is told whole.
 */
const SHOWN_MAX = 128

/** Text of an agent as it may stand in a warning or a log: printable, short. */
const shown = (text: string): string => {
  const printable = [...text].map(c => (c < ' ' || c === '\u007f' ? '?' : c)).join('')
  return printable.length > SHOWN_MAX ? `${printable.slice(0, SHOWN_MAX)}…` : printable
}

/** A series as the collector takes it, or why it does not. `isNoted`: something of it was removed or cut. */
export type NormalSeries = { readonly key: string; readonly isNoted: boolean } | { readonly refused: DropReason }

/** Targets of checks stay distinct when they are cut: the rules of the checks match that form (decision G-195). */
const isCheckTarget = (name: string, key: string): boolean =>
  key === 'target' && (metricByName(name)?.labels.includes(key) ?? false)

/** Checks and normalises name and labels. Notes go to the report's warnings. */
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
