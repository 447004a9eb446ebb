// Workers over one Redis in this process, on a clock that the test moves, with a scripted hub; batches are put on the
// bus directly.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import pino from 'pino'
import { RedisBusWriter, readHeads } from '../../apps/collector/bus/redis-bus.ts'
import { loadCollectorConfig, workerKeys } from '../../apps/collector/config.ts'
import { plainAddress } from '../../apps/collector/store/redis/redis-address.ts'
import { openRedis, whenReady } from '../../apps/collector/store/redis/redis-client.ts'
import { redisKeys } from '../../apps/collector/store/redis/redis-keys.ts'
import { isRecordFault, parseAgentRecord } from '../../apps/collector/store/registry/agent-record-faults.ts'
import { AgentRegistry } from '../../apps/collector/store/registry/registry.ts'
import { createCollectorMetrics } from '../../apps/collector/telemetry.ts'
import { openWorkerStorage } from '../../apps/collector/worker/storage/open-storage.ts'
import { type RunningWorker, startWorker } from '../../apps/collector/worker/worker.ts'
import { clientOf, hubToken, ScriptedHub } from '../ingest/scripted-hub.ts'
import { bundledThread } from '../support/bundled-thread.ts'
import { entryOf, freshDatabase } from '../support/clickhouse.ts'
import { startClickHouseServer } from '../support/clickhouse-server.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { ownClock } from '../worker/clock.ts'
import { agentOf, type Json, type Server } from './processes.ts'

export const adminToken = 'admin-token-of-the-hub'
const root = join(import.meta.dir, '../..')

export type TestWorker = {
  readonly running: RunningWorker
  readonly logLines: Json[]
  readonly failures: Error[]
  stop(): Promise<void>
}

export class Workers {
  readonly hub = new ScriptedHub()
  readonly clock = ownClock()
  private readonly directory = mkdtempSync(join(tmpdir(), 'svc-redis-workers-'))
  private readonly clickhouse = startClickHouseServer(0)
  private readonly database = freshDatabase()
  private readonly keys = redisKeys('svc:')
  private readonly running = new Set<TestWorker>()
  private readonly servers: Record<string, unknown>[] = []

  private constructor(
    readonly server: TestRedis,
    readonly redis: Redis,
  ) {}

  static async open(): Promise<Workers> {
    const server = await startTestRedis()
    const redis = openRedis({
      address: plainAddress(server.url),
      name: 'test',
      onTrouble: () => {},
      onRecovered: () => {},
    })
    await whenReady(redis)
    return new Workers(server, redis)
  }

  /** Servers as every worker finds them in the agents feed. Before the first worker. */
  addServers(servers: readonly Server[], changes: Record<string, unknown> = {}): void {
    this.servers.push(...servers.map(server => agentOf(server, changes)))
  }

  async start(): Promise<TestWorker> {
    const { config, faults } = loadCollectorConfig(workerKeys, undefined, {
      data_dir: join(this.directory, `worker-${this.running.size}`),
      'bus.kind': 'redis',
      'redis.url': this.server.url,
      'admin.listen': '127.0.0.1:0',
      'admin.token': adminToken,
      'hub.url': this.hub.url,
      'hub.token': hubToken,
      'clickhouse.url': this.clickhouse.url,
      'clickhouse.database': this.database,
      'alerting.presence_sweep': '100ms',
      'alerting.sweep_interval': '100ms',
      'alerting.rules_state_interval': '1s',
      'alerting.flap_transitions': 0,
    })
    if (faults.length > 0) throw new Error(JSON.stringify(faults))
    const logLines: Json[] = []
    const failures: Error[] = []
    const log = pino({ level: 'info' }, { write: (line: string) => void logLines.push(JSON.parse(line)) })
    const opened = await openWorkerStorage(config, log)
    const registry = new AgentRegistry(null)
    const records = this.servers.flatMap(server => {
      const record = parseAgentRecord(server)
      return isRecordFault(record) ? [] : [record]
    })
    registry.apply(records, { since: 1, syncedAtMs: Date.now() })
    const hub = clientOf(this.hub, log, { timeoutMs: 2000 })
    const running = await startWorker({
      config,
      storage: opened.storage,
      role: 'worker',
      version: '0.0.0',
      log,
      metrics: createCollectorMetrics('0.0.0', 'worker'),
      registry,
      hub,
      nowMs: Date.now,
      shardThreadUrl: await bundledThread(new URL('../worker/clocked-shard-thread.ts', import.meta.url)),
      pauseMs: Number.POSITIVE_INFINITY,
      samplesThreadUrl: new URL(join(root, 'apps/collector/worker/samples/samples-thread.ts'), import.meta.url),
      threads: 2,
      reloadAgentFeeds: null,
      checksStatus: null,
      onFailure: error => void failures.push(error),
    })
    const worker: TestWorker = {
      running,
      logLines,
      failures,
      stop: async () => {
        this.running.delete(worker)
        await running.stop()
        if (failures.length > 0) throw new Error('a thread of a worker failed', { cause: failures[0] })
      },
    }
    this.running.add(worker)
    return worker
  }

  /** A writing side with this bound. */
  writer(bytesMax = 1024 ** 3): RedisBusWriter {
    const { redis, keys } = this
    return new RedisBusWriter({ redis, keys, bytesMax, ageMaxMs: 24 * 3_600_000, onError: () => {} })
  }

  /** A sample of every server, now. */
  async send(servers: readonly Server[], value = 1): Promise<void> {
    const writer = this.writer()
    const nowMs = Date.now()
    for (const { companyId, serverId, agentId } of servers) {
      const series = [{ metric: 'swap_used_percent', points: [[nowMs, value]] as const }]
      const from = { agentId, intervalSeconds: 30 }
      const entry = entryOf(companyId, serverId, series, nowMs, from)
      // As an agent does: until it is taken.
      await until('the bus to take a batch', async () => (await writer.publish(serverId, entry)) === null)
    }
  }

  /** Whether every shard is saved up to the end of its partition. */
  async isEvaluated(): Promise<boolean> {
    const passed = await this.redis.hgetall(this.keys.busPassed)
    const heads = await readHeads(this.redis, this.keys)
    return heads.every((head, partition) => head === 0 || Number(passed[`evaluation:${partition}`]) === head)
  }

  /** The events of a server or a company in the order in which they came; the same event again is left out. */
  events(of: (event: Json) => boolean): Json[] {
    const seen = new Set<unknown>()
    return this.hub.taken.filter(event => {
      const isNew = of(event) && !seen.has(event.event_id)
      if (isNew) seen.add(event.event_id)
      return isNew
    })
  }

  typesOf(server: Server): string[] {
    return this.events(event => event.server_id === server.serverId).map(event => String(event.type))
  }

  /** Shards by worker, the smallest number first. */
  async shares(): Promise<string> {
    const leases = Array.from({ length: 64 }, (_, shard) => this.keys.lease(shard))
    const found = await this.server.client.mget(leases)
    const counts = new Map<string, number>()
    for (const value of found) {
      const owner = value?.split(' ')[0]
      if (owner) counts.set(owner, (counts.get(owner) ?? 0) + 1)
    }
    return [...counts.values()].sort((a, b) => a - b).join()
  }

  async close(): Promise<void> {
    for (const worker of [...this.running]) await worker.stop()
    await this.hub.stop()
    this.redis.disconnect()
    await this.clickhouse.stop()
    await this.server.close()
    rmSync(this.directory, { recursive: true, force: true })
  }
}
