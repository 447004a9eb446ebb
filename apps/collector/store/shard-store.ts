// The durable state of the evaluation of shards: snapshots, the journal since each, series keys, rule changes, and
// events. Kept in files (file-evaluation-store.ts) or in Redis (redis/redis-shard-store.ts); test/contract/ holds both
// to this.
import type { JournalRecord } from '../../../core/alerting/durability/journal-record.ts'
import type { RuleChangeRecord } from '../../../core/alerting/durability/rule-change-record.ts'
import type { AlertEvent } from '../../../core/alerting/evaluate/event.ts'
import type { QuietPresence } from '../../../core/alerting/state/evaluation-state.ts'

/** A journal record with the position on the bus up to which the shard was evaluated when it was made. */
export type PlacedRecord = { readonly position: number; readonly record: JournalRecord }

/** What a worker knows of a shard that it evaluated until then. */
export type KnownShard = {
  /** Its position is the beginning of the bus. */
  readonly snapshot: Uint8Array
  /** The keys that the snapshot needs. */
  readonly keys: readonly string[]
  readonly endedAtMs: number
}

/** A snapshot that is written and synced but not in force yet. */
export type WrittenSnapshot = { readonly publish: () => void; readonly discard: () => void }

export interface ShardStore {
  /** Number of the last journal record of the shards: later ones are greater. */
  readonly journalMark: number
  /**
   * Commits events and the states behind them, as of `position` of the bus. An event that the outbox still holds is not
   * added again.
   */
  commit(events: readonly AlertEvent[], journal: readonly JournalRecord[], position: number, nowMs: number): void
  /**
   * Journal records of a shard that a snapshot at `position` and `mark` does not reflect, in the order they were made.
   */
  journalAfter(shard: number, position: number, mark: number): Iterable<PlacedRecord>
  /** Keys of series that servers of the shard send. */
  keys(shard: number): string[]
  keepKeys(shard: number, keys: readonly string[]): void
  /** Removes keys that no snapshot of the shard needs any more. */
  dropKeys(shard: number, keys: readonly string[]): void
  /** Notes changes of rules as a loop is about to put them in force. */
  keepRules(thread: number, changes: readonly RuleChangeRecord[]): void
  /** The rule changes of a loop, in the order in which they were made. */
  ruleChanges(thread: number): RuleChangeRecord[]
  /**
   * Every snapshot of the loop reflects the rule changes up to `position`, so these are removed. The last change of
   * each rule stays, as if it came before the whole bus.
   */
  passRules(thread: number, position: number): void
  /**
   * The snapshot of a shard at `position` of the bus and `mark` of the journal; the journal that it reflects goes, open
   * alerts excepted.
   */
  saveSnapshot(shard: number, bytes: Uint8Array, position: number, mark: number): void
  /** The bytes of a shard's snapshot, or null when it has none. */
  loadSnapshot(shard: number): Uint8Array | null
  /** Of a store whose medium may be slow: a snapshot is written while the loop goes on, and then put in place. */
  writeSnapshot?(shard: number, bytes: Uint8Array, position: number, mark: number): Promise<WrittenSnapshot>
  /**
   * For a store that writes asynchronously, in order: resolves once everything handed over so far is durable. Rejects
   * when that can never be; the loop must then end, and another one starts from the durable state.
   */
  flushed?(): Promise<void>
  /** Publishes presence for other processes (decision G-182); a store of a single process does not have it. */
  keepPresence?(changes: readonly QuietPresence[]): void
}
