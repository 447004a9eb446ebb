// What the journal of the evaluation says of one state or one machine's presence (see journal.ts).
import type { FlapState } from './flapping.ts'
import type { CompiledRule } from './rule.ts'
import type { Presence } from './server-series.ts'

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

/** The last agent of a machine was revoked: nothing of the machine is left, and what its agents had on their way does not count. */
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
