// GET /servers/{server_id}/alerting: why each rule of the company fires or does not fire on a server.
import type { SuppressReason } from '../alerting/evaluate/event.ts'
import { isObject } from '../json-object.ts'
import { dataOf } from './envelope.ts'

export const alertingPath = (companyId: string, serverId: string): string =>
  `/servers/${serverId}/alerting?company_id=${companyId}`

const ruleStates = ['ok', 'pending', 'firing'] as const
const suppressReasons = ['maintenance', 'silence', 'decommissioned'] as const satisfies readonly SuppressReason[]

/** Why a rule did or did not fire on one series. */
export type SeriesAlerting = {
  readonly rule_id: string
  readonly rule_name: string
  readonly series_key: string
  readonly state: (typeof ruleStates)[number]
  readonly since: string | null
  readonly last_value: number | null
  readonly last_sample_at: string | null
  readonly flapping: boolean
  readonly no_data: boolean
  /** Why people would not be notified of an event now; null = they would be. */
  readonly suppressed_by: SuppressReason | null
  /** In words. */
  readonly decision: string
}

/** Why a rule of the company covers no series of the server. The name is null for an invalid rule. */
export type RuleAlerting = { readonly rule_id: string; readonly rule_name: string | null; readonly decision: string }

/** What of an answer the hub's pages show. */
export type AlertingResponse = { readonly series: readonly SeriesAlerting[]; readonly rules: readonly RuleAlerting[] }

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null)

function toSeries(raw: unknown): SeriesAlerting[] {
  if (!isObject(raw)) return []
  const state = ruleStates.find(known => known === raw.state)
  const { rule_id, series_key, decision } = raw
  if (!state || typeof rule_id !== 'string' || typeof series_key !== 'string' || typeof decision !== 'string') return []
  return [
    {
      rule_id,
      rule_name: textOrNull(raw.rule_name) ?? '',
      series_key,
      state,
      since: textOrNull(raw.since),
      last_value: typeof raw.last_value === 'number' ? raw.last_value : null,
      last_sample_at: textOrNull(raw.last_sample_at),
      flapping: raw.flapping === true,
      no_data: raw.no_data === true,
      suppressed_by: suppressReasons.find(known => known === raw.suppressed_by) ?? null,
      decision,
    },
  ]
}

function toRule(raw: unknown): RuleAlerting[] {
  if (!isObject(raw) || typeof raw.rule_id !== 'string' || typeof raw.decision !== 'string') return []
  return [{ rule_id: raw.rule_id, rule_name: textOrNull(raw.rule_name), decision: raw.decision }]
}

/** What a response says of rules, malformed items left out; null when the response is malformed. */
export function parseAlerting(body: unknown): AlertingResponse | null {
  const data = dataOf(body)
  if (!data || !Array.isArray(data.series) || !Array.isArray(data.rules)) return null
  return { series: data.series.flatMap(toSeries), rules: data.rules.flatMap(toRule) }
}
