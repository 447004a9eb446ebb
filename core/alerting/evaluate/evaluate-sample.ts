// One sample against one rule: the OK / PENDING / FIRING machine (document 2 "Per-series evaluation machine" and "Stale
// samples"; decisions G-70, G-73, G-74). Time is sample time throughout; the caller turns what is returned into events.
import { limits } from '../../limits.ts'
import type { CompiledRule, Operator } from '../rules/rule.ts'
import { FIRING, FLAG_NO_DATA, OK, PENDING, type StateTable } from '../state/state-table.ts'

/**
 * What a sample did to a state. After `recovered` and `returned` the state is still FIRING, since the caller needs its
 * opening and peak for the event; the caller then sets it to OK. `returned` = data ended a no-data alert: the caller
 * closes it and evaluates the same sample again.
 */
export type Transition = 'none' | 'opened' | 'recovered' | 'returned'

/** The fields of a rule that evaluation reads for each sample. */
export type EvaluatedRule = {
  readonly compiled: CompiledRule
  readonly operatorCode: number
  readonly threshold: number
  readonly staleMs: number
}

const OPERATOR_CODES: Readonly<Record<Operator, number>> = { '>': 0, '>=': 1, '<': 2, '<=': 3, '==': 4, '!=': 5 }

export function evaluatedRule(compiled: CompiledRule): EvaluatedRule {
  return {
    compiled,
    operatorCode: OPERATOR_CODES[compiled.operator],
    threshold: compiled.threshold,
    staleMs: Math.max(compiled.forMs, limits.staleMinMs),
  }
}

export function violates(operatorCode: number, value: number, threshold: number): boolean {
  switch (operatorCode) {
    case 0:
      return value > threshold
    case 1:
      return value >= threshold
    case 2:
      return value < threshold
    case 3:
      return value <= threshold
    case 4:
      return value === threshold
    default:
      return value !== threshold
  }
}

/** No longer violating and, with a recover_threshold, strictly beyond it. */
export function isRecovered(rule: EvaluatedRule, value: number, isViolating: boolean): boolean {
  const recoverThreshold = rule.compiled.recoverThreshold
  if (isViolating || recoverThreshold === null) return !isViolating
  return rule.operatorCode <= 1 ? value < recoverThreshold : value > recoverThreshold
}

/**
 * True when `value` becomes the peak: it is further beyond the threshold, or the operator is == or != and the newest
 * value counts.
 */
export function isWorse(operatorCode: number, value: number, peak: number): boolean {
  if (Number.isNaN(peak) || operatorCode >= 4) return true
  return operatorCode <= 1 ? value > peak : value < peak
}

/**
 * Advances a state by one sample. Called only for a sample that violates the rule or whose state is not OK, and that is
 * newer than the state's last one. `newestTsMs` is the time of the newest sample of the series in the batch.
 * `isAfterGap`: the pause before this sample was so long that it resets PENDING and a running recovery.
 */
export function advance(
  states: StateTable,
  row: number,
  rule: EvaluatedRule,
  tsMs: number,
  value: number,
  newestTsMs: number,
  isAfterGap: boolean,
): Transition {
  const isViolating = violates(rule.operatorCode, value, rule.threshold)
  const phase = states.phase[row]!
  if (phase === OK) {
    states.toActive(row, PENDING)
    states.active.sinceTsMs[states.activeRow[row]!] = tsMs
    return advancePending(states, row, rule, tsMs, value, newestTsMs)
  }
  if (phase === PENDING) {
    if (!isViolating) {
      states.toOk(row)
      return 'none'
    }
    if (isAfterGap) states.active.sinceTsMs[states.activeRow[row]!] = tsMs
    return advancePending(states, row, rule, tsMs, value, newestTsMs)
  }
  if ((states.flags[row]! & FLAG_NO_DATA) !== 0) return 'returned'
  return advanceFiring(states, row, rule, tsMs, value, isViolating, isAfterGap)
}

/** Evaluates the sample that ended a no-data alert once more, now from OK. */
export function evaluateReturned(states: StateTable, row: number, rule: EvaluatedRule, newestTsMs: number): Transition {
  const tsMs = states.lastTsMs[row]!
  const value = states.lastValue[row]!
  if (!violates(rule.operatorCode, value, rule.threshold)) return 'none'
  states.toActive(row, PENDING)
  states.active.sinceTsMs[states.activeRow[row]!] = tsMs
  return advancePending(states, row, rule, tsMs, value, newestTsMs)
}

/**
 * Advances a violating state that is PENDING: opens the alert when the violation has lasted for_seconds, unless the
 * sample is stale.
 */
function advancePending(
  states: StateTable,
  row: number,
  rule: EvaluatedRule,
  tsMs: number,
  value: number,
  newestTsMs: number,
): Transition {
  const { active } = states
  const activeRow = states.activeRow[row]!
  if (tsMs - active.sinceTsMs[activeRow]! < rule.compiled.forMs) return 'none'
  if (newestTsMs - tsMs > rule.staleMs) return 'none'
  states.phase[row] = FIRING
  active.openedTsMs[activeRow] = tsMs
  active.sinceTsMs[activeRow] = Number.NaN
  active.peak[activeRow] = value
  return 'opened'
}

function advanceFiring(
  states: StateTable,
  row: number,
  rule: EvaluatedRule,
  tsMs: number,
  value: number,
  isViolating: boolean,
  isAfterGap: boolean,
): Transition {
  const { active } = states
  const activeRow = states.activeRow[row]!
  if (isViolating && isWorse(rule.operatorCode, value, active.peak[activeRow]!)) active.peak[activeRow] = value
  if (!isRecovered(rule, value, isViolating)) {
    active.sinceTsMs[activeRow] = Number.NaN
    return 'none'
  }
  if (isAfterGap || Number.isNaN(active.sinceTsMs[activeRow]!)) active.sinceTsMs[activeRow] = tsMs
  return tsMs - active.sinceTsMs[activeRow]! < rule.compiled.recoverForMs ? 'none' : 'recovered'
}
