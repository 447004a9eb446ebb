// What must survive a crash together with an event: the state that the event left behind. After a crash the snapshot is
// loaded, then the journal, then the bus is replayed; a state that the journal settled up to a position ignores the bus
// up to there, so no transition is told twice and none is told otherwise (the snapshot alone would replay it under the
// rules and the clock of now).
import { addState, stateOf } from '../rules/binding.ts'
import { NO_SIGNATURE, slotOfSaved } from '../rules/rule-slots.ts'
import type { EvaluationState } from '../state/evaluation-state.ts'
import { forgetServer, removeState } from '../state/removal.ts'
import { type ServerSeries, UNDEFINED } from '../state/server-series.ts'
import { FIRING, NO_ROW, PENDING } from '../state/state-table.ts'
import type { JournalRecord, StateRecord } from './journal-record.ts'
import { saveRow, stateRecord } from './state-record.ts'

const load = (value: number | null | undefined): number => value ?? Number.NaN

/**
 * A state under the signature that the rule has now goes on; one under another signature restarts when its server is
 * bound.
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

/** The states and presences whose events left since the last call, as they are now. Clears the lists. */
export function takeJournal(evaluation: EvaluationState): JournalRecord[] {
  const records: JournalRecord[] = [...evaluation.removed, ...evaluation.removedServers]
  evaluation.removed = []
  evaluation.removedServers = []
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
 * Brings the evaluation to what a record says; the bus up to `position` is settled for it. Records come in the order
 * they were made.
 */
export function applyJournal(evaluation: EvaluationState, record: JournalRecord, position: number): void {
  if (record.kind === 'left') {
    const gone = evaluation.serversByKey.get(record.key)
    if (gone) forgetServer(evaluation, gone)
    evaluation.noteLeft(record)
    evaluation.leftUpTo.set(record.key, position)
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
    // Written by a program that saved every shard before a change of rules: no replay brings the state back.
    if (held !== NO_ROW) removeState(evaluation, held)
    return
  }
  const row = held === NO_ROW ? addState(evaluation, server, series, slot, record.lastSeq ?? 0) : held
  evaluation.flapping.delete(row)
  evaluation.journaledUpTo.set(row, position)
  if (record.row === null) {
    // It stands for its removal while the bus is replayed under the rules of before; then its server is bound without
    // it.
    states.reset(row)
    states.seq[row] = record.lastSeq ?? 0
    states.signature[row] = NO_SIGNATURE
    return
  }
  loadRow(evaluation, row, record.row, signature)
  if (record.flap) evaluation.flapping.set(row, { ...record.flap, peak: load(record.flap.peak) })
}

/** The series with this key, taken in where it is new to the server. */
function seriesIndex(evaluation: EvaluationState, server: ServerSeries, fullKey: string): number {
  const { dictionary } = evaluation
  const { lo, hi } = dictionary.idOf(fullKey)
  const found = server.find(lo, hi)
  const index = found >= 0 ? found : server.add(lo, hi)
  dictionary.learn(server.shard, fullKey)
  if (server.head[index] === UNDEFINED) dictionary.use(lo, hi)
  return index
}
