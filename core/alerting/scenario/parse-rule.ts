// A rule in a scenario: `cpu: cpu_usage_percent{core="0"} > 90 for=5m …` (the format stands in parse.ts).
import type { RawMatchers } from '../rules/matchers.ts'
import {
  type NoDataMode,
  noDataModes,
  type Operator,
  operators,
  type RuleKind,
  ruleKinds,
  type Severity,
  severities,
} from '../rules/rule.ts'
import type { ScenarioRule } from './scenario.ts'
import { duration, LineFault, list, number, options, unquoted } from './tokens.ts'

const OPTIONS = [
  'for', 'recover', 'recover_for', 'severity', 'no_data', 'renotify', 'scope', 'resolved', 'company', 'kind',
] // biome-ignore format: a list of words

/** `parts`: name with a colon, metric with matchers, operator, threshold, options. */
export function parseRule(parts: readonly string[]): ScenarioRule {
  const [name = '', selector = '', operator = '', threshold = '', ...rest] = parts
  if (!name.endsWith(':')) throw new LineFault('write `rule <name>: <metric> <operator> <threshold> …`')
  const given = options(rest, OPTIONS)
  const seconds = (option: string): number => duration(given.get(option) ?? '0') / 1000
  const scope = given.get('scope') ?? (given.has('resolved') ? '' : 'all')
  const { metric, matchers } = parseSelector(selector)
  return {
    name: name.slice(0, -1),
    company: given.get('company') ?? 'acme',
    scopeAll: scope === 'all',
    serverNames: scope === 'all' ? [] : list(scope),
    resolvedNames: list(given.get('resolved') ?? ''),
    fields: {
      kind: oneOf<RuleKind>(ruleKinds, given.get('kind') ?? 'threshold', 'kind'),
      metric,
      matchers,
      operator: oneOf<Operator>(operators, operator, 'operator'),
      threshold: number(threshold),
      for_seconds: seconds('for'),
      recover_threshold: given.has('recover') ? number(given.get('recover')!) : null,
      recover_for_seconds: seconds('recover_for'),
      severity: oneOf<Severity>(severities, given.get('severity') ?? 'warning', 'severity'),
      no_data: oneOf<NoDataMode>(noDataModes, given.get('no_data') ?? 'ignore', 'no_data'),
      renotify_seconds: seconds('renotify'),
    },
  }
}

function oneOf<T extends string>(known: readonly T[], text: string, what: string): T {
  const found = known.find(candidate => candidate === text)
  if (found === undefined) throw new LineFault(`${what} ${text} is not one of ${known.join(' ')}`)
  return found
}

/** `metric{label="value",label=["a","b"],label=~"regex"}`. */
function parseSelector(text: string): { metric: string; matchers: RawMatchers } {
  const open = text.indexOf('{')
  if (open < 0) return { metric: text, matchers: {} }
  const matchers: Record<string, string | string[] | { regex: string }> = {}
  const pattern = /([a-z_]+)(=~?)("(?:[^"\\]|\\.)*"|\[[^\]]*\])\s*,?\s*/gy
  const inside = text.slice(open + 1, text.lastIndexOf('}'))
  let at = 0
  while (at < inside.length) {
    pattern.lastIndex = at
    const matched = pattern.exec(inside)
    if (!matched)
      throw new LineFault(`matchers ${inside} are not understood; write label="value", label=["a","b"], label=~"regex"`)
    const [whole, label = '', sign, value = ''] = matched
    if (value.startsWith('[')) matchers[label] = [...value.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(item => item[1]!)
    else matchers[label] = sign === '=~' ? { regex: unquoted(value) } : unquoted(value)
    at += whole.length
  }
  return { metric: text.slice(0, open), matchers }
}
