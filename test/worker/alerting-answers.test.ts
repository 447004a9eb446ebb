// "Why did it (not) fire?": each reason has its words.
import { expect, test } from 'bun:test'
import { serverAlerting } from '../../apps/collector/worker/evaluation/why-rules-fire.ts'
import { compileSilences } from '../../core/alerting/evaluate/suppression.ts'
import { sweepServers, sweepStates } from '../../core/alerting/evaluate/sweep.ts'
import { compileRuleSet } from '../../core/alerting/rules/compile-rule-set.ts'
import { setRules } from '../../core/alerting/rules/rule-slots.ts'
import type { EvaluationState } from '../../core/alerting/state/evaluation-state.ts'
import { evaluationWith, SERVER, send } from '../support/evaluation.ts'
import { company, ruleRecord } from '../support/rule-record.ts'

const START_MS = 1_767_225_600_000
const CPU = 'cpu_usage_percent'
const DISK = 'disk_used_percent{mount="/"}'

const answer = (evaluation: EvaluationState, nowMs = START_MS) => serverAlerting(evaluation, SERVER, nowMs)!
const decision = (evaluation: EvaluationState, nowMs = START_MS): string =>
  answer(evaluation, nowMs).series[0]!.decision
/** The decision after samples of the processor, 30 s apart. */
function after(rule: Parameters<typeof ruleRecord>[0], ...values: number[]): string {
  const evaluation = evaluationWith([ruleRecord(rule)])
  values.forEach((value, index) => void send(evaluation, START_MS + index * 30_000, { [CPU]: value }, [CPU]))
  return decision(evaluation, START_MS + (values.length - 1) * 30_000)
}

test('a rule that holds, one that does not, one that waits, one that recovers: the condition, and the time of it', () => {
  expect(after({}, 50)).toBe('50 > 90 does not hold')
  expect(after({}, 95)).toBe('open: 95 > 90 holds')
  expect(after({ for_seconds: 300 }, 95, 96)).toBe('96 > 90 for 30 s of 300 s')
  expect(after({ recover_threshold: 80 }, 95, 85)).toBe('open: 85 has not passed recover_threshold 80')
  expect(after({ recover_for_seconds: 60 }, 95, 85, 85)).toBe('open: recovering for 30 s of 60 s')
})

test('a rule that was changed after the last sample: what holds now, and that the next sample decides', () => {
  const changed = (rule: Parameters<typeof ruleRecord>[0], value: number, next: Parameters<typeof ruleRecord>[0]) => {
    const evaluation = evaluationWith([ruleRecord(rule)])
    send(evaluation, START_MS, { [CPU]: value }, [CPU])
    const rules = [ruleRecord({ ...next, sync_version: 2 })]
    setRules(evaluation, compileRuleSet(rules, evaluation.rules))
    sweepServers(evaluation, 0, evaluation.servers.length, START_MS, START_MS)
    return decision(evaluation)
  }
  const words = 'since the rule or its alert has changed: the next sample decides'
  expect(changed({ threshold: 99 }, 4.79, { threshold: 1 })).toBe(`4.8 > 1 holds ${words}`)
  expect(changed({ threshold: 1 }, 3.6, { threshold: 99 })).toBe(`open: 3.6 > 99 does not hold ${words}`)
  expect(changed({ threshold: 1 }, 50, { threshold: 99, recover_threshold: 40 })).toBe(
    'open: 50 has not passed recover_threshold 40',
  )
})

test('a value is told with a digit more than what it is compared with, and with as many as show on which side it is', () => {
  expect(after({}, 97.30000000000001)).toBe('open: 97.3 > 90 holds')
  expect(after({}, 90.00012345)).toBe('open: 90.0001 > 90 holds')
  expect(after({}, 89.999)).toBe('89.999 > 90 does not hold')
  expect(after({ threshold: 0.25 }, 0.123456)).toBe('0.123 > 0.25 does not hold')
  expect(after({ threshold: 1e-7 }, 3.14159e-7)).toBe('open: 3.1e-7 > 1e-7 holds')
  expect(after({ recover_threshold: 80 }, 95, 80.04)).toBe('open: 80.04 has not passed recover_threshold 80')
})

test('a stale sample, a gap, a silence of the series: why it did not open', () => {
  const stale = evaluationWith([ruleRecord({})])
  send(
    stale,
    START_MS,
    {
      [CPU]: [
        [START_MS - 600_000, 95],
        [START_MS, 95],
      ],
    },
    [CPU],
  )
  expect(decision(stale)).toBe('open: 95 > 90 holds')
  const late = evaluationWith([ruleRecord({ for_seconds: 60 })])
  send(
    late,
    START_MS,
    {
      [CPU]: [
        [START_MS - 900_000, 95],
        [START_MS - 800_000, 95],
        [START_MS, 10],
      ],
    },
    [CPU],
  )
  expect(decision(late)).toBe('10 > 90 does not hold')
  const waiting = evaluationWith([ruleRecord({ for_seconds: 60, no_data: 'resolve' })])
  send(waiting, START_MS, { [CPU]: 95 }, [CPU])
  expect(decision(waiting, START_MS + 400_000)).toBe(
    '95 > 90 for 0 s of 60 s; no sample for 400 s, a gap that begins the wait anew (no_data: resolve)',
  )
})

