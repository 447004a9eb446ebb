// A scenario of a draft, to begin with: a server whose series goes over the threshold and comes back.
import { type Draft, matchersOf, numberOf, secondsOf } from './draft.ts'

const INTERVAL_S = 30
const TICKS_BEFORE = 4

const quoted = (text: string): string => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`

/** A label of a series that the matcher meets; a regular expression is for people to fill in. */
function labelOf(matcher: string | string[] | { regex: string }): string {
  if (typeof matcher === 'string') return matcher
  return Array.isArray(matcher) ? (matcher[0] ?? '') : matcher.regex.replace(/[^\w/.-]/g, '')
}

function matcherText(label: string, matcher: string | string[] | { regex: string }): string {
  if (typeof matcher === 'string') return `${label}=${quoted(matcher)}`
  return Array.isArray(matcher) ? `${label}=[${matcher.map(quoted).join(',')}]` : `${label}=~${quoted(matcher.regex)}`
}

/** A value that violates the condition, and one by which it recovers. */
function valuesOf({ operator, threshold, recoverThreshold }: Draft): { bad: number; good: number } {
  const limit = numberOf(threshold) ?? 0
  const recover = numberOf(recoverThreshold) ?? limit
  const slack = Math.max(1, Math.round(Math.abs(limit) * 0.05))
  if (operator === '==') return { bad: limit, good: limit + 1 }
  if (operator === '!=') return { bad: limit + 1, good: limit }
  return operator.startsWith('>')
    ? { bad: limit + slack, good: recover - slack }
    : { bad: limit - slack, good: recover + slack }
}

export function scenarioOf(draft: Draft): string {
  const matchers = Object.entries(matchersOf(draft))
  const selector =
    matchers.length === 0 ? '' : `{${matchers.map(([label, each]) => matcherText(label, each)).join(',')}}`
  const labels = matchers.map(([label, each]) => `${label}=${quoted(labelOf(each))}`)
  const series = labels.length === 0 ? draft.metric : `${draft.metric}{${labels.join(',')}}`
  const forS = secondsOf(draft.heldFor) ?? 0
  const recoverForS = secondsOf(draft.recoverFor) ?? 0
  const { bad, good } = valuesOf(draft)
  const options = [
    forS > 0 ? `for=${forS}s` : '',
    numberOf(draft.recoverThreshold) === undefined ? '' : `recover=${numberOf(draft.recoverThreshold)}`,
    recoverForS > 0 ? `recover_for=${recoverForS}s` : '',
    `severity=${draft.severity}`,
    draft.noData === 'ignore' ? '' : `no_data=${draft.noData}`,
  ].filter(option => option !== '')
  const badTicks = Math.ceil(forS / INTERVAL_S) + 2
  const goodTicks = Math.ceil(recoverForS / INTERVAL_S) + 2
  const opened = TICKS_BEFORE * INTERVAL_S + Math.ceil(forS / INTERVAL_S) * INTERVAL_S
  const resolved = (TICKS_BEFORE + badTicks) * INTERVAL_S + Math.ceil(recoverForS / INTERVAL_S) * INTERVAL_S
  return `scenario ${draft.name || 'a rule'}: opens when it holds, and recovers
server web-1 interval=${INTERVAL_S}s
rule draft: ${draft.metric}${selector} ${draft.operator} ${numberOf(draft.threshold) ?? 0} ${options.join(' ')}

web-1 every ${INTERVAL_S}s from=0s
  ${series} ${TICKS_BEFORE}*${good} ${badTicks}*${bad} ${goodTicks}*${good}

expect ${opened}s alert.opened draft web-1 value=${bad}
expect ${resolved}s alert.resolved draft web-1 value=${good}
`
}
