// The journal keeps, for each event, the state that the event left behind; both are committed together. After a crash
// the worker loads the snapshot, then the journal, and then replays the bus. A state that the journal restored ignores
// the bus up to the journal record's position. So the replay emits no transition a second time, and none that differs
// from the first one (with the snapshot alone, the replay would judge those samples under the present rules and clock).

import { NO_SIGNATURE, slotOfSaved } from '../rules/rule-slots.ts'
import { addState, stateOf } from '../rules/rules-of-series.ts'
import type { EvaluationState } from '../state/evaluation-state.ts'
import { forgetServer, removeState } from '../state/removal.ts'
import { type ServerSeries, UNDEFINED } from '../state/server-series.ts'
import { FIRING, NO_ROW, PENDING } from '../state/state-table.ts'
import type { JournalRecord, StateRecord } from './journal-record.ts'
import { saveRow, stateRecord } from './state-record.ts'

const load = (value: number | null | undefined): number => value ?? Number.NaN

/**
 * Loads the columns of a saved state. A state that has the present signature of its rule continues; one with another
 * signature restarts when its server is bound.
 */
function loadRow(evaluation: EvaluationState, row: number, saved: readonly (number | null)[], signature: number): void {
  const { states } = evaluation
  const [phase, flags, lag, seq, notifiedAtMs, lastReceivedMs, lastTsMs, lastValue, since, opened, peak] = saved
  states.toOk(row)
  states.signature[row] = lag === 0 ? signature : NO_SIGNATURE
  states.seq[row] = seq!
  states.lastReceivedMs[row] = lastReceivedMs!
  states.lastTsMs[row] = lastTsMs ?? Number.NEGATIVE_INFINITY
  states.lastValue[row] = load(lastValue)
  if (phase !== PENDING && phase !== FIRING) return
  states.toActive(row, phase)
  states.flags[row] = flags!
  const { active, activeRow } = states
  const at = activeRow[row]!
  active.sinceTsMs[at] = load(since)
  active.openedTsMs[at] = load(opened)
  active.peak[at] = load(peak)
  active.notifiedAtMs[at] = notifiedAtMs!
}

/** Records of the states and presences that emitted events since the last call, as they are now. Clears the lists. */
export function takeJournal(evaluation: EvaluationState): JournalRecord[] {
  const records: JournalRecord[] = [...evaluation.removed, ...evaluation.newlyRemovedServers]
  evaluation.removed = []
  evaluation.newlyRemovedServers = []
  for (const row of evaluation.touchedRows) records.push(stateRecord(evaluation, row, saveRow(evaluation, row)))
  for (const server of evaluation.touchedServers)
    records.push({
      kind: 'presence',
      key: server.key,
      companyId: server.companyId,
      serverId: server.serverId,
      shard: server.shard,
      presence: { ...server.presence },
    })
  evaluation.touchedRows.clear()
  evaluation.touchedServers.clear()
  return records
}

/**
 * Applies a record to the evaluation. From then on, what the record describes ignores the bus up to `position`. The
 * caller hands records over in the order in which they were written.
 */
export function applyJournal(evaluation: EvaluationState, record: JournalRecord, position: number): void {
  if (record.kind === 'left') {
    const gone = evaluation.serversByKey.get(record.key)
    if (gone) forgetServer(evaluation, gone)
    evaluation.noteRemovedServer(record)
    evaluation.removedUpTo.set(record.key, position)
    return
  }
  const agentId = record.kind === 'state' ? record.agentId : record.presence.agentId
  const server =
    evaluation.serversByKey.get(record.key) ??
    evaluation.server(record.key, record.companyId, record.serverId, record.shard, agentId)
  if (record.kind === 'presence') {
    Object.assign(server.presence, record.presence)
    evaluation.presenceJournaledUpTo.set(server, position)
    return
  }
  applyState(evaluation, server, record, position)
}

function applyState(evaluation: EvaluationState, server: ServerSeries, record: StateRecord, position: number): void {
  const { states } = evaluation
  const { slot, signature } = slotOfSaved(evaluation, record.rule)
  const series = seriesIndex(evaluation, server, record.seriesKey)
  const held = stateOf(evaluation, server, series, slot)
  if (record.row === null && record.lastSeq === undefined) {
    // Records without `lastSeq` come from the first released format, whose worker saved every shard before a change of
    // rules: no replay can bring the removed state back.
    if (held !== NO_ROW) removeState(evaluation, held)
    return
  }
  const row = held === NO_ROW ? addState(evaluation, server, series, slot, record.lastSeq ?? 0) : held
  evaluation.flapping.delete(row)
  evaluation.journaledUpTo.set(row, position)
  if (record.row === null) {
    // The record says that the state was removed. The row stays, empty, while the replay runs under the old rules, so
    // that the replay does not open the alert again; binding the server to the present rules then drops it.
    states.reset(row)
    states.seq[row] = record.lastSeq ?? 0
    states.signature[row] = NO_SIGNATURE
    return
  }
  loadRow(evaluation, row, record.row, signature)
  if (record.flap) evaluation.flapping.set(row, { ...record.flap, peak: load(record.flap.peak) })
}

/** The index of the series with this key; adds the series when the server does not have it yet. */
function seriesIndex(evaluation: EvaluationState, server: ServerSeries, fullKey: string): number {
  const { dictionary } = evaluation
  const { lo, hi } = dictionary.idOf(fullKey)
  const found = server.find(lo, hi)
  const index = found >= 0 ? found : server.add(lo, hi)
  dictionary.learn(server.shard, fullKey)
  if (server.head[index] === UNDEFINED) dictionary.use(lo, hi)
  return index
}
