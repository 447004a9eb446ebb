// The bus between ingest and worker: durable, ordered a server, at least once, bounded (decision G-142). An entry
// leaves it when every consumer has passed it; at the bound ingest refuses, and nothing acknowledged is dropped.

/** Some entries one after another: positions firstPosition … firstPosition + count - 1 of one partition. */
export type BusGroup = {
  readonly partition: number
  readonly firstPosition: number
  readonly count: number
  readonly bytes: Uint8Array
}

/** Why an entry could not be taken: `full` is the bound, `failed` an error of the medium (logged with its cause). */
export type PublishRefusal = 'full' | 'failed'

export type BusStats = {
  /** Entries that at least one consumer has not passed. */
  readonly lagEntries: number
  readonly bytes: number
  /** Receive time of the oldest such entry, or null when there is none. */
  readonly oldestAtMs: number | null
}

export interface BusWriter {
  /**
   * Resolves to null once the entry is durable. `serverId` chooses the partition. The entry's memory is the caller's
   * again at once.
   */
  publish(serverId: string, entry: Uint8Array): Promise<PublishRefusal | null>
  /**
   * Entries one after another, kept or refused together; for a bus of one partition. Their memory is the caller's again
   * at once.
   */
  publishGroup?(bytes: Uint8Array, count: number): Promise<PublishRefusal | null>
  stats(): Promise<BusStats>
  close(): Promise<void>
}

export interface BusReader {
  readonly partitions: readonly number[]
  /**
   * Groups after `position` (0 = from the start), in order, about `bytesMax` together; empty when there is nothing new.
   */
  read(partition: number, position: number, bytesMax: number): Promise<BusGroup[]>
  /** The last position published, 0 on an empty bus. */
  lastPosition(partition: number): Promise<number>
  /** The position that `consumer` has passed for good, 0 when it never did. */
  passed(consumer: string, partition: number): Promise<number>
  /** Notes that `consumer` has passed `position`; entries that all consumers passed are removed. */
  pass(consumer: string, partition: number, position: number): Promise<void>
  close(): Promise<void>
}

/**
 * Every consumer that must pass an entry before it is removed: the 64 evaluation shards as one, and the sample writer.
 */
export const busConsumers = { evaluation: 'evaluation', samples: 'samples' } as const
