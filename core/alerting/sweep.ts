// What time alone does (every 10 s, wall clock): presence, no data, reminders, the end of flapping, rule changes on machines that are
// silent, and states that nobody needs any more (document 2 "No-data sweep"; decisions G-75, G-76, G-85, G-86).
import { limits } from '../limits.ts'
import { rebindServer } from './binding.ts'
import type { EvaluatedRule } from './evaluate.ts'
import type { Evaluator } from './evaluator.ts'
import { isForgettable, isStable } from './flapping.ts'
import { downAfterMs, presenceIntervalSeconds, sweepPresence } from './presence.ts'
import type { ServerSeries } from './server-series.ts'
import { FIRING, FLAG_NO_DATA, OK, PENDING } from './state-table.ts'

/** Machines in this range of indexes are swept; a caller that must not stall goes in slices. `startedAtMs`: start, or bus overflow. */
export function sweepServers(evaluator: Evaluator, from: number, to: number, startedAtMs: number, nowMs: number): void {
  for (let index = from; index < to && index < evaluator.servers.length; index++) {
    const server = evaluator.servers[index]
    if (!server) continue
    sweepPresence(evaluator, server, startedAtMs, nowMs)
    if (server.stateCount === 0) continue
    const rules = evaluator.companyRules(server.companyId)
    if (server.boundTo !== rules) rebindServer(evaluator, server, rules, nowMs)
  }
}

/** States in this range of rows are swept. */
export function sweepStates(evaluator: Evaluator, from: number, to: number, nowMs: number): void {
  const { states } = evaluator
  const { noDataAfterMs } = evaluator.settings
  for (let row = from; row < to && row < states.end; row++) {
    if (states.rule[row] === -1) continue
    const rule = evaluator.slots[states.rule[row]!]!.rule
    if (rule === null) continue
    const phase = states.phase[row]!
    const silentMs = nowMs - states.lastReceivedMs[row]!
    if (silentMs > noDataAfterMs) sweepSilent(evaluator, row, rule, silentMs, nowMs)
    else if (phase === FIRING && rule.compiled.renotifyMs > 0) evaluator.remind(row, rule, nowMs)
  }
}

/** A state whose series is silent for longer than no_data_after. */
function sweepSilent(evaluator: Evaluator, row: number, rule: EvaluatedRule, silentMs: number, nowMs: number): void {
  const { states } = evaluator
  const server = evaluator.servers[states.server[row]!]!
  if (isStillSending(evaluator, server, states.lastReceivedMs[row]!, nowMs)) settleNoData(evaluator, row, rule, nowMs)
  const phase = states.phase[row]!
  if (phase === FIRING && rule.compiled.renotifyMs > 0) evaluator.remind(row, rule, nowMs)
  else if (phase === OK && silentMs > limits.okStateDropMs && !evaluator.flapping.get(row)?.isFlapping)
    evaluator.removeState(row)
}

/** The machine is up and a batch came after the series' last one, not long ago. */
function isStillSending(
  evaluator: Evaluator,
  server: ServerSeries,
  seriesLastReceivedMs: number,
  nowMs: number,
): boolean {
  const managed = evaluator.attributes.get(server.serverId)?.intervalSeconds ?? 0
  const intervalSeconds = presenceIntervalSeconds(server.presence.intervalSeconds, managed)
  return (
    server.presence.state === 'up' &&
    server.lastBatchMs > seriesLastReceivedMs &&
    nowMs - server.lastBatchMs <= downAfterMs(intervalSeconds)
  )
}

function settleNoData(evaluator: Evaluator, row: number, rule: EvaluatedRule, nowMs: number): void {
  const { states } = evaluator
  if (states.phase[row] === PENDING) states.phase[row] = OK
  const mode = rule.compiled.noData
  const value = states.lastValue[row]!
  if (mode === 'alert' && states.phase[row] !== FIRING) {
    states.phase[row] = FIRING
    states.flags[row] = states.flags[row]! | FLAG_NO_DATA
    states.openedTsMs[row] = nowMs
    states.sinceTsMs[row] = Number.NaN
    states.peak[row] = Number.NaN
    evaluator.opened(row, rule, nowMs, nowMs, value)
  } else if (mode === 'resolve' && states.phase[row] === FIRING) {
    evaluator.closed(row, rule, nowMs, nowMs, 'no_data', value)
    states.phase[row] = OK
    states.flags[row] = 0
  }
}

/** Series that were flapping and have been quiet for flap_stable leave it; old transition lists are dropped. */
export function sweepFlapping(evaluator: Evaluator, nowMs: number): void {
  const { states } = evaluator
  const settings = evaluator.settings.flapping
  for (const [row, flap] of evaluator.flapping) {
    if (isForgettable(flap, settings, nowMs)) {
      evaluator.flapping.delete(row)
      continue
    }
    if (!isStable(flap, settings, nowMs)) continue
    const rule = evaluator.slots[states.rule[row]!]!.rule
    if (rule === null) continue
    const value = states.lastValue[row]!
    const transitions = flap.countSinceEntered
    flap.isFlapping = false
    flap.transitionsTsMs = []
    evaluator.emit(row, rule, { type: 'alert.flapping', reason: 'exited', transitions, occurredAtMs: nowMs, value })
    states.notifiedAtMs[row] = nowMs
    if (states.phase[row] === FIRING) continue
    evaluator.emit(row, rule, {
      type: 'alert.resolved',
      reason: 'recovered',
      occurredAtMs: flap.closedTsMs,
      value,
      openedTsMs: flap.toldOpenedTsMs,
      peak: flap.peak,
    })
  }
}
