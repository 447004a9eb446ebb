// "Why did it (not) fire?" for one server: the last decision on every series that a rule covers, and for every other
// rule of its company why it covers none. A rule that does not appear is disabled or deleted in the hub.
import type { RuleAlerting, SeriesAlerting } from '../../../../core/admin-api/alerting.ts'
import { type EvaluatedRule, isRecovered, violates } from '../../../../core/alerting/evaluate/evaluate-sample.ts'
import { isSilent } from '../../../../core/alerting/evaluate/no-data.ts'
import { matchesLabels } from '../../../../core/alerting/rules/matches-labels.ts'
import type { CompiledRule } from '../../../../core/alerting/rules/rule.ts'
import { isInScope } from '../../../../core/alerting/rules/rules-of-series.ts'
import type { EvaluationState } from '../../../../core/alerting/state/evaluation-state.ts'
import { labelsOf, shownKey } from '../../../../core/alerting/state/series-dictionary.ts'
import type { ServerSeries } from '../../../../core/alerting/state/server-series.ts'
import { FIRING, FLAG_NO_DATA, PENDING } from '../../../../core/alerting/state/state-table.ts'
import type { ServerAlerting } from './shard-messages.ts'

const instant = (ms: number): string | null => (Number.isFinite(ms) && ms > 0 ? new Date(ms).toISOString() : null)
const seconds = (ms: number): number => Math.max(0, Math.round(ms / 1000))

const DIGITS_MAX = 15
/** Digits after the point, as 2 of 0.25. */
function decimalsOf(value: number): number {
  const [digits = '', exponent = '0'] = String(value).split('e')
  return Math.max(0, (digits.split('.')[1] ?? '').length - Number(exponent))
}

/** A value as people compare it with a limit: a digit more than that has, and as many as show on which side it is. */
function besideLimit(value: number, limit: number): number {
  for (let digits = decimalsOf(limit) + 1; digits <= DIGITS_MAX; digits++) {
    const shown = Number(value.toFixed(digits))
    if (Math.sign(shown - limit) === Math.sign(value - limit)) return shown
  }
  return value
}

/** The alerting of one server; null when the thread has not seen it. */
export function serverAlerting(evaluation: EvaluationState, serverId: string, nowMs: number): ServerAlerting | null {
  const server = evaluation.servers.find(candidate => candidate?.serverId === serverId)
  if (!server) return null
  const series: SeriesAlerting[] = []
  for (let index = 0; index < server.count; index++)
    for (let row = server.head[index]!; row >= 0; row = evaluation.states.next[row]!)
      series.push(seriesAlerting(evaluation, server, row, nowMs))
  const { state, lastSeenMs, intervalSeconds } = server.presence
  return {
    companyId: server.companyId,
    presence: { state, lastSeenMs, intervalSeconds },
    series,
    rules: rulesWithoutSeries(evaluation, server, new Set(series.map(each => each.rule_id))),
  }
}

function rulesWithoutSeries(
  evaluation: EvaluationState,
  server: ServerSeries,
  covering: ReadonlySet<string>,
): RuleAlerting[] {
  const others: RuleAlerting[] = []
  for (const compiled of evaluation.companyRules(server.companyId).byId.values())
    if (!covering.has(compiled.id))
      others.push({
        rule_id: compiled.id,
        rule_name: compiled.name,
        decision: whyNoSeries(evaluation, server, compiled),
      })
  for (const { rule_id, company_id, reason, message } of evaluation.rules.rejected)
    if (company_id === server.companyId)
      others.push({ rule_id, rule_name: null, decision: `invalid (${reason}): ${message}` })
  return others
}

function whyNoSeries(evaluation: EvaluationState, server: ServerSeries, compiled: CompiledRule): string {
  if (!isInScope(compiled, server.serverId)) return 'the server is not in its scope'
  let count = 0
  let matching = 0
  let nameless = 0
  for (let index = 0; index < server.count; index++) {
    const definition = evaluation.dictionary.get(server.lo(index), server.hi(index))
    if (!definition) nameless++
    if (definition?.metric !== compiled.metric) continue
    count++
    if (matchesLabels(compiled.matchers, labelsOf(definition))) matching++
  }
  if (count === 0 && nameless > 0)
    return `the names of ${nameless} of the server's series are not known here, as after a loss of alerting.rules_dir; ingest tells them again within an hour, and at once when it is restarted`
  if (count === 0) return `the server sends no series of ${compiled.metric}`
  if (matching === 0) return `none of its ${count} series of ${compiled.metric} matches the matchers`
  return `in force since the last sample of its ${matching} series: evaluated from the next one on`
}

