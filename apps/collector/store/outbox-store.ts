// Where events wait for the hub: in a file (file-evaluation-store.ts) or in Redis (redis/redis-outbox.ts);
// test/contract/ holds both to this.
import type { AlertEvent } from '../../../core/alerting/evaluate/event.ts'

export type Soon<T> = T | Promise<T>

export type OutboxRow = { readonly id: number; readonly pairKey: string; readonly event: AlertEvent }

export interface OutboxStore {
  /** The oldest events that this process sends; those of one server in the order in which they were made. */
  nextEvents(limit: number): Soon<OutboxRow[]>
  /** Events that the hub has, or will never take. */
  removeEvents(ids: readonly number[]): Soon<void>
  /** At the bound: the oldest reminders go first, then the oldest. Returns how many went. */
  trimOutbox(eventsMax: number): Soon<number>
  /** Events that wait, as far as this process sends them. */
  outboxDepth(): number
  /** When the oldest of them was made, ms; null where there is none. */
  oldestEventMs(): number | null
  /** Events of a purged company, or of one server of it, and its open alerts. */
  removeEventsOf(companyId: string, serverId: string | null): Soon<void>
}
