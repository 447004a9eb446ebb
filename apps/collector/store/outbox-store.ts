// The store of events that wait for the hub: a file (file-evaluation-store.ts) or Redis (redis/redis-outbox.ts); the
// tests of test/contract/ run against both.
import type { AlertEvent } from '../../../core/alerting/evaluate/event.ts'

export type Soon<T> = T | Promise<T>

export type OutboxRow = { readonly id: number; readonly pairKey: string; readonly event: AlertEvent }

export interface OutboxStore {
  /** The oldest events that this process sends; those of one server in the order in which they were made. */
  nextEvents(limit: number): Soon<OutboxRow[]>
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
