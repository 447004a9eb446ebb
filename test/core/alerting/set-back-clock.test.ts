// A clock that was ahead and is set back: what is told after it is taken by the hub, and silence is noticed.
import { expect, test } from 'bun:test'
import { encodeSnapshot, restoreSnapshot } from '../../../core/alerting/durability/snapshot.ts'
import { sweepPresence } from '../../../core/alerting/evaluate/agent-down.ts'
import type { AlertEvent } from '../../../core/alerting/evaluate/event.ts'
import { rebindServer } from '../../../core/alerting/rules/apply-rule-change.ts'
import { compileRuleSet } from '../../../core/alerting/rules/compile-rule-set.ts'
import { setRules } from '../../../core/alerting/rules/rule-slots.ts'
import type { EvaluationState } from '../../../core/alerting/state/evaluation-state.ts'
import { shardOfServer } from '../../../core/bus/shard-of-server.ts'
import { evaluationWith, SERVER, send } from '../../support/evaluation.ts'
import { company, ruleRecord } from '../../support/rule-record.ts'

const NOW_MS = 1_767_225_600_000
const HOUR_MS = 3_600_000
const SHARD = shardOfServer(SERVER)
const CPU = 'cpu_usage_percent'

function change(evaluation: EvaluationState, enabled: boolean, version: number, nowMs: number): AlertEvent[] {
  setRules(evaluation, compileRuleSet(enabled ? [ruleRecord({ sync_version: version })] : [], evaluation.rules))
  for (const server of evaluation.servers)
    if (server) rebindServer(evaluation, server, evaluation.companyRules(company), nowMs)
  return evaluation.drainEvents()
}

/** The evaluation after a restart, with all that its snapshot kept. */
function restarted(evaluation: EvaluationState): EvaluationState {
  const next = evaluationWith([])
  next.dictionary.learn(SHARD, CPU)
  expect(restoreSnapshot(next, encodeSnapshot(evaluation, SHARD, 1, 0, NOW_MS), SHARD)).toHaveProperty('position', 1)
  return next
}

test('[EVT-006] the state of a rule that was off goes on above its old seq, although the clock was set back meanwhile', () => {
  let evaluation = evaluationWith([ruleRecord({ sync_version: 1 })])
  const [opened] = send(evaluation, NOW_MS + HOUR_MS, { [CPU]: 95 }, [CPU])
  expect(opened).toMatchObject({ type: 'alert.opened', seq: NOW_MS + HOUR_MS + 1 })
  const [resolved] = change(evaluation, false, 2, NOW_MS)
  expect(resolved).toMatchObject({ type: 'alert.resolved', seq: NOW_MS + HOUR_MS + 2 })
  evaluation = restarted(evaluation)
  change(evaluation, true, 3, NOW_MS + 30_000)
  const [again] = send(evaluation, NOW_MS + 60_000, { [CPU]: 95 }, [CPU])
  expect(again).toMatchObject({ type: 'alert.opened', seq: NOW_MS + HOUR_MS + 3 })
})

test('[EVT-006] without that, a state that is made anew begins at the time of its creation', () => {
  const evaluation = evaluationWith([ruleRecord({ sync_version: 1 })])
  send(evaluation, NOW_MS, { [CPU]: 95 }, [CPU])
  change(evaluation, false, 2, NOW_MS + 10_000)
  change(evaluation, true, 3, NOW_MS + 20_000)
  const [again] = send(evaluation, NOW_MS + 60_000, { [CPU]: 95 })
  expect(again).toMatchObject({ type: 'alert.opened', seq: NOW_MS + 60_001 })
})

test('[EVAL-001] samples of a clock that was ahead keep no later ones from being judged, nor an alert from its end', () => {
  const evaluation = evaluationWith([ruleRecord({ sync_version: 1 })])
  const typesAfter = (atMs: number, values: Readonly<Record<string, number>>, learnt: readonly string[] = []) =>
    send(evaluation, atMs, values, learnt).map(({ type }) => type)
  expect(typesAfter(NOW_MS + 2 * HOUR_MS, { [CPU]: 95 }, [CPU])).toEqual(['alert.opened'])
  // Within what a sample may be ahead an older one is late, as ever.
  expect(typesAfter(NOW_MS + HOUR_MS, { [CPU]: 10 })).toEqual([])
  expect(typesAfter(NOW_MS, { [CPU]: 10 })).toEqual(['alert.resolved'])
  expect(typesAfter(NOW_MS + 10_000, { [CPU]: 95 })).toEqual(['alert.opened'])
  expect(typesAfter(NOW_MS + 5_000, { [CPU]: 10 })).toEqual([])
})

/** Seconds after NOW_MS at which the agent is declared lost, by sweeps every ten; null: not within ten minutes. */
function downAfter(evaluation: EvaluationState): number | null {
  const [server] = evaluation.servers
  for (let second = 0; second <= 600; second += 10) {
    sweepPresence(evaluation, server!, 0, NOW_MS + second * 1000)
    const [down] = evaluation.drainEvents()
    if (down) return down.type === 'agent.down' ? second : null
  }
  return null
}

test('[PRES-002] an agent last heard of in the future is lost after as long a silence as every other', () => {
  const evaluation = evaluationWith([])
  send(evaluation, NOW_MS + HOUR_MS, { [CPU]: 1 }, [CPU])
  expect(downAfter(evaluation)).toBe(100)
})

test('[PRES-002] the interval is that of the last batch: one that says none has the managed one', () => {
  const evaluation = evaluationWith([])
  evaluation.attributes.set(SERVER, {
    companyId: company,
    status: '',
    subnetId: '',
    datacenter: '',
    hostname: '',
    intervalSeconds: 40,
  })
  send(evaluation, NOW_MS - 30_000, { [CPU]: 1 }, [CPU], 30)
  send(evaluation, NOW_MS, { [CPU]: 1 }, [], 0)
  expect(downAfter(evaluation)).toBe(130)
})
