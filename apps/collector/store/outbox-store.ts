// The store of events that wait for the hub: a file (file-evaluation-store.ts) or Redis (redis/redis-outbox.ts); the
// tests of test/contract/ run against both.
import type { AlertEvent } from '../../../core/alerting/evaluate/event.ts'

export type Soon<T> = T | Promise<T>

export type OutboxRow = { readonly id: number; readonly pairKey: string; readonly event: AlertEvent }

/** An alert key, or a whole company, whose events wait apart from the others. */
export type SetAsideKey = { readonly pairKey: string } | { readonly companyId: string }
/** Events of these alert keys and companies are left out. */
export type Skipped = { readonly pairKeys: readonly string[]; readonly companyIds: readonly string[] }

export interface OutboxStore {
  /** The oldest events that this process sends; those of one server in the order in which they were made. */
  nextEvents(limit: number, skipped?: Skipped): Soon<OutboxRow[]>
  /** The oldest event of an alert key or a company, if one waits. */
  oldestEventOf(key: SetAsideKey): Soon<OutboxRow | null>
  /** Removes events that the hub has accepted, or will never accept. */
  removeEvents(ids: readonly number[]): Soon<void>
  /**
   * Trims the outbox to its bound: the oldest reminders are removed first, then the oldest events. Returns the number
   * removed.
   */
  trimOutbox(eventsMax: number): Soon<number>
  /** The number of waiting events that this process sends. */
  outboxDepth(): number
  /** The time at which the oldest of them was made, ms; null when none waits. */
  oldestEventMs(): number | null
  /** Removes the events and open alerts of a purged company, or of one of its servers. */
  removeEventsOf(companyId: string, serverId: string | null): Soon<void>
}
