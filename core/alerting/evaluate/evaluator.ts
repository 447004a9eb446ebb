// The evaluation of the servers that one thread owns: bus entries in, events out (document 2). Nothing here reads a
// clock: a sample is evaluated at the receive time of its batch and a sweep at the time it is given, so a replay
// repeats exactly what happened.
import type { EntryReader } from '../../bus/entry.ts'
import { limits } from '../../limits.ts'
import { rebindServer } from '../rules/apply-rule-change.ts'
import { bindSeen } from '../rules/rules-of-series.ts'
import type { EvaluationState } from '../state/evaluation-state.ts'
import { dropIdleSeries } from '../state/removal.ts'
import { FIRING, NO_ROW, OK, type StateTable } from '../state/state-table.ts'
import { batchSeen } from './agent-down.ts'
import { closed, opened } from './emit-transition.ts'
import { advance, type EvaluatedRule, evaluateReturned, type Transition, violates } from './evaluate-sample.ts'
import { remind } from './reminder.ts'

/** The number of series without a state that a server may keep; above it they are dropped. */
const IDLE_SERIES_MAX = 2000

/** Evaluates the reader's current entry; `position` is its position on the bus. */
export function applyEntry(evaluation: EvaluationState, reader: EntryReader, position: number): void {
  const key = reader.serverKey()
  if (evaluation.removedServers.size > 0 && isOfRemovedServer(evaluation, reader, key, position)) return
  let server = evaluation.serversByKey.get(key)
  if (!server) {
    server = evaluation.server(key, reader.companyId(), reader.serverId(), reader.shard, reader.agentId())
    server.reserve(reader.seriesCount)
  }
  const nowMs = reader.receivedAtMs
  batchSeen(evaluation, server, reader, position)
  if (reader.pointCount === 0) return
  const rules = evaluation.companyRules(server.companyId)
  if (server.boundTo !== rules) rebindServer(evaluation, server, rules, nowMs, position)
  if (reader.hasDefinitions) learnDefinitions(evaluation, reader)
  let { ids, head, count: known } = server
  let expected = 0
  let index = 0
  const { u32, f64, idsAt, seriesCount, hasCounts, hasTimes } = reader
  const isReplay = evaluation.journaledUpTo.size > 0
  let point = 0
  for (let series = 0; series < seriesCount; series++) {
    const lo = u32[idsAt + series * 2]!
    const hi = u32[idsAt + series * 2 + 1]!
    const count = hasCounts ? u32[reader.countsAt + series]! : 1
    // An agent sends its series in the same order each time, so the expected series is the one after the series before.
    if (expected < known && ids[expected * 2] === lo && ids[expected * 2 + 1] === hi) index = expected
    else {
      index = server.find(lo, hi, expected)
      if (index < 0) index = server.add(lo, hi)
      ids = server.ids
      head = server.head
      known = server.count
    }
    expected = index + 1
    if (head[index]! < NO_ROW) bindSeen(evaluation, server, index, nowMs)
    const row = head[index]!
    if (row >= 0) {
      if (count === 1 && !isReplay) {
        const tsMs = hasTimes ? f64[reader.timesAt + point]! : reader.commonTsMs
        samplePoint(evaluation, row, tsMs, f64[reader.valuesAt + point]!, nowMs)
      } else samplePoints(evaluation, row, reader, point, count, position)
    }
    point += count
  }
  evaluation.samples += point
  if (server.count > IDLE_SERIES_MAX && server.stateCount * 2 < server.count) dropIdleSeries(evaluation, server)
}

/** A definition is announced again each hour: most of them are known, and their keys need not be decoded. */
function learnDefinitions({ dictionary }: EvaluationState, reader: EntryReader): void {
  const { shard, u32, idsAt } = reader
  reader.eachDefinition(
    (_, fullKey) => dictionary.learn(shard, fullKey),
    series => dictionary.isLearnt(shard, u32[idsAt + series * 2]!, u32[idsAt + series * 2 + 1]!),
  )
}

function isOfRemovedServer(evaluation: EvaluationState, reader: EntryReader, key: string, position: number): boolean {
  const removed = evaluation.removedServers.get(key)
  if (!removed) return false
  if (position <= (evaluation.removedUpTo.get(key) ?? 0)) return true
  const agentId = reader.agentId()
  return removed.some(record => record.agentIds.includes(agentId))
}

/**
 * Takes a sample as the next of a state where it is newer than the last one. A last one that lies far ahead of the
 * receive time came while a clock was wrong that is right now: until that time comes again nothing would be judged, so
 * that it is forgotten.
 */
function takeNewer(states: StateTable, row: number, tsMs: number, receivedAtMs: number): boolean {
  if (tsMs > states.lastTsMs[row]!) return true
  if (states.lastTsMs[row]! <= receivedAtMs + limits.wrongClockAheadMs) return false
  states.lastTsMs[row] = Number.NEGATIVE_INFINITY
  return true
}

