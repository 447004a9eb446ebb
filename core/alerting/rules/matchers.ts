// The matchers of a rule, compiled: each label must equal a text, be in a list or match a regular expression (document
// 1 "Rule sync envelope" 5, decision G-71).
import { limits } from '../../limits.ts'
import type { Matcher } from './matches-labels.ts'
import { compileRegex } from './regex.ts'

/** The wire form: label -> string (equals), list of strings (member of), or {regex}. */
export type RawMatchers = Readonly<Record<string, string | readonly string[] | { readonly regex: string }>>

type MatcherFault = {
  reason: 'matcher_label' | 'matcher_regex' | 'matcher_list'
  label: string
  message: string
}

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function compileMatcher(label: string, raw: unknown): Matcher | MatcherFault {
  if (typeof raw === 'string') return { label, kind: 'equals', value: raw }
  if (Array.isArray(raw)) {
    if (raw.length === 0 || raw.length > limits.matcherListMax || raw.some(item => typeof item !== 'string'))
      return { reason: 'matcher_list', label, message: `a list has 1 to ${limits.matcherListMax} strings` }
    return { label, kind: 'list', values: new Set(raw as string[]) }
  }
  if (isPlainObject(raw)) {
    const source = raw.regex
    if (Object.keys(raw).length !== 1 || typeof source !== 'string' || source === '')
      return { reason: 'matcher_regex', label, message: 'an object has exactly the key regex, with a pattern' }
    if ([...source].length > limits.regexCharsMax)
      return { reason: 'matcher_regex', label, message: `a regex has at most ${limits.regexCharsMax} characters` }
    const regex = compileRegex(source)
    if ('fault' in regex) return { reason: 'matcher_regex', label, message: `not valid RE2: ${regex.fault}` }
    return { label, kind: 'regex', regex }
  }
  return { reason: 'matcher_list', label, message: 'a matcher is a string, a list of strings or {regex}' }
}

/** No metric has so many labels: an object of a hundred thousand wrong ones is told of by its first. */
const FAULTS_MAX = 100
const FAULT_ORDER = ['matcher_label', 'matcher_regex', 'matcher_list'] as const

/** Compiles the matchers of a rule. `labelsAllowed`: the labels of its metric, or null when the metric is unknown. */
export function compileMatchers(
  raw: Readonly<Record<string, unknown>>,
  labelsAllowed: readonly string[] | null,
): { matchers: Matcher[]; faults: MatcherFault[] } {
  const matchers: Matcher[] = []
  const faults: MatcherFault[] = []
  for (const label of Object.keys(raw).sort()) {
    if (faults.length === FAULTS_MAX) break
    if (labelsAllowed && !labelsAllowed.includes(label)) {
      const allowed = labelsAllowed.length ? labelsAllowed.join(', ') : 'none'
      faults.push({ reason: 'matcher_label', label, message: `the metric has no such label; allowed: ${allowed}` })
      continue
    }
    const compiled = compileMatcher(label, raw[label])
    if ('reason' in compiled) faults.push(compiled)
    else matchers.push(compiled)
  }
  faults.sort((a, b) => FAULT_ORDER.indexOf(a.reason) - FAULT_ORDER.indexOf(b.reason))
  return { matchers, faults }
}

/** One text for equal matchers, whatever the order of keys and lists: part of a rule's signature (decision G-83). */
export function canonicalMatchers(raw: Readonly<Record<string, unknown>>): string {
  const entries = Object.keys(raw)
    .sort()
    .map(label => {
      const value = raw[label]
      return [label, Array.isArray(value) ? [...value].sort() : value]
    })
  return JSON.stringify(entries)
}
