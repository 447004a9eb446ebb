// When the bus takes no more batches, and ingest answers 503 (decision G-142): too many bytes wait on it, the oldest
// waits too long, or the disk below it is nearly full. Over Redis the script that publishes asks the same of bytes and
// age (`redis-bus.ts`), since it must be decided in one step with what it guards.

export type BusBound = {
  /** Bytes and age of what at least one consumer has not passed. */
  readonly bytesMax: number
  readonly ageMaxMs: number
}

/** What waits on the bus. */
type BusFill = {
  readonly bytes: number
  /** Receive time of the oldest entry; null when there is none. */
  readonly oldestAtMs: number | null
}

/** With less free disk than this the bus refuses entries, so that it does not fail in the middle of a write. */
const FREE_BYTES_MIN = 64 * 1024 * 1024

export const isBusFull = ({ bytes, oldestAtMs }: BusFill, { bytesMax, ageMaxMs }: BusBound, nowMs: number): boolean =>
  bytes >= bytesMax || (oldestAtMs !== null && nowMs - oldestAtMs > ageMaxMs)

export const isDiskFull = (freeBytes: number): boolean => freeBytes < FREE_BYTES_MIN
