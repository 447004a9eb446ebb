// What must survive a crash together with an event: the state that the event left behind. After a crash the snapshot is loaded,
// then the journal, then the bus is replayed; a state that the journal settled up to a position ignores the bus up to there, so no
// transition is told twice and none is told otherwise (the snapshot alone would replay it under the rules and the clock of now).
import { addState } from './binding.ts'
import { evaluatedRule } from './evaluate.ts'
import type { EvaluationState } from './evaluation-state.ts'
import type { JournalRecord, SavedRule, StateRecord } from './journal-record.ts'
import { forgetServer, removeState } from './removal.ts'
import type { ServerSeries } from './server-series.ts'
import { saveRow, stateRecord } from './state-record.ts'
import { NO_ROW } from './state-table.ts'

const load = (value: number | null | undefined): number => value ?? Number.NaN

/** A state under the signature that the rule has now goes on; one under another signature restarts when its machine is bound. */
function loadRow(
  evaluation: EvaluationState,
  row: number,
  saved: readonly (number | null)[],
  signatureText: string,
): void {
  const s = evaluation.states
  const slot = evaluation.slots[s.rule[row]!]!
  s.phase[row] = saved[0]!
  s.flags[row] = saved[1]!
  s.signature[row] = saved[2] === 0 && slot.signatureText === signatureText ? slot.signature : -1
  s.seq[row] = saved[3]!
  s.notifiedAtMs[row] = saved[4]!
  s.lastReceivedMs[row] = saved[5]!
  s.lastTsMs[row] = saved[6] ?? Number.NEGATIVE_INFINITY
  s.lastValue[row] = load(saved[7])
  s.sinceTsMs[row] = load(saved[8])
  s.openedTsMs[row] = load(saved[9])
  s.peak[row] = load(saved[10])
}

/** The states and presences whose events left since the last call, as they are now. Clears the lists. */
export function takeJournal(evaluation: EvaluationState): JournalRecord[] {
  const records: JournalRecord[] = [...evaluation.removed, ...evaluation.departed]
  evaluation.removed = []
  evaluation.departed = []
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

/** Brings the evaluation to what a record says; the bus up to `position` is settled for it. Records come in the order they were made. */
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
    evaluation.presenceSettledUpTo.set(server, position)
    return
  }
  const row = rowOf(evaluation, server, record)
  if (record.row === null) {
    if (row !== NO_ROW) removeState(evaluation, row)
    return
  }
  const slot = slotOfSaved(evaluation, record.rule)
  const definition = evaluation.dictionary.learn(record.seriesKey)
  const settled =
    row === NO_ROW ? addState(evaluation, server, seriesIndex(evaluation, server, definition.fullKey), slot, 0) : row
  loadRow(evaluation, settled, record.row, record.rule.signature)
  if (record.flap) evaluation.flapping.set(settled, { ...record.flap, peak: load(record.flap.peak) })
  else evaluation.flapping.delete(settled)
  evaluation.settledUpTo.set(settled, position)
}

function seriesIndex(evaluation: EvaluationState, server: ServerSeries, fullKey: string): number {
  const { lo, hi } = evaluation.dictionary.idOf(fullKey)
  const index = server.find(lo, hi)
  return index >= 0 ? index : server.add(lo, hi)
}

function rowOf(evaluation: EvaluationState, server: ServerSeries, record: StateRecord): number {
  const slot = evaluation.slotOfRule.get(record.rule.id)
  if (slot === undefined) return NO_ROW
  const { lo, hi } = evaluation.dictionary.idOf(record.seriesKey)
  const index = server.find(lo, hi)
  if (index < 0) return NO_ROW
  let row = server.head[index]!
  while (row !== NO_ROW && evaluation.states.rule[row] !== slot) row = evaluation.states.next[row]!
  return row
}

function slotOfSaved(evaluation: EvaluationState, saved: SavedRule): number {
  const held = evaluation.slotOfRule.get(saved.id)
  if (held !== undefined) return held
  const slot = evaluation.slots.length
  const rule = evaluatedRule({ ...saved, matchers: [], serverIds: new Set() })
  evaluation.slots.push({
    rule,
    signature: 0,
    signatureText: saved.signature,
    id: saved.id,
    companyId: saved.companyId,
  })
  evaluation.slotOfRule.set(saved.id, slot)
  return slot
}