function seriesAlerting(evaluation: EvaluationState, server: ServerSeries, row: number, nowMs: number): SeriesAlerting {
  const { states } = evaluation
  const index = states.series[row]!
  const definition = evaluation.dictionary.get(server.lo(index), server.hi(index))
  const rule = evaluation.slots[states.rule[row]!]!.rule
  const phase = states.phase[row]!
  const lastValue = states.lastValue[row]!
  const suppressedBy = evaluation.suppressionOf(server.companyId, server.serverId, [rule.compiled.id], nowMs)
  return {
    rule_id: rule.compiled.id,
    rule_name: rule.compiled.name,
    series_key: definition ? shownKey(definition) : '',
    state: phase === FIRING ? 'firing' : phase === PENDING ? 'pending' : 'ok',
    since:
      phase === FIRING ? instant(states.openedTsMs(row)) : phase === PENDING ? instant(states.sinceTsMs(row)) : null,
    last_value: Number.isFinite(lastValue) ? lastValue : null,
    last_sample_at: instant(states.lastTsMs[row]!),
    flapping: evaluation.flapping.get(row)?.isFlapping === true,
    no_data: (states.flags[row]! & FLAG_NO_DATA) !== 0,
    suppressed_by: suppressedBy,
    decision: [decision(evaluation, row, rule, nowMs), ...circumstances(evaluation, row, rule, nowMs)].join('; '),
  }
}

const SINCE_CHANGE = 'since the rule or its alert has changed: the next sample decides'

/** For how long no sample of the series came; null while that is no silence. */
function silenceMs({ states, settings }: EvaluationState, row: number, nowMs: number): number | null {
  const silentMs = nowMs - states.lastReceivedMs[row]!
  return isSilent(silentMs, settings) ? silentMs : null
}

/** The last decision in words. */
function decision(evaluation: EvaluationState, row: number, rule: EvaluatedRule, nowMs: number): string {
  const { states } = evaluation
  const { compiled } = rule
  const value = states.lastValue[row]!
  const condition = `${besideLimit(value, compiled.threshold)} ${compiled.operator} ${compiled.threshold}`
  const heldMs = states.lastTsMs[row]! - states.sinceTsMs(row)
  if (Number.isNaN(value)) return 'no sample evaluated yet'
  const isViolating = violates(rule.operatorCode, value, rule.threshold)
  if (states.phase[row] === PENDING) {
    if (!isViolating) return `${condition} does not hold ${SINCE_CHANGE}`
    if (heldMs < compiled.forMs) return `${condition} for ${seconds(heldMs)} s of ${seconds(compiled.forMs)} s`
    return `${condition} for ${seconds(heldMs)} s, but the sample was stale: more than ${seconds(rule.staleMs)} s older than the newest of its series; opens with the next one that is not`
  }
  if (states.phase[row] !== FIRING) {
    if (!isViolating) return `${condition} does not hold`
    // A wait and an alert end by silence too; `circumstances` says for how long it lasts.
    return silenceMs(evaluation, row, nowMs) === null
      ? `${condition} holds ${SINCE_CHANGE}`
      : `${condition} held at the last sample, but its series has fallen silent: the next sample decides`
  }
  if ((states.flags[row]! & FLAG_NO_DATA) !== 0) return 'open because the series is silent'
  if (isViolating) return `open: ${condition} holds`
  const { recoverThreshold } = compiled
  if (recoverThreshold !== null && !isRecovered(rule, value, false))
    return `open: ${besideLimit(value, recoverThreshold)} has not passed recover_threshold ${recoverThreshold}`
  if (Number.isNaN(states.sinceTsMs(row))) return `open: ${condition} does not hold ${SINCE_CHANGE}`
  return `open: recovering for ${seconds(heldMs)} s of ${seconds(compiled.recoverForMs)} s`
}

/** Further circumstances that affect whether people are notified. */
function circumstances(evaluation: EvaluationState, row: number, rule: EvaluatedRule, nowMs: number): string[] {
  const { states, settings } = evaluation
  const server = evaluation.servers[states.server[row]!]!
  const words: string[] = []
  const silentMs = silenceMs(evaluation, row, nowMs)
  if (silentMs !== null) {
    const gap = states.phase[row] === PENDING ? ', a gap that begins the wait anew' : ''
    words.push(`no sample for ${seconds(silentMs)} s${gap} (no_data: ${rule.compiled.noData})`)
  }
  if (server.presence.state === 'down') words.push('the agent is lost, which is told by agent.down alone')
  if (evaluation.flapping.get(row)?.isFlapping)
    words.push(
      `flapping: openings, endings and reminders are withheld until ${seconds(settings.flapping.stableMs)} s pass without one`,
    )
  const suppressedBy = evaluation.suppressionOf(server.companyId, server.serverId, [rule.compiled.id], nowMs)
  if (suppressedBy) words.push(`suppressed (${suppressedBy}): events are kept, nobody is notified`)
  return words
}
