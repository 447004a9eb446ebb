// A feed of the hub: pulled page by page from cursor `since` on, and applied as a whole (document 2 "Rule sync on the
// collector"; document 1 "Rule sync envelope"): an error in between keeps the old set and the old cursor.
import type { Unchecked } from '../json-object.ts'
import { mustFetchAllAnew } from './fetch-all-anew.ts'

/** The fields that every record of a feed has. */
export type FeedRecord = { readonly id: string; readonly sync_version: number }

/** A record as the hub sent it: its other fields were not validated and can be anything. */
export type UncheckedRecord = FeedRecord & Unchecked

/** The set of records as last pulled, and the cursor to continue from. `syncedAtMs` 0 = never pulled. */
export type FeedState<R extends FeedRecord> = {
  readonly since: number
  readonly records: ReadonlyMap<string, R>
  readonly syncedAtMs: number
}

export const emptyFeed = <R extends FeedRecord>(): FeedState<R> => ({ since: 0, records: new Map(), syncedAtMs: 0 })

/** The cursor for the next pull, and whether that pull replaces the whole set. */
export function feedStart(state: FeedState<FeedRecord>, nowMs: number): { since: number; isReplacing: boolean } {
  return mustFetchAllAnew(state.syncedAtMs, nowMs)
    ? { since: 0, isReplacing: true }
    : { since: state.since, isReplacing: false }
}

/**
 * Applies all pages of one pull. A record for which `isGone` is true, such as a tombstone, removes the record with its
 * id.
 */
export function applyFeed<R extends FeedRecord>(
  state: FeedState<R>,
  pulled: { readonly records: readonly R[]; readonly nextSince: number; readonly isReplacing: boolean },
  isGone: (record: R) => boolean,
  nowMs: number,
): FeedState<R> {
  const records = new Map(pulled.isReplacing ? [] : state.records)
  for (const record of pulled.records) {
    const held = records.get(record.id)
    if (held && held.sync_version > record.sync_version) continue
    if (isGone(record)) records.delete(record.id)
    else records.set(record.id, record)
  }
  return { since: pulled.nextSince, records, syncedAtMs: nowMs }
}

/** The set without expired records; the same object when none has expired. */
export function dropExpired<R extends FeedRecord>(
  state: FeedState<R>,
  isExpired: (record: R) => boolean,
): FeedState<R> {
  const records = new Map([...state.records].filter(([, record]) => !isExpired(record)))
  return records.size === state.records.size ? state : { ...state, records }
}
