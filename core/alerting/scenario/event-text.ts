// Compares emitted events with those that a scenario expects, and words the differences for an operator.
import type { AlertEvent } from '../evaluate/event.ts'
import type { ExpectedEvent, Scenario } from './scenario.ts'
import { durationText } from './tokens.ts'

/** An event, and when it was emitted (ms since the start of the scenario). */
export type EmittedEvent = { readonly event: AlertEvent; readonly emittedAtMs: number }

/** Names of the scenario for ids of the wire. */
export type ScenarioNames = {
  readonly startMs: number
  readonly nameOf: (id: string) => string
}

type Fields = ReadonlyMap<string, string>

/** The head of an event (time, type, whom it concerns) and every field that an expectation may name. */
function describe(names: ScenarioNames, { event, emittedAtMs }: EmittedEvent): { head: string; fields: Fields } {
  const isAlert = event.type.startsWith('alert.')
  const isGroup = event.type.startsWith('group_')
  const at = durationText(Date.parse(event.occurred_at) - names.startMs)
  const whom = isGroup
    ? event.group_key
    : isAlert
      ? `${names.nameOf(event.rule_id)} ${names.nameOf(event.server_id)}`
      : names.nameOf(event.server_id)
  const fields = new Map<string, string>()
  if (isAlert) fields.set('series', event.series_key)
  if (isGroup) fields.set('server', names.nameOf(event.server_id))
  fields.set('value', String(event.value))
  fields.set('threshold', String(event.threshold))
  fields.set('severity', event.severity)
  fields.set('version', String(event.rule_version))
  fields.set('suppressed', event.suppressed ? String(event.suppress_reason) : 'no')
  fields.set('company', names.nameOf(event.company_id))
  if (event.reason !== undefined) fields.set('reason', event.reason)
  if (event.duration_seconds !== undefined) fields.set('duration', durationText(event.duration_seconds * 1000))
  if (event.peak_value !== undefined) fields.set('peak', String(event.peak_value))
  if (event.transitions !== undefined) fields.set('transitions', String(event.transitions))
  if (event.member_server_ids) fields.set('members', event.member_server_ids.map(names.nameOf).join(','))
  if (event.group_total !== undefined) fields.set('total', String(event.group_total))
  fields.set('emitted', durationText(emittedAtMs))
  for (const [label, value] of Object.entries(event.labels)) fields.set(`labels.${label}`, value)
  return { head: `${at} ${event.type} ${whom}`, fields }
}

const text = (head: string, fields: Fields): string =>
  `${head}${[...fields].map(([name, value]) => ` ${name}=${/[\s"]/.test(value) ? JSON.stringify(value) : value}`).join('')}`

const expectedHead = (expected: ExpectedEvent): string =>
  [durationText(expected.atMs), expected.type, expected.rule, expected.server].filter(part => part !== '').join(' ')

/** True when time, type and subject agree; the series must agree only when the expectation names one. */
const isSame = (expected: ExpectedEvent, head: string, fields: Fields): boolean =>
  expectedHead(expected) === head &&
  (!expected.fields.has('series') || expected.fields.get('series') === fields.get('series'))

/** The differences between expected and emitted events, one line each; empty when there are none. */
export function differences(scenario: Scenario, names: ScenarioNames, emitted: readonly EmittedEvent[]): string[] {
  const found = emitted.map(event => ({ ...describe(names, event), isMatched: false }))
  const faults: string[] = []
  for (const expected of scenario.expected) {
    const match = found.find(event => !event.isMatched && isSame(expected, event.head, event.fields))
    if (!match) {
      faults.push(`line ${expected.line}: missing    ${text(expectedHead(expected), expected.fields)}`)
      continue
    }
    match.isMatched = true
    for (const [name, value] of expected.fields) {
      const actual = match.fields.get(name)
      if (!sameValue(value, actual))
        faults.push(
          `line ${expected.line}: differs    ${match.head}: ${name} is ${actual ?? 'absent'}, expected ${value}`,
        )
    }
  }
  for (const event of found) if (!event.isMatched) faults.push(`unexpected ${text(event.head, event.fields)}`)
  return faults
}

/**
 * Compares a field with its expected text. `absent` expects no field; times may be written in any form that `duration`
 * reads.
 */
function sameValue(expected: string, actual: string | undefined): boolean {
  if (actual === undefined) return expected === 'absent'
  return expected === actual || (expected !== '' && Number(expected) === Number(actual))
}

/** Faults that no run may have: an event id twice, a seq that does not grow within its key, an incomplete envelope. */
export function envelopeFaults(emitted: readonly EmittedEvent[]): string[] {
  const faults: string[] = []
  const seen = new Set<string>()
  const seqs = new Map<string, number>()
  for (const { event } of emitted) {
    if (seen.has(event.event_id)) faults.push(`event_id ${event.event_id} of ${event.type} comes twice`)
    seen.add(event.event_id)
    const key = `${event.server_id} ${event.rule_id} ${event.series_key}`
    const before = seqs.get(key)
    if (before !== undefined && event.seq <= before) faults.push(`seq of ${key} goes from ${before} to ${event.seq}`)
    seqs.set(key, event.seq)
    if (event.suppressed !== (event.suppress_reason !== null))
      faults.push(`${event.type} of ${key}: suppressed ${event.suppressed}, reason ${event.suppress_reason}`)
  }
  return faults
}
