// Which cycles the agent gives up when its buffer is full, or when its disk is and memory holds them: the oldest.

/** What is kept in memory while the disk takes nothing. */
export const BUFFER_MEMORY_BYTES_MAX = 4 * 1024 * 1024

/**
 * How many of the oldest entries must be deleted so that `incomingBytes` more fit into `bytesMax`. Even deleting all
 * may not be enough.
 */
export function evictionCount(entryBytes: readonly number[], incomingBytes: number, bytesMax: number): number {
  let total = entryBytes.reduce((sum, bytes) => sum + bytes, 0) + incomingBytes
  let count = 0
  while (total > bytesMax && count < entryBytes.length) total -= entryBytes[count++]!
  return count
}
