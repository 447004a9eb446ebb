// What evaluation forgets of series that are not sent any more, and that nothing is lost by it when they come back.
import { expect, test } from 'bun:test'
import type { AlertEvent } from '../../../core/alerting/evaluate/event.ts'
import { sweepStates } from '../../../core/alerting/evaluate/sweep.ts'
import { rebindServer } from '../../../core/alerting/rules/apply-rule-change.ts'
import { compileRuleSet } from '../../../core/alerting/rules/compile-rule-set.ts'
import type { RawRule } from '../../../core/alerting/rules/rule.ts'
import { setRules } from '../../../core/alerting/rules/rule-slots.ts'
import type { EvaluationState } from '../../../core/alerting/state/evaluation-state.ts'
import { dropUnseen } from '../../../core/alerting/state/removal.ts'
import { shardOfServer } from '../../../core/bus/shard-of-server.ts'
import { DAY_MS } from '../../../core/limits.ts'
import { evaluationWith, SERVER, send } from '../../support/evaluation.ts'
import { company, ruleRecord } from '../../support/rule-record.ts'

const START_MS = 1_767_225_600_000
const HOUR_MS = 3_600_000
const SHARD = shardOfServer(SERVER)
const CPU = 'cpu_usage_percent'
const DISK = 'disk_used_percent{mount="/"}'

const ruleOf = (id: number, fields: Partial<RawRule>): RawRule =>
  ruleRecord({ id: `10000000-0000-4000-8000-00000000000${id}`, sync_version: id, ...fields })

const told = (events: readonly AlertEvent[]): string[] =>
  events.map(event => `${event.type} ${event.rule_id.at(-1)} ${event.series_key}`)

function look(evaluation: EvaluationState): void {
  dropUnseen(evaluation, 0, evaluation.servers.length)
  evaluation.dictionary.forgetUnused()
}

const sweep = (evaluation: EvaluationState, nowMs: number): void =>
  sweepStates(evaluation, 0, evaluation.states.end, nowMs)

test('[EVAL-001] a series that was silent for more than a day is evaluated again from its first sample on', () => {
  const evaluation = evaluationWith([ruleOf(1, {})])
  send(evaluation, START_MS, { [CPU]: 50, [DISK]: 1 }, [CPU, DISK])
  const atMs = START_MS + DAY_MS + HOUR_MS
  send(evaluation, atMs, { [DISK]: 1 })
  sweep(evaluation, atMs)
  expect(evaluation.states.count).toBe(0)
  expect(told(send(evaluation, atMs + 30_000, { [CPU]: 95, [DISK]: 1 }))).toEqual([`alert.opened 1 ${CPU}`])
})

test('[EVAL-001] while one rule of a silent series is FIRING, the state of the other is kept and goes on when the series comes back', () => {
  const evaluation = evaluationWith([ruleOf(1, { threshold: 50 }), ruleOf(2, {})])
  expect(told(send(evaluation, START_MS, { [CPU]: 60 }, [CPU]))).toEqual([`alert.opened 1 ${CPU}`])
  const atMs = START_MS + DAY_MS + HOUR_MS
  sweep(evaluation, atMs)
  expect(told(send(evaluation, atMs, { [CPU]: 95 }))).toEqual([`alert.opened 2 ${CPU}`])
})

test('a series without a rule that two looks in a row miss is given up; one that comes between them is kept', () => {
  const evaluation = evaluationWith([])
  send(evaluation, START_MS, { [CPU]: 1, [DISK]: 1 }, [CPU, DISK])
  look(evaluation)
  send(evaluation, START_MS + HOUR_MS, { [DISK]: 1 })
  look(evaluation)
  expect(evaluation.servers.map(server => server?.count)).toEqual([1])
})

test('the key of a series that is not sent any more goes from memory, and from disk with the next snapshot', () => {
  const evaluation = evaluationWith([])
  const { dictionary } = evaluation
  send(evaluation, START_MS, { [CPU]: 1, [DISK]: 1 }, [CPU, DISK])
  expect(dictionary.takeLearnt(SHARD)).toEqual([CPU, DISK])
  for (let hour = 1; hour <= 4; hour++) {
    send(evaluation, START_MS + hour * HOUR_MS, { [DISK]: 1 })
    look(evaluation)
  }
  expect(dictionary.size).toBe(1)
  expect(dictionary.takeForgotten(SHARD)).toEqual([CPU])
  expect(dictionary.takeForgotten(SHARD)).toEqual([])
})

test('[RUL-016] a series whose key was forgotten is bound again as soon as it is announced', () => {
  const evaluation = evaluationWith([ruleOf(1, { metric: 'disk_used_percent', matchers: { mount: '/' } })])
  send(evaluation, START_MS, { [CPU]: 1, [DISK]: 1 }, [CPU, DISK])
  const atMs = START_MS + DAY_MS + HOUR_MS
  send(evaluation, atMs, { [CPU]: 1 })
  sweep(evaluation, atMs)
  for (let count = 0; count < 4; count++) {
    look(evaluation)
    send(evaluation, atMs + count * HOUR_MS, { [CPU]: 1 })
  }
  expect(evaluation.dictionary.size).toBe(1)
  expect(told(send(evaluation, atMs + 5 * HOUR_MS, { [CPU]: 1, [DISK]: 95 }))).toEqual([])
  expect(told(send(evaluation, atMs + 6 * HOUR_MS, { [CPU]: 1, [DISK]: 95 }, [DISK]))).toEqual([
    `alert.opened 1 ${DISK}`,
  ])
})

test('a key that is learnt again before a snapshot was saved stays on disk', () => {
  const evaluation = evaluationWith([])
  const { dictionary } = evaluation
  dictionary.load(SHARD, [CPU])
  look(evaluation)
  look(evaluation)
  expect(dictionary.size).toBe(0)
  send(evaluation, START_MS, { [CPU]: 1 }, [CPU])
  expect(dictionary.takeForgotten(SHARD)).toEqual([])
  expect(dictionary.takeLearnt(SHARD)).toEqual([])
})

test('a key that was used between two looks is not forgotten by the second, though it is given up again', () => {
  const evaluation = evaluationWith([])
  const { dictionary } = evaluation
  dictionary.load(SHARD, [CPU])
  look(evaluation)
  send(evaluation, START_MS, { [CPU]: 1 })
  look(evaluation)
  look(evaluation)
  expect(evaluation.servers[0]!.count).toBe(0)
  expect(dictionary.size).toBe(1)
})

test('rules that come in force just before a look do not make it take a series for one that is not sent', () => {
  const evaluation = evaluationWith([])
  send(evaluation, START_MS, { [CPU]: 1, [DISK]: 1 }, [CPU, DISK])
  setRules(evaluation, compileRuleSet([ruleOf(1, { metric: 'disk_used_percent' })], evaluation.rules))
  rebindServer(evaluation, evaluation.servers[0]!, evaluation.companyRules(company), START_MS)
  look(evaluation)
  expect(evaluation.servers[0]!.count).toBe(2)
  expect(told(send(evaluation, START_MS + 30_000, { [CPU]: 1, [DISK]: 95 }))).toEqual([`alert.opened 1 ${DISK}`])
})
