// A rule while it is edited: texts as they are typed, and what they mean to the API and to the judge.
import type { SavedRule } from '../../../views/rule-editor.ts'
import type { RuleRow } from '../../../views/rules.ts'
import type { JudgedCondition } from '../../judge/judge-messages.ts'

type Condition = RuleRow['condition']
type RuleScope = SavedRule['scope']
export type DraftMatcher = { readonly how: 'equals' | 'list' | 'regex'; readonly value: string }
type Named = { readonly id: string; readonly name: string }
export type DraftScope = Omit<RuleScope, 'server_ids'> & { readonly servers: readonly Named[] }

export type Draft = {
  readonly name: string
  readonly kind: RuleRow['kind']
  readonly metric: string
  readonly matchers: Readonly<Record<string, DraftMatcher>>
  readonly operator: NonNullable<Condition['operator']>
  readonly threshold: string
  readonly heldFor: string
  readonly recoverThreshold: string
  readonly recoverFor: string
  readonly noData: NonNullable<Condition['no_data']>
  readonly severity: RuleRow['severity']
  readonly remind: string
  readonly scope: DraftScope
}

/** What a new rule begins with: a chart names a metric, the labels of its series, and the server. */
type DraftStart = {
  readonly metric: string
  readonly labels: readonly (readonly [name: string, value: string])[]
  readonly server: Named | null
}

/** Labels that only repeat another one: a disk is chosen by its mount. */
const isRepeated = (name: string, labels: DraftStart['labels']): boolean =>
  (name === 'device' || name === 'fstype') && labels.some(([each]) => each === 'mount')

export const newDraft = ({ metric, labels, server }: DraftStart): Draft => ({
  name: '',
  kind: 'threshold',
  metric,
  matchers: Object.fromEntries(
    labels.filter(([name]) => !isRepeated(name, labels)).map(([name, value]) => [name, { how: 'equals', value }]),
  ),
  operator: '>',
  threshold: '90',
  heldFor: '5m',
  recoverThreshold: '',
  recoverFor: '',
  noData: 'ignore',
  severity: 'warning',
  remind: '',
  scope: {
    ...{ all: server === null, tags: [], environments: [], roles: [], datacenters: [] },
    servers: server === null ? [] : [server],
  },
})

const UNITS = { d: 86_400, h: 3_600, m: 60, s: 1 } as const

/** Seconds of `90s`, `5m` or `1h30m`; 0 of nothing; null of anything else. */
export function secondsOf(text: string): number | null {
  const compact = text.replace(/\s+/g, '').toLowerCase()
  if (compact === '' || compact === '0') return 0
  if (!/^(\d+[dhms])+$/.test(compact)) return null
  let seconds = 0
  for (const [, digits = '', unit = ''] of compact.matchAll(/(\d+)([dhms])/g))
    seconds += Number(digits) * UNITS[unit as keyof typeof UNITS]
  return seconds
}

/** `5m` of 300; empty of 0. */
function secondsText(seconds: number | null): string {
  let left = seconds ?? 0
  let text = ''
  for (const [unit, length] of Object.entries(UNITS)) {
    if (left >= length) text += `${Math.floor(left / length)}${unit}`
    left %= length
  }
  return text
}

/** A number as people of both languages write it; null: it is none, undefined: nothing is written. */
export function numberOf(text: string): number | null | undefined {
  const compact = text.trim().replace(',', '.')
  if (compact === '') return undefined
  const value = Number(compact)
  return Number.isFinite(value) ? value : null
}

function draftMatcher(matcher: NonNullable<Condition['matchers']>[string]): DraftMatcher {
  if (typeof matcher === 'string') return { how: 'equals', value: matcher }
  if ('regex' in matcher) return { how: 'regex', value: matcher.regex }
  return { how: 'list', value: matcher.join(', ') }
}

