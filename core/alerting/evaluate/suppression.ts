// Whether people are notified of an event (document 2 "Suppression"): decommissioned takes precedence over maintenance,
// and maintenance over a silence. Evaluation continues under suppression; the event only carries the reason.

import { isObject } from '../../json-object.ts'
import { limits } from '../../limits.ts'
import type { UncheckedRecord } from '../../sync/feed.ts'
import type { SuppressReason } from './event.ts'

/** A silence of the feed (document 1 "Silence sync envelope"). resolved_server_ids may be in `scope` or beside it. */
export type RawSilence = {
  readonly id: string
  readonly company_id: string
  readonly sync_version: number
  readonly scope: {
    readonly all?: boolean
    readonly server_ids?: readonly string[]
    readonly resolved_server_ids?: readonly string[]
  }
  readonly resolved_server_ids?: readonly string[]
  /** Absent or empty: all rules (decision G-178). */
  readonly rule_ids?: readonly string[]
  readonly starts_at: string
  readonly ends_at: string
  readonly reason?: string
  readonly deleted?: boolean
}

/** A silence of the feed that was not validated: apart from id and sync_version its fields can be anything. */
export type SilenceRecord = UncheckedRecord

type Silence = {
  readonly id: string
  readonly companyId: string
  readonly all: boolean
  readonly serverIds: ReadonlySet<string>
  /** The rules whose events it covers; null: all, and events of no rule. */
  readonly ruleIds: ReadonlySet<string> | null
  readonly startsAtMs: number
  /** The silence no longer holds at this instant. */
  readonly endsAtMs: number
}

export type SilenceSet = { readonly byCompany: ReadonlyMap<string, readonly Silence[]>; readonly loaded: number }

export const emptySilenceSet: SilenceSet = { byCompany: new Map(), loaded: 0 }

const isListOrAbsent = (value: unknown): boolean => value === undefined || value === null || Array.isArray(value)

/** Whether a record has the shape of the feed's: it came from outside and is unchecked. */
const isReadable = (record: SilenceRecord): record is SilenceRecord & RawSilence => {
  const { company_id, scope, resolved_server_ids, rule_ids, starts_at, ends_at } = record
  return (
    typeof company_id === 'string' &&
    typeof starts_at === 'string' &&
    typeof ends_at === 'string' &&
    isObject(scope) &&
    isListOrAbsent(scope.server_ids) &&
    isListOrAbsent(scope.resolved_server_ids) &&
    isListOrAbsent(resolved_server_ids) &&
    isListOrAbsent(rule_ids)
  )
}

/**
 * Compiles the records of the feed. A malformed record is left out, since a guess at it could silence nothing or
 * everything.
 */
export function compileSilences(records: Iterable<SilenceRecord>): SilenceSet {
  const byCompany = new Map<string, Silence[]>()
  let loaded = 0
  for (const raw of records) {
    if (!isReadable(raw)) continue
    const startsAtMs = Date.parse(raw.starts_at)
    const endsAtMs = Date.parse(raw.ends_at)
    if (!(endsAtMs > startsAtMs)) continue
    const silence: Silence = {
      id: raw.id,
      companyId: raw.company_id,
      all: raw.scope.all === true,
      serverIds: new Set([
        ...(raw.scope.server_ids ?? []),
        ...(raw.scope.resolved_server_ids ?? []),
        ...(raw.resolved_server_ids ?? []),
      ]),
      ruleIds: raw.rule_ids?.length ? new Set(raw.rule_ids) : null,
      startsAtMs,
      endsAtMs,
    }
    loaded++
    const ofCompany = byCompany.get(silence.companyId)
    if (ofCompany) ofCompany.push(silence)
    else byCompany.set(silence.companyId, [silence])
  }
  return { byCompany, loaded }
}

/**
 * True from a day after the silence's end on: no event can arrive late enough to fall into it (document 2
 * "Suppression").
 */
export function isSilenceForgotten(raw: Pick<RawSilence, 'ends_at'>, nowMs: number): boolean {
  return nowMs - Date.parse(raw.ends_at) > limits.silenceKeepMs
}

/** The number of silences that hold at `atMs`. */
export function activeSilences(set: SilenceSet, atMs: number): number {
  let active = 0
  for (const ofCompany of set.byCompany.values())
    for (const silence of ofCompany) if (atMs >= silence.startsAtMs && atMs < silence.endsAtMs) active++
  return active
}

/**
 * Why an event of this server at `occurredAtMs` is suppressed; null when it is not. `serverStatus` is the server's
 * present status. `ruleIds` are the rules that the event counts for: none for group events, which no silence of single
 * rules covers (decision G-178).
 */
export function suppressReason(
  silences: SilenceSet,
  companyId: string,
  serverId: string,
  ruleIds: readonly string[],
  serverStatus: string,
  occurredAtMs: number,
): SuppressReason | null {
  if (serverStatus === 'decommissioned' || serverStatus === 'maintenance') return serverStatus
  for (const silence of silences.byCompany.get(companyId) ?? []) {
    if (occurredAtMs < silence.startsAtMs || occurredAtMs >= silence.endsAtMs) continue
    if (!silence.all && !silence.serverIds.has(serverId)) continue
    if (silence.ruleIds === null || ruleIds.some(id => silence.ruleIds?.has(id))) return 'silence'
  }
  return null
}
