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
  /** The seq of the state's last event. Records that the first released format wrote lack it. */
  readonly lastSeq?: number
  readonly flap: FlapState | null
}

type PresenceRecord = {
  readonly kind: 'presence'
  readonly key: string
  readonly companyId: string
  readonly serverId: string
  readonly shard: number
  readonly presence: Presence
}

/**
 * The last agent of a server was revoked. Evaluation has dropped all state of the server, and ignores batches of the
 * revoked agents that are still on the bus.
 */
export type RemovedServerRecord = {
  readonly kind: 'left'
  readonly key: string
  readonly companyId: string
  readonly serverId: string
  readonly shard: number
  readonly agentIds: readonly string[]
  readonly leftAtMs: number
}

export type JournalRecord = StateRecord | PresenceRecord | RemovedServerRecord

/** Names what a record describes: a later record with the same key replaces an earlier one. */
export const journalKey = (record: JournalRecord): string =>
  record.kind === 'state'
    ? `${record.serverId}\n${record.rule.id}\n${record.seriesKey}`
    : `${record.serverId}\n${record.kind}`

/**
 * True when the hub has an open alert because of this record. The store then keeps the record until a later one with
 * its key closes the alert.
 */
export function isOpenRecord(record: JournalRecord): boolean {
  if (record.kind === 'presence') return record.presence.state === 'down'
  return (
    record.kind === 'state' && record.row !== null && (record.row[0] === FIRING || record.flap?.isFlapping === true)
  )
}
