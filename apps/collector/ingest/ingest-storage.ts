// Where an ingest process has its bus and its registry: on the disk of its host, beside the worker, or in Redis with
// the other processes of its collector (decisions G-142 and G-144). main.ts chooses by bus.kind.
import pTimeout from 'p-timeout'
import type { Logger } from 'pino'
import type { BusWriter } from '../bus/bus.ts'
import { GROUP_WAIT_MS, REDIS_GROUP_WAIT_MS } from '../bus/commit-pace.ts'
import { FileBusWriter } from '../bus/file-bus-writer.ts'
import { RedisBusWriter } from '../bus/redis-bus.ts'
import { ThreadBus } from '../bus/thread-bus.ts'
import { collectorPaths, DISK_POLL_MS, type IngestConfig, redisAddressOf } from '../config.ts'
import { FileHeartbeats, type HeartbeatBoard, heartbeatMaxAgeMs, RedisHeartbeats } from '../store/process-heartbeats.ts'
import type { RedisAddress } from '../store/redis/redis-address.ts'
import { RedisShared } from '../store/redis/redis-announcements.ts'
import { isOfSentinels, openRedis, throwRightsFault, toldTo, whenReady } from '../store/redis/redis-client.ts'
import { redisKeys } from '../store/redis/redis-keys.ts'
import { RedisRegistryStore } from '../store/redis/redis-registry-store.ts'
import { durabilityFaults, logRedisFaults } from '../store/redis/redis-setup-faults.ts'
import { RegistryStore } from '../store/registry/file-registry-store.ts'
import type { RegistryBacking } from '../store/registry/registry.ts'
import type { CollectorMetrics } from '../telemetry.ts'

/**
 * How often what other processes wrote to Redis (pushes, revocations, purges, reload calls) is looked for, at least.
 */
const REDIS_POLL_MS = 500
/** How long a start waits for Redis; after that ingest serves without it and answers 503. */
const REDIS_WAIT_MS = 2_000

export type IngestStorage = {
  readonly registry: RegistryBacking
  readonly bus: BusWriter
  /** The board over which processes share their heartbeats. */
  readonly heartbeats: HeartbeatBoard
  readonly pollMs: number
  /** Fetches what other processes wrote. Resolves to true when checks are to be pulled. */
  poll(): Promise<boolean>
  close(): Promise<void>
}

/** The thread of a bus on disk, where listeners have threads of their own; null where the caller's thread writes it. */
type BusThread = { readonly url: URL | string; readonly onFailure: (error: Error) => void }

export function openIngestStorage(
  config: IngestConfig,
  log: Logger,
  metrics: Pick<CollectorMetrics, 'busLost'>,
  busThread: BusThread | null,
): Promise<IngestStorage> {
  const address = redisAddressOf(config)
  return config['bus.kind'] === 'redis' && address !== null
    ? openOnRedis(config, address, log, metrics)
    : openOnDisk(config, log, busThread)
}

async function openBus(config: IngestConfig, log: Logger, thread: BusThread | null): Promise<BusWriter> {
  const options = {
    path: collectorPaths(config.data_dir).bus,
    bytesMax: config['bus.max_bytes'],
    ageMaxMs: config['bus.max_age'],
    groupWaitMs: GROUP_WAIT_MS,
  }
  const onPublished = () => {}
  const said = 'cannot write to the bus; agents keep their batches'
  if (!thread) {
    const onError = (error: unknown) => log.error({ err: error }, said)
    return new FileBusWriter({ ...options, nowMs: Date.now, onPublished, onError })
  }
  const onError = (cause: unknown) => log.error({ cause }, said)
  return ThreadBus.open({ threadUrl: thread.url, options, onPublished, onError, onFailure: thread.onFailure })
}

async function openOnDisk(config: IngestConfig, log: Logger, busThread: BusThread | null): Promise<IngestStorage> {
  const registry = new RegistryStore(collectorPaths(config.data_dir).registry)
  const bus = await openBus(config, log, busThread)
  let reloads = registry.reloadCount('checks')
  return {
    registry,
    bus,
    heartbeats: new FileHeartbeats({
      directory: collectorPaths(config.data_dir).heartbeats,
      role: 'ingest',
      maxAgeMs: heartbeatMaxAgeMs(config),
      nowMs: Date.now,
    }),
    pollMs: DISK_POLL_MS,
    poll: async () => {
      const before = reloads
      reloads = registry.reloadCount('checks')
      return reloads !== before
    },
    close: () => bus.close(),
  }
}

async function openOnRedis(
  config: IngestConfig,
  address: RedisAddress,
  log: Logger,
  metrics: Pick<CollectorMetrics, 'busLost'>,
): Promise<IngestStorage> {
  const redis = openRedis({ address, name: 'collector-ingest', ...toldTo(log) })
  const keys = redisKeys(config['redis.prefix'])
  await pTimeout(whenReady(redis), { milliseconds: REDIS_WAIT_MS, fallback: () => {} })
  logRedisFaults(redis, () => durabilityFaults(redis, keys, isOfSentinels(address), config['redis.wait_replicas']), log)
  const registry = new RedisRegistryStore(redis, keys)
  const shared = new RedisShared(redis, keys, Date.now)
  const bus = new RedisBusWriter({
    redis,
    keys,
    bytesMax: config['bus.max_bytes'],
    ageMaxMs: config['bus.max_age'],
    groupWaitMs: REDIS_GROUP_WAIT_MS,
    replicas: config['redis.wait_replicas'],
    onError: cause => log.error({ cause }, 'cannot write to the bus; agents keep their batches'),
    onLost: batches => {
      log.error({ batches }, 'Redis came back without batches that were acknowledged: what was not read yet is lost')
      metrics.busLost.inc(batches)
    },
  })
  const poll = async (): Promise<boolean> => {
    // While Redis is unreachable its connection logs that; changes of others are found afterwards.
    if (redis.status !== 'ready') return false
    try {
      await registry.poll()
      return (await shared.poll()).reloads.includes('checks')
    } catch (error) {
      return throwRightsFault(error, config['redis.prefix'])
    }
  }
  // What it meets is told by the polls that follow.
  await poll().catch(() => {})
  return {
    registry,
    bus,
    heartbeats: new RedisHeartbeats(redis, keys, heartbeatMaxAgeMs(config), Date.now),
    pollMs: Math.max(50, Math.min(REDIS_POLL_MS, config['redis.cache_ttl'] / 2)),
    poll,
    close: async () => {
      await bus.close()
      await registry.flushed().catch(() => {})
      redis.disconnect()
    },
  }
}
