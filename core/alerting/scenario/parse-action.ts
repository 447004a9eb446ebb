// What happens at an instant of a scenario: `at 5m …` (the format stands in parse.ts).
import { parseRule } from './parse-rule.ts'
import type { GroupField, ScenarioAction, ScenarioPoint, ScenarioSeries } from './scenario.ts'
import { duration, LineFault, list, number, options } from './tokens.ts'

/** `parts`: the words after the time. */
export function parseAction(parts: readonly string[], atMs: number): ScenarioAction {
  const [verb = '', name = '', ...rest] = parts
  switch (verb) {
    case 'batch':
      return { kind: 'batch', server: name, series: rest.map(part => parseSeries(part, atMs)) }
    case 'heartbeat':
      return { kind: 'batch', server: name, series: [] }
    case 'rule':
      return { kind: 'rule', rule: parseRule(parts.slice(1)) }
    case 'disable':
    case 'delete':
      return { kind: 'rule-end', rule: name, how: verb }
    case 'enable':
      return { kind: 'rule-enable', rule: name }
    case 'silence':
      return parseSilence(name, rest)
    case 'unsilence':
      return { kind: 'unsilence', name }
    case 'status':
    case 'subnet':
    case 'datacenter':
      if (rest.length !== 1) throw new LineFault(`write \`${verb} <server> <value>\`, none for no value`)
      return { kind: 'attribute', server: name, field: verb, value: rest[0] === 'none' ? '' : rest[0]! }
    case 'revoke':
    case 'enroll':
      return { kind: verb, server: name }
    case 'restart':
    case 'crash': {
      const downMs = duration(options(parts.slice(1), ['down']).get('down') ?? '0')
      return { kind: 'stop', isCrash: verb === 'crash', downMs }
    }
    case 'snapshot':
    case 'overflow':
      return { kind: verb }
    case 'group':
      return parseGroupSetting(name, rest)
  }
  throw new LineFault(`${verb} is not something that can happen`)
}

/** `metric{label="value"}=95`, `…=95@4m30s,96@5m`. */
function parseSeries(text: string, atMs: number): ScenarioSeries {
  const equals = text.lastIndexOf('=')
  const isKeyed = text.includes('}') && equals < text.indexOf('}')
  if (equals < 1 || isKeyed) throw new LineFault(`${text}: write <series>=<value>`)
  const points = list(text.slice(equals + 1)).map((point): ScenarioPoint => {
    const [value = '', time] = point.split('@')
    return { tsMs: time === undefined ? atMs : duration(time), value: number(value) }
  })
  return { key: text.slice(0, equals), points }
}

function parseSilence(name: string, rest: readonly string[]): ScenarioAction {
  const given = options(rest, ['scope', 'rules', 'in', 'from', 'until', 'company'])
  const scope = given.get('scope') ?? 'all'
  const place = given.get('in') ?? 'scope'
  if (place !== 'scope' && place !== 'resolved' && place !== 'top') throw new LineFault('in= is scope, resolved or top')
  return {
    kind: 'silence',
    silence: {
      name,
      company: given.get('company') ?? 'acme',
      all: scope === 'all',
      serverNames: scope === 'all' ? [] : list(scope),
      ruleNames: list(given.get('rules') ?? ''),
      place,
      fromMs: duration(given.get('from') ?? '0'),
      untilMs: duration(given.get('until') ?? ''),
    },
  }
}

const GROUP_FIELDS: Readonly<Record<string, GroupField>> = {
  min: 'group_down_min',
  ratio: 'group_down_ratio',
  window: 'group_down_window_seconds',
}

function parseGroupSetting(source: string, rest: readonly string[]): ScenarioAction {
  if (source !== 'hub' && source !== 'config') throw new LineFault('group settings come from hub or config')
  const given = options(rest, [...Object.keys(GROUP_FIELDS), 'company'])
  const company = given.get('company') ?? 'acme'
  given.delete('company')
  const [entry] = given
  if (!entry || given.size > 1) throw new LineFault('one group setting a line')
  const [name, text] = entry
  const value = text === '-' ? null : name === 'window' ? duration(text) / 1000 : number(text)
  return { kind: 'group-setting', company, source, field: GROUP_FIELDS[name]!, value }
}
