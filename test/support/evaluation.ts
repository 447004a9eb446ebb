// An evaluation that a test feeds by hand: one server, one batch at a time.

import { applyEntry } from '../../core/alerting/evaluate/evaluator.ts'
import type { AlertEvent } from '../../core/alerting/evaluate/event.ts'
import type { FlapSettings } from '../../core/alerting/evaluate/flapping.ts'
import { compileRuleSet } from '../../core/alerting/rules/compile-rule-set.ts'
import type { RawRule } from '../../core/alerting/rules/rule.ts'
import { emptyRuleSet } from '../../core/alerting/rules/rule-set.ts'
import { setRules } from '../../core/alerting/rules/rule-slots.ts'
import { EvaluationState } from '../../core/alerting/state/evaluation-state.ts'
import { EntryReader, encodeEntry } from '../../core/bus/entry.ts'
import { sampleBatchOf } from '../sim/batch.ts'
import { company } from './rule-record.ts'

export const SERVER = '50000000-0000-4000-8000-000000000001'

/** Flapping is off unless it is given. */
export function evaluationWith(rules: readonly RawRule[], flapping: Partial<FlapSettings> = {}): EvaluationState {
  const evaluation = new EvaluationState({
    noDataAfterMs: 300_000,
    flapping: { windowMs: 1_800_000, transitions: 0, stableMs: 1_800_000, ...flapping },
  })
  setRules(evaluation, compileRuleSet(rules, emptyRuleSet))
  return evaluation
}

/**
 * A batch of the server: points by key of the series, with the keys of those that are announced. Returns the events.
 */
export function send(
  evaluation: EvaluationState,
  receivedAtMs: number,
  points: Readonly<Record<string, number | readonly (readonly [tsMs: number, value: number])[]>>,
  announced: readonly string[] = [],
  intervalSeconds = 30,
): AlertEvent[] {
  const series = Object.entries(points).map(([key, value]) => ({
    key,
    points: typeof value === 'number' ? [[receivedAtMs, value] as const] : value,
  }))
  const header = { companyId: company, serverId: SERVER, agentId: SERVER, receivedAtMs, seq: 1, intervalSeconds }
  const reader = new EntryReader()
  reader.open(
    encodeEntry(
      header,
      sampleBatchOf(series, key => announced.includes(key)),
    ).slice(),
  )
  reader.next()
  applyEntry(evaluation, reader, 1)
  return evaluation.drainEvents()
}