test('[NOD-001] a wait or an alert that silence has ended: that no sample comes, not that its rule has changed', () => {
  const silent = (rule: Parameters<typeof ruleRecord>[0]) => {
    const evaluation = evaluationWith([ruleRecord(rule)])
    send(evaluation, START_MS, { [CPU]: 95, [DISK]: 1 }, [CPU, DISK])
    send(evaluation, START_MS + 301_000, { [DISK]: 1 })
    sweepStates(evaluation, 0, evaluation.states.end, START_MS + 302_000)
    expect(answer(evaluation, START_MS + 302_000).series[0]).toMatchObject({ state: 'ok', since: null })
    return decision(evaluation, START_MS + 302_000)
  }
  const words = '95 > 90 held at the last sample, but its series has fallen silent: the next sample decides'
  expect(silent({ for_seconds: 600 })).toBe(`${words}; no sample for 302 s (no_data: ignore)`)
  expect(silent({ no_data: 'resolve' })).toBe(`${words}; no sample for 302 s (no_data: resolve)`)
})

test('opened by silence, and a lost agent: which of them it is', () => {
  const evaluation = evaluationWith([ruleRecord({ no_data: 'alert' })])
  send(evaluation, START_MS, { [CPU]: 10, [DISK]: 1 }, [CPU, DISK])
  send(evaluation, START_MS + 301_000, { [DISK]: 1 })
  sweepStates(evaluation, 0, evaluation.states.end, START_MS + 302_000)
  expect(answer(evaluation, START_MS + 302_000).series[0]).toMatchObject({ state: 'firing', no_data: true })
  expect(decision(evaluation, START_MS + 302_000)).toBe(
    'open because the series is silent; no sample for 302 s (no_data: alert)',
  )
  sweepServers(evaluation, 0, evaluation.servers.length, 0, START_MS + 500_000)
  expect(decision(evaluation, START_MS + 500_000)).toContain('the agent is lost, which is told by agent.down alone')
})

test('flapping and suppression: what is withheld, and who is not told', () => {
  const evaluation = evaluationWith([ruleRecord({})], { transitions: 2 })
  send(evaluation, START_MS, { [CPU]: 95 }, [CPU])
  send(evaluation, START_MS + 30_000, { [CPU]: 10 })
  expect(answer(evaluation).series[0]).toMatchObject({ flapping: true, suppressed_by: null })
  expect(decision(evaluation, START_MS + 30_000)).toBe(
    '10 > 90 does not hold; flapping: openings, endings and reminders are withheld until 1800 s pass without one',
  )
  evaluation.silences = compileSilences([
    {
      id: 'silence',
      company_id: company,
      sync_version: 1,
      scope: { all: true },
      starts_at: new Date(START_MS).toISOString(),
      ends_at: new Date(START_MS + 60_000).toISOString(),
    },
  ])
  expect(answer(evaluation).series[0]).toMatchObject({ suppressed_by: 'silence' })
  expect(decision(evaluation)).toContain('suppressed (silence): events are kept, nobody is notified')
  expect(answer(evaluation, START_MS + 60_000).series[0]).toMatchObject({ suppressed_by: null })
})

test('rules that cover no series of the server: out of scope, not sent, not matched, invalid', () => {
  const rule = (id: number, fields: Parameters<typeof ruleRecord>[0]) => ruleRecord({ id: `rule ${id}`, ...fields })
  const evaluation = evaluationWith([
    rule(1, { scope: { all: false, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] } }),
    rule(2, { metric: 'mem_used_percent' }),
    rule(3, { metric: 'disk_used_percent', matchers: { mount: '/home' } }),
    rule(4, { metric: 'no_such_metric' }),
  ])
  send(evaluation, START_MS, { [CPU]: 1, [DISK]: 1 }, [CPU, DISK])
  expect(answer(evaluation).series).toEqual([])
  expect(answer(evaluation).rules.map(each => `${each.rule_id}: ${each.decision}`)).toEqual([
    'rule 1: the server is not in its scope',
    'rule 2: the server sends no series of mem_used_percent',
    'rule 3: none of its 1 series of disk_used_percent matches the matchers',
    'rule 4: invalid (metric): metric: must be a metric of the catalogue',
  ])
})

test('a rule on series whose names are not known here says so, until ingest has told them', () => {
  const evaluation = evaluationWith([ruleRecord({ id: 'rule 1', metric: 'cpu_usage_percent' })])
  send(evaluation, START_MS, { [CPU]: 95, [DISK]: 1 })
  expect(answer(evaluation).rules[0]?.decision).toContain("the names of 2 of the server's series are not known here")
  send(evaluation, START_MS + 30_000, { [CPU]: 95, [DISK]: 1 }, [CPU, DISK])
  expect(answer(evaluation)).toMatchObject({ series: [{ rule_id: 'rule 1' }], rules: [] })
})
