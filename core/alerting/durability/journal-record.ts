// What the journal of the evaluation says of one state or one server's presence (see journal.ts).
import type { FlapState } from '../evaluate/flapping.ts'
import type { CompiledRule } from '../rules/rule.ts'
import type { Presence } from '../state/server-series.ts'
import { FIRING } from '../state/state-table.ts'

/** A rule as states need it without its matching: enough to close what it opened. */
export type SavedRule = Omit<CompiledRule, 'matchers' | 'serverIds'>

export type StateRecord = {
  readonly kind: 'state'
  readonly key: string
  readonly companyId: string
  readonly serverId: string
  readonly shard: number
  readonly agentId: string
  readonly seriesKey: string
  readonly rule: SavedRule
  /** null: the state was removed. Columns of the state table in the order of `saveRow`. */
  readonly row: readonly (number | null)[] | null
  /** Of the last event; records of the first program do not have it. */
  readonly lastSeq?: number
  readonly flap: FlapState | null
}

export type PresenceRecord = {
  readonly kind: 'presence'
  readonly key: string
  readonly companyId: string
  readonly serverId: string
  readonly shard: number
  readonly presence: Presence
}

/**
 * The last agent of a server was revoked: nothing of the server is left, and what its agents had on their way does not
 * count.
 */
export type LeftRecord = {
  readonly kind: 'left'
  readonly key: string
  readonly companyId: string
  readonly serverId: string
  readonly shard: number
  readonly agentIds: readonly string[]
  readonly leftAtMs: number
}

export type JournalRecord = StateRecord | PresenceRecord | LeftRecord

/** What a record is about: a later one of the same key replaces it. */
export const journalKey = (record: JournalRecord): string =>
  record.kind === 'state'
    ? `${record.serverId}\n${record.rule.id}\n${record.seriesKey}`
    : `${record.serverId}\n${record.kind}`

/** True when the hub holds an open alert because of what the record says: it is kept until a later one ends it. */
export function isOpenRecord(record: JournalRecord): boolean {
  if (record.kind === 'presence') return record.presence.state === 'down'
  return (
    record.kind === 'state' && record.row !== null && (record.row[0] === FIRING || record.flap?.isFlapping === true)
  )
}
