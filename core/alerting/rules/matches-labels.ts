// Which series of a metric a rule covers: all its matchers must hold (decision G-71). Matching runs once for each
// series and rule-set version, never for each sample. Apart from matchers.ts, so that evaluation in a browser does not
// bring the regular expressions with it.
import type { Labels } from '../../series/labels.ts'
import type { Regex } from './regex.ts'

export type Matcher = { readonly label: string } & (
  | { readonly kind: 'equals'; readonly value: string }
  | { readonly kind: 'list'; readonly values: ReadonlySet<string> }
  | { readonly kind: 'regex'; readonly regex: Regex }
)

/** True when every matcher holds; a missing label has the value "". */
export function matchesLabels(matchers: readonly Matcher[], labels: Labels): boolean {
  for (const matcher of matchers) {
    const value = labels[matcher.label] ?? ''
    if (matcher.kind === 'equals' && value !== matcher.value) return false
    if (matcher.kind === 'list' && !matcher.values.has(value)) return false
    if (matcher.kind === 'regex' && !matcher.regex.matches(value)) return false
  }
  return true
}
