// Name and labels of a new series, normalised or refused (document 3 "Limits"; decisions G-56, G-57, G-58). The slow
// path of the decoder: it runs for a series whose raw key is new, and for series that break a rule.
import { limits } from '../limits.ts'
import { metricByName } from '../series/catalogue.ts'
import { isLabelKey, isMetricName, isReservedLabel, targetLabel, truncateLabelValue } from '../series/labels.ts'
import { fullSeriesKey } from '../series/series-key.ts'
import type { AdmissionReport, DropReason } from './admission-report.ts'

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
