// One state as the journal keeps it.

import type { CompiledRule } from '../rules/rule.ts'
import type { EvaluationState } from '../state/evaluation-state.ts'
import type { SavedRule, StateRecord } from './journal-record.ts'

/** JSON has no NaN and no infinity; null stands for NaN, and only lastTs of a fresh state is infinite. */
const save = (value: number): number | null => (Number.isFinite(value) ? value : null)

/** The columns of a row, in the order in which the journal reads them. */
export function saveRow(evaluation: EvaluationState, row: number): (number | null)[] {
  const s = evaluation.states
  const lag = s.signature[row] === evaluation.slots[s.rule[row]!]!.signature ? 0 : 1
  return [s.phase[row]!, s.flags[row]!, lag, s.seq[row]!, s.notifiedAtMs(row), s.lastReceivedMs[row]!].concat(
    [s.lastTsMs[row]!, s.lastValue[row]!, s.sinceTsMs(row), s.openedTsMs(row), s.peak(row)].map(save) as number[],
  )
}

export const savedRule = (compiled: CompiledRule): SavedRule => {
  const { matchers: _matchers, serverIds: _serverIds, ...saved } = compiled
  return saved
}

export function stateRecord(evaluation: EvaluationState, row: number, saved: (number | null)[] | null): StateRecord {
  const { states } = evaluation
  const server = evaluation.servers[states.server[row]!]!
  const series = states.series[row]!
  return {
    kind: 'state',
    key: server.key,
    companyId: server.companyId,
    serverId: server.serverId,
    shard: server.shard,
    agentId: server.presence.agentId,
    seriesKey: evaluation.dictionary.get(server.lo(series), server.hi(series))!.fullKey,
    rule: savedRule(evaluation.slots[states.rule[row]!]!.rule.compiled),
    row: saved,
    lastSeq: states.seq[row]!,
    flap: saved === null ? null : (evaluation.flapping.get(row) ?? null),
  }
}
