// When a collector fetches all records of a feed anew instead of the changes since the last time (decision G-89).

/** The hub keeps what it says of removed records for so long: whoever asks later would keep them. */
const CURSOR_AGE_MAX_MS = 30 * 24 * 3_600_000

/** `syncedAtMs` 0: nothing was fetched yet, and the first pull brings all. */
export const mustFetchAllAnew = (syncedAtMs: number, nowMs: number): boolean =>
  syncedAtMs > 0 && nowMs - syncedAtMs > CURSOR_AGE_MAX_MS
