// The bus between ingest and worker: durable, in order for each server, at least once, bounded (decision G-142). An
// entry is removed when every consumer has passed it. At the bound ingest refuses batches; nothing acknowledged is
// dropped.

/** Consecutive entries of one commit: positions firstPosition … firstPosition + count - 1 of one partition. */
export type BusGroup = {
  readonly partition: number
  readonly firstPosition: number
  readonly count: number
  readonly bytes: Uint8Array
}

/**
 * Why the bus refused an entry: `full` when it is at its bound, `failed` after an error of disk or Redis (logged with
 * its cause).
 */
export type PublishRefusal = 'full' | 'failed'

export type BusStats = {
  /** Entries that at least one consumer has not passed. */
  readonly lagEntries: number
  readonly bytes: number
  /** Receive time of the oldest such entry, or null when there is none. */
  readonly oldestAtMs: number | null
  /** The bus is at its bound (`core/bus/bus-bound.ts`): it takes no entry now. */
  readonly isFull: boolean
}

export interface BusWriter {
  /**
   * Resolves to null once the entry is durable. `serverId` chooses the partition. The entry is copied, so the caller
   * may reuse its memory at once.
   */
  publish(serverId: string, entry: Uint8Array): Promise<PublishRefusal | null>
  /**
   * Publishes consecutive entries, which are kept or refused together; only for a bus of one partition. They are
   * copied, so the caller may reuse their memory at once.
   */
  publishGroup?(bytes: Uint8Array, count: number): Promise<PublishRefusal | null>
  stats(): Promise<BusStats>
  close(): Promise<void>
}

/** Whether batches are taken; at the bound each of them gets 503, and where the state cannot be read too. */
export const isBusWritable = (bus: BusWriter): Promise<boolean> =>
  bus.stats().then(
    ({ isFull }) => !isFull,
    () => false,
  )

export interface BusReader {
  readonly partitions: readonly number[]
  /**
   * Groups after `position` (0 = from the start), in order, about `bytesMax` in all; empty when there is nothing new.
   * Their bytes are as they are until the next read: the memory may be the reader's own.
   */
  read(partition: number, position: number, bytesMax: number): Promise<BusGroup[]>
  /**
   * False where everything that was found of the partition is handed out, and whoever reads it is told of what comes;
   * without it a reader learns that only by asking again.
   */
  hasMore?(partition: number): boolean
  /** The last position published, 0 on an empty bus. */
  lastPosition(partition: number): Promise<number>
  /** The position that `consumer` has passed durably; 0 when it never passed any. */
  passed(consumer: string, partition: number): Promise<number>
  /** Records that `consumer` has passed `position`; entries that all consumers have passed are removed. */
  pass(consumer: string, partition: number, position: number): Promise<void>
  close(): Promise<void>
}

/**
 * Every consumer that must pass an entry before it is removed: the 64 evaluation shards as one, and the sample writer.
 */
export const busConsumers = { evaluation: 'evaluation', samples: 'samples' } as const
