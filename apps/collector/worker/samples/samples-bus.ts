// The bus as the samples thread reads it: all of it on one host; over Redis the partitions that the worker has the
// leases of.
import { randomUUID } from 'node:crypto'
import { limits } from '../../../../core/limits.ts'
import type { Tombstone } from '../../../../core/retention/tombstone.ts'
import type { BusReader } from '../../bus/bus.ts'
import { FileBusReader } from '../../bus/file-bus-reader.ts'
import { storedBeforeMs } from '../../bus/redis-bus.ts'
import { RedisBusReader } from '../../bus/redis-bus-reader.ts'
import type { Exclusively } from '../../store/clickhouse/samples-schema.ts'
import { readTombstones } from '../../store/redis/redis-announcements.ts'
import { openRedis, whenReady } from '../../store/redis/redis-client.ts'
import { redisKeys } from '../../store/redis/redis-keys.ts'
import { underLock } from '../../store/redis/redis-lock.ts'
import type { SampleHold, SamplesThreadOptions } from './samples-messages.ts'

/** Every read of a partition is a call: with more in each, there are fewer. A query sees a sample so much later. */
const REDIS_POLL_MS = 250
const FILE_POLL_MS = 100
/** Where it is told of new entries the writer only looks what has waited its time. */
const WOKEN_POLL_MS = 500

type SamplesBusEvents = {
  readonly onNews: () => void
  readonly onTrouble: (cause: string) => void
  readonly onRecovered: () => void
}

type OpenSamplesBus = {
  readonly reader: BusReader
  /**
   * The prefix of insert tokens. Positions start again when Redis lost them, or when an older copy of the bus was
   * restored beside a newer store, and a new block must not be taken for a stored one. So the prefix is new at each
   * start; samples that are then read again are deduplicated by series and time.
   */
  readonly tokenPrefix: () => string
  /**
   * True when no other worker stores samples: then a stop drains the bus, and the cells and newest values in this
   * process are complete.
   */
  readonly isOnlyWorker: boolean
  /** How long, and for how many bytes of the bus, samples may be buffered before they are stored. */
  readonly hold: SampleHold
  /** How often the writer reads, or stores what has waited, without a wake-up. */
  readonly pollMs: number
  /**
   * Everything received before this instant is stored, by whichever worker; null where this one stores everything, and
   * so knows it by itself.
   */
  readonly arrivedBeforeMs: (() => Promise<number>) | null
  /** What was purged as of now, as all workers know it; null where this one is told of every purge. */
  readonly readTombstones: (() => Promise<readonly Tombstone[]>) | null
  /** Of the workers that share the bus one at a time. */
  readonly exclusively: Exclusively
  setPartitions(partitions: readonly number[]): void
  close(): Promise<void>
}

export function openSamplesBus(options: SamplesThreadOptions, events: SamplesBusEvents): OpenSamplesBus {
  const { bus, consumers } = options
  if (bus.kind === 'file') {
    const reader = new FileBusReader(bus.path, consumers)
    const run = randomUUID()
    return {
      reader,
      tokenPrefix: () => `${run}/`,
      isOnlyWorker: true,
      hold: bus.hold,
      pollMs: bus.isWoken ? WOKEN_POLL_MS : FILE_POLL_MS,
      arrivedBeforeMs: null,
      readTombstones: null,
      exclusively: work => work(() => {}),
      setPartitions: () => {},
      close: () => reader.close(),
    }
  }
  let epoch = randomUUID()
  const redis = openRedis({
    address: bus.address,
    name: 'collector-worker-samples',
    onTrouble: events.onTrouble,
    onRecovered: () => {
      epoch = randomUUID()
      events.onRecovered()
    },
  })
  const keys = redisKeys(bus.prefix)
  const reader = new RedisBusReader(redis, keys, REDIS_POLL_MS, partition => {
    if (reader.partitions.includes(partition)) events.onNews()
  })
  return {
    reader,
    tokenPrefix: () => `${epoch}/`,
    isOnlyWorker: false,
    hold: {
      ms: bus.hold.ms,
      // What is held counts against the bound that all share.
      get bytes() {
        return (bus.hold.bytes * Math.max(1, reader.partitions.length)) / limits.stateShards
      },
    },
    pollMs: WOKEN_POLL_MS,
    arrivedBeforeMs: () => storedBeforeMs(redis, keys),
    readTombstones: () => readTombstones(redis, keys, Date.now()),
    exclusively: async work => {
      // The first thing that a start asks of this connection, which may not be there yet.
      await whenReady(redis)
      await underLock(redis, keys.samplesSchema, work)
    },
    setPartitions: partitions => {
      for (const partition of reader.partitions) if (!partitions.includes(partition)) reader.forget(partition)
      reader.partitions = partitions
    },
    close: async () => {
      await reader.close()
      redis.disconnect()
    },
  }
}
