// Opens the storage of a worker process, by bus.kind: the files of data_dir, or Redis (decisions G-142 and G-144).
import { join } from 'node:path'
import type { Logger } from 'pino'
import { pollFaults } from '../../bus/redis-bus-reader.ts'
import { collectorPaths, DISK_POLL_MS, redisAddressOf, type WorkerConfig } from '../../config.ts'
import {
  FileHeartbeats,
  type HeartbeatBoard,
  heartbeatMaxAgeMs,
  RedisHeartbeats,
} from '../../store/process-heartbeats.ts'
import { lockFile } from '../../store/process-lock.ts'
import type { RedisAddress } from '../../store/redis/redis-address.ts'
import {
  isOfSentinels,
  openRedis,
  readWhenReady,
  throwRightsFault,
  toldTo,
  whenReady,
} from '../../store/redis/redis-client.ts'
import { redisKeys } from '../../store/redis/redis-keys.ts'
import { RedisRegistryStore } from '../../store/redis/redis-registry-store.ts'
import { durabilityFaults, logRedisFaults } from '../../store/redis/redis-setup-faults.ts'
import { RegistryStore } from '../../store/registry/file-registry-store.ts'
import type { RegistryBacking } from '../../store/registry/registry.ts'
import type { ReloadAgentFeeds } from '../reload-calls.ts'
import { sampleHold } from './bus-room.ts'
import { FileWorkerStorage } from './file-storage.ts'
import { RedisWorkerStorage } from './redis-storage.ts'
import type { WorkerStorage } from './worker-storage.ts'

/** The longest interval at which changes of other processes to the registry in Redis are polled. */
const REDIS_POLL_MS = 500

export type OpenedStorage = {
  readonly storage: WorkerStorage
  readonly registry: RegistryBacking
  readonly reloadAgentFeeds: ReloadAgentFeeds
  /** Resolves once ingest has had the time to read a change; in Redis redis.cache_ttl bounds that. */
  readonly untilIngestPolled: () => Promise<void>
  readonly isReady: () => boolean
  /** For heartbeats. */
  readonly heartbeats: HeartbeatBoard
  readonly pollMs: number
  /** Fetches the changes of other processes to the registry. */
  poll(): Promise<void>
  /** Releases the files after everything has ended: another worker may take them over now. */
  release(): void
}

/** Resolves once Redis answers; until then the log says so. */
export async function openWorkerStorage(config: WorkerConfig, log: Logger): Promise<OpenedStorage> {
  const address = redisAddressOf(config)
  return config['bus.kind'] === 'redis' && address !== null
    ? openOnRedis(config, address, log)
    : openOnDisk(config, log)
}

function openOnDisk(config: WorkerConfig, log: Logger): OpenedStorage {
  // Two workers on the same files would both evaluate all shards.
  const lock = lockFile(join(config.data_dir, 'worker.lock'), 'collector-worker')
  const registry = new RegistryStore(collectorPaths(config.data_dir).registry)
  return {
    storage: new FileWorkerStorage({ config, log, nowMs: Date.now }),
    registry,
    // Ingest is another process: it sees the raised counter at its next poll.
    reloadAgentFeeds: {
      checks: async () => {
        registry.raiseReload('checks')
        return 'applied'
      },
    },
    untilIngestPolled: () => Bun.sleep(2 * DISK_POLL_MS),
    isReady: () => true,
    heartbeats: new FileHeartbeats({
      directory: collectorPaths(config.data_dir).heartbeats,
      role: 'worker',
      maxAgeMs: heartbeatMaxAgeMs(config),
      nowMs: Date.now,
    }),
    pollMs: DISK_POLL_MS,
    poll: async () => {},
    release: lock.release,
  }
}

async function openOnRedis(config: WorkerConfig, address: RedisAddress, log: Logger): Promise<OpenedStorage> {
  const redis = openRedis({ address, name: 'collector-worker', ...toldTo(log) })
  await whenReady(redis)
  if (config['clickhouse.url']?.startsWith('embedded:') ?? true)
    log.warn('samples are kept in this process: a second worker needs a ClickHouse server that both use')
  const keys = redisKeys(config['redis.prefix'])
  const faults = async () => [
    ...(await durabilityFaults(redis, keys, isOfSentinels(address), config['redis.wait_replicas'])),
    ...(await pollFaults(redis, keys)),
  ]
  logRedisFaults(redis, faults, log)
  const registry = new RedisRegistryStore(redis, keys)
  await readWhenReady(redis, () => registry.poll())
  const storage = await RedisWorkerStorage.open({
    redis,
    keys,
    address,
    replicas: config['redis.wait_replicas'],
    hold: sampleHold(config),
    log,
    nowMs: Date.now,
  })
  return {
    storage,
    registry,
    // Each process sees the counter that a reload call raises, and pulls by itself.
    reloadAgentFeeds: { checks: async () => 'applied' },
    untilIngestPolled: async () => {},
    isReady: () => storage.isReady(),
    heartbeats: new RedisHeartbeats(redis, keys, heartbeatMaxAgeMs(config), Date.now),
    pollMs: Math.max(50, Math.min(REDIS_POLL_MS, config['redis.cache_ttl'] / 2)),
    // While Redis is unreachable its connection logs that; changes of others are fetched afterwards.
    poll: async () => {
      if (redis.status !== 'ready') return
      await registry.poll().catch(error => throwRightsFault(error, config['redis.prefix']))
      // A purge writes its tombstone before it removes the tenant's agents. The tombstone is applied first here too:
      // otherwise the removal of the agents would close their alerts with events.
      if (registry.hasChanges) await storage.pollNow()
    },
    // Over Redis the shards are leased, and there is nothing to release here.
    release: () => {},
  }
}
