// An evaluation that a test feeds by hand: one machine, one batch at a time.
import { EvaluationState } from '../../core/alerting/evaluation-state.ts'
import { applyEntry } from '../../core/alerting/evaluator.ts'
import type { AlertEvent } from '../../core/alerting/event.ts'
import type { FlapSettings } from '../../core/alerting/flapping.ts'
import type { RawRule } from '../../core/alerting/rule.ts'
import { compileRuleSet, emptyRuleSet } from '../../core/alerting/rule-set.ts'
import { setRules } from '../../core/alerting/rule-slots.ts'
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

/** A batch of the machine: points by key of the series, with the keys of those that are announced. Returns the events. */
export function send(
  evaluation: EvaluationState,
  receivedAtMs: number,
  points: Readonly<Record<string, number | readonly (readonly [tsMs: number, value: number])[]>>,
  announced: readonly string[] = [],
): AlertEvent[] {
  const series = Object.entries(points).map(([key, value]) => ({
    key,
    points: typeof value === 'number' ? [[receivedAtMs, value] as const] : value,
  }))
  const header = { companyId: company, serverId: SERVER, agentId: SERVER, receivedAtMs, seq: 1, intervalSeconds: 30 }
  const reader = new EntryReader()
  reader.open(
    encodeEntry(
      header,
      sampleBatchOf(series, key => announced.includes(key)),
    ).slice(),
  )
  reader.next()
  applyEntry(evaluation, reader, 1)
  return evaluation.takeEvents()
}
