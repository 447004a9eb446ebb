// What of a request was dropped and why, and which warnings the agent gets about it (document 3 "Limits"; decisions
// G-56, G-57, G-58). What is dropped is decided in decode-and-admit.ts (points, limits) and normalise-series.ts (names,
// labels).
import { limits } from '../limits.ts'

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