export function draftOf({ row, scope, servers }: SavedRule): Draft {
  const { condition } = row
  const { server_ids: _ids, ...names } = scope
  return {
    name: row.name,
    kind: row.kind,
    metric: condition.metric ?? '',
    matchers: Object.fromEntries(
      Object.entries(condition.matchers ?? {}).map(([label, matcher]) => [label, draftMatcher(matcher)]),
    ),
    operator: condition.operator ?? '>',
    threshold: String(condition.threshold ?? ''),
    heldFor: secondsText(condition.for_seconds),
    recoverThreshold: String(condition.recover_threshold ?? ''),
    recoverFor: secondsText(condition.recover_for_seconds),
    noData: condition.no_data ?? 'ignore',
    severity: row.severity,
    remind: secondsText(condition.renotify_seconds),
    scope: { ...names, servers },
  }
}

const listOf = (text: string): string[] =>
  text
    .split(',')
    .map(value => value.trim())
    .filter(value => value !== '')

export function matchersOf({ matchers }: Draft): Record<string, string | string[] | { regex: string }> {
  return Object.fromEntries(
    Object.entries(matchers).map(([label, { how, value }]) => [
      label,
      how === 'regex' ? { regex: value } : how === 'list' ? listOf(value) : value,
    ]),
  )
}

export const scopeOf = ({ scope: { servers, ...names } }: Draft): RuleScope => ({
  ...names,
  server_ids: servers.map(server => server.id),
})

/** The condition under the names of the API; a text that is no number or time is left out. */
function conditionOf(draft: Draft) {
  const usesRecover = draft.operator !== '==' && draft.operator !== '!='
  return {
    metric: draft.metric,
    operator: draft.operator,
    threshold: numberOf(draft.threshold) ?? null,
    for_seconds: secondsOf(draft.heldFor),
    recover_threshold: usesRecover ? (numberOf(draft.recoverThreshold) ?? null) : null,
    recover_for_seconds: secondsOf(draft.recoverFor),
    no_data: draft.noData,
    renotify_seconds: secondsOf(draft.remind),
  }
}

/** What the judge is asked; null while something of it is no number or time. */
export function judgedOf(draft: Draft): JudgedCondition | null {
  const condition = conditionOf(draft)
  const { threshold, for_seconds, recover_for_seconds } = condition
  if (draft.kind === 'agent_down' || draft.metric === '' || Object.keys(textFaults(draft)).length > 0) return null
  if (threshold === null || for_seconds === null || recover_for_seconds === null) return null
  return { ...condition, severity: draft.severity }
}

/** The body of a request that saves the rule. */
export function bodyOf(draft: Draft, isEnabled: boolean): Record<string, unknown> {
  const { name, kind, severity } = draft
  const shared = { name: name.trim(), kind, severity, scope: scopeOf(draft), enabled: isEnabled }
  return kind === 'agent_down' ? shared : { ...shared, ...conditionOf(draft), matchers: matchersOf(draft) }
}

type TextFault = 'bad_number' | 'bad_duration'

/** Texts that mean nothing, by the field of the API. */
export function textFaults(draft: Draft): Readonly<Partial<Record<string, TextFault>>> {
  if (draft.kind === 'agent_down') return {}
  const faults: Record<string, TextFault> = {}
  if (typeof numberOf(draft.threshold) !== 'number') faults.threshold = 'bad_number'
  if (numberOf(draft.recoverThreshold) === null) faults.recover_threshold = 'bad_number'
  const times = { for_seconds: draft.heldFor, recover_for_seconds: draft.recoverFor, renotify_seconds: draft.remind }
  for (const [field, text] of Object.entries(times)) if (secondsOf(text) === null) faults[field] = 'bad_duration'
  return faults
}

/** High values are the bad ones, or low ones: decides which series are the worst. */
export function worstOf({ operator, threshold }: Draft): 'high' | 'low' {
  if (operator.startsWith('<')) return 'low'
  const value = numberOf(threshold) ?? 0
  return (operator === '==' && value <= 0) || (operator === '!=' && value >= 1) ? 'low' : 'high'
}

/** The fields in which two drafts differ, each with both texts. */
export function differencesOf(one: Draft, other: Draft): { field: string; one: unknown; other: unknown }[] {
  const text = (draft: Draft): Record<string, unknown> => bodyOf(draft, true)
  const [first, second] = [text(one), text(other)]
  return Object.keys(first)
    .map(field => ({ field, one: first[field], other: second[field] }))
    .filter(({ one, other }) => JSON.stringify(one) !== JSON.stringify(other))
}