/** Evaluates one point of a series for every state of the series. */
function samplePoint(evaluation: EvaluationState, head: number, tsMs: number, value: number, nowMs: number): void {
  const { states } = evaluation
  let row = head
  while (row !== NO_ROW) {
    const next = states.next[row]!
    states.lastReceivedMs[row] = nowMs
    if (takeNewer(states, row, tsMs, nowMs)) evaluate(evaluation, row, tsMs, value, tsMs, nowMs)
    row = next
  }
}

/**
 * Evaluates several points of a series in time order (decision G-73). The newest time is found first, since staleness
 * is measured from it.
 */
function samplePoints(
  evaluation: EvaluationState,
  head: number,
  reader: EntryReader,
  first: number,
  count: number,
  position: number,
): void {
  if (count === 0) return
  const { states } = evaluation
  const { f64, valuesAt, receivedAtMs } = reader
  let newestTsMs = timeOf(reader, first)
  let isInOrder = true
  for (let point = first + 1; point < first + count; point++) {
    if (timeOf(reader, point) < timeOf(reader, point - 1)) isInOrder = false
    newestTsMs = Math.max(newestTsMs, timeOf(reader, point))
  }
  const order = isInOrder ? null : pointsInOrder(reader, first, count)
  let row = head
  while (row !== NO_ROW) {
    const next = states.next[row]!
    if ((evaluation.journaledUpTo.get(row) ?? 0) < position) {
      states.lastReceivedMs[row] = receivedAtMs
      for (let at = 0; at < count; at++) {
        const point = order === null ? first + at : order[at]!
        const tsMs = timeOf(reader, point)
        if (takeNewer(states, row, tsMs, receivedAtMs))
          evaluate(evaluation, row, tsMs, f64[valuesAt + point]!, newestTsMs, receivedAtMs)
      }
    }
    row = next
  }
}

const timeOf = (reader: EntryReader, point: number): number =>
  reader.hasTimes ? reader.f64[reader.timesAt + point]! : reader.commonTsMs

function pointsInOrder(reader: EntryReader, first: number, count: number): number[] {
  const order = Array.from({ length: count }, (_, offset) => first + offset)
  return order.sort((a, b) => timeOf(reader, a) - timeOf(reader, b) || a - b)
}

/** Evaluates one sample against the rule of one state. The sample is newer than the state's last one. */
function evaluate(
  evaluation: EvaluationState,
  row: number,
  tsMs: number,
  value: number,
  newestTsMs: number,
  nowMs: number,
): void {
  const { states } = evaluation
  const { rule } = evaluation.slots[states.rule[row]!]!
  const sinceLastMs = tsMs - states.lastTsMs[row]!
  evaluation.evaluations++
  states.lastTsMs[row] = tsMs
  states.lastValue[row] = value
  // Nearly every sample ends here. The engine inlines this function into the loops as long as it is small, so the rest
  // is in evaluateSlow.
  if (!violates(rule.operatorCode, value, rule.threshold) && states.phase[row] === OK) return
  evaluateSlow(evaluation, row, rule, tsMs, value, newestTsMs, nowMs, sinceLastMs)
}

function evaluateSlow(
  evaluation: EvaluationState,
  row: number,
  rule: EvaluatedRule,
  tsMs: number,
  value: number,
  newestTsMs: number,
  nowMs: number,
  sinceLastMs: number,
): void {
  const { states, settings } = evaluation
  const transition = advance(states, row, rule, tsMs, value, newestTsMs, sinceLastMs > settings.noDataAfterMs)
  if (transition !== 'none') tell(evaluation, row, rule, transition, tsMs, value, newestTsMs, nowMs)
  else if (states.phase[row] === FIRING && rule.compiled.renotifyMs > 0 && newestTsMs - tsMs <= rule.staleMs)
    remind(evaluation, row, rule, nowMs)
}

/** Emits what an opening or closing transition calls for. Rare, and therefore kept out of `evaluate`. */
function tell(
  evaluation: EvaluationState,
  row: number,
  rule: EvaluatedRule,
  transition: Exclude<Transition, 'none'>,
  tsMs: number,
  value: number,
  newestTsMs: number,
  nowMs: number,
): void {
  switch (transition) {
    case 'opened':
      opened(evaluation, row, rule, tsMs, nowMs, value)
      return
    case 'recovered':
      closed(evaluation, row, rule, tsMs, nowMs, 'recovered', value)
      evaluation.states.toOk(row)
      return
    case 'returned':
      returned(evaluation, row, rule, tsMs, value, newestTsMs, nowMs)
  }
}

/** Closes a no-data alert at the first sample after the silence, then evaluates that sample as any other. */
function returned(
  evaluation: EvaluationState,
  row: number,
  rule: EvaluatedRule,
  tsMs: number,
  value: number,
  newestTsMs: number,
  nowMs: number,
): void {
  closed(evaluation, row, rule, tsMs, nowMs, 'data_returned', value)
  evaluation.states.toOk(row)
  if (evaluateReturned(evaluation.states, row, rule, newestTsMs) === 'opened')
    opened(evaluation, row, rule, tsMs, nowMs, value)
}
