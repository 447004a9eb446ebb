// Where workers are killed: the executable worker alone on its files, or two of them over a real Redis and a ClickHouse
// server. Batches are put on the bus directly, as ingest does.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileBusWriter } from '../../apps/collector/bus/file-bus-writer.ts'
import { RedisBusWriter } from '../../apps/collector/bus/redis-bus.ts'
import { collectorPaths } from '../../apps/collector/config.ts'
import { plainAddress } from '../../apps/collector/store/redis/redis-address.ts'
import { openRedis, whenReady } from '../../apps/collector/store/redis/redis-client.ts'
import { redisKeys } from '../../apps/collector/store/redis/redis-keys.ts'
import type { RawRule } from '../../core/alerting/rules/rule.ts'
import { hubToken, id, ScriptedHub } from '../ingest/scripted-hub.ts'
import { freshDatabase } from '../support/clickhouse.ts'
import { startClickHouseServer } from '../support/clickhouse-server.ts'
import { startTestRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const ADMIN_TOKEN = 'admin-token-of-the-hub'
/** A long run is one of low priority on a host that has other work. */
export const START_MAX_MS = 1_800_000
const BUS_BOUNDS = { bytesMax: 1024 ** 3, ageMaxMs: 86_400_000 }

export type KillSite = {
  readonly hub: ScriptedHub
  /** So many workers stand over it at once. */
  readonly workers: number
  /** Throws when the bus does not take it. */
  readonly publish: (serverId: string, entry: Uint8Array) => Promise<void>
  /** The rules are kept: a worker that starts from now on evaluates every sample under them. */
  readonly hasRules: () => Promise<boolean>
  /** Starts the worker of a storage, 0 to `workers` - 1. */
  readonly spawn: (slot: number) => KillWorker
  /** How often shards were taken over; 0 where none are. */
  readonly takeovers: () => Promise<number>
  readonly close: () => Promise<void>
}

/** What differs between the two kinds of sites. */
type Bus = {
  readonly publish: (serverId: string, entry: Uint8Array) => Promise<string | null>
  readonly hasRules: () => Promise<boolean>
  readonly takeovers: () => Promise<number>
  readonly close: () => Promise<void>
  /** Lines of the workers' configuration. */
  readonly lines: readonly string[]
}

export class KillWorker {
  constructor(
    private readonly child: Bun.Subprocess,
    private readonly readyFile: string,
  ) {}

  get isReady(): boolean {
    return existsSync(this.readyFile)
  }

  async ready(): Promise<void> {
    await until('a worker', () => this.isReady || this.child.exitCode !== null, START_MAX_MS)
    this.mustLive()
  }

  private mustLive(): void {
    if (this.child.exitCode !== null) throw new Error(`a worker ended by itself with ${this.child.exitCode}`)
  }

  async kill(): Promise<void> {
    this.mustLive()
    this.child.kill('SIGKILL')
    await this.child.exited
  }

  /** SIGTERM; resolves to the fault of how it ended, if any. */
  async stop(): Promise<string[]> {
    this.child.kill('SIGTERM')
    const code = await this.child.exited
    return code === 0 ? [] : [`a worker that was stopped ended with ${code}`]
  }

  /** Nothing waits on the bus or in the outbox. */
  async isIdle(): Promise<boolean> {
    const { admin_url: url }: { admin_url: string } = JSON.parse(readFileSync(this.readyFile, 'utf8'))
    const response = await fetch(`${url}/internal/v1/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
    const { data } = (await response.json()) as { data: { bus_lag: number; outbox_depth: number } }
    return data.bus_lag === 0 && data.outbox_depth === 0
  }
}

function sqliteBus(directory: string): Bus {
  const dataDir = join(directory, 'worker-0')
  mkdirSync(dataDir)
  const writer = new FileBusWriter({
    ...BUS_BOUNDS,
    path: collectorPaths(dataDir).bus,
    groupWaitMs: 1,
    nowMs: Date.now,
    onPublished: () => {},
    onError: error => {
      throw error
    },
  })
  return {
    publish: (serverId, entry) => writer.publish(serverId, entry),
    hasRules: async () => existsSync(join(dataDir, 'feeds', 'rules.json')),
    takeovers: async () => 0,
    close: () => writer.close(),
    lines: [],
  }
}

async function redisBus(): Promise<Bus> {
  const server = await startTestRedis()
  const clickhouse = startClickHouseServer(0)
  const redis = openRedis({
    address: plainAddress(server.url),
    name: 'kill-worker',
    onTrouble: () => {},
    onRecovered: () => {},
  })
  await whenReady(redis)
  const keys = redisKeys('svc:')
  const onError = (cause: string): never => {
    throw new Error(cause)
  }
  const writer = new RedisBusWriter({ ...BUS_BOUNDS, redis, keys, onError })
  return {
    publish: (serverId, entry) => writer.publish(serverId, entry),
    hasRules: async () => (await redis.exists(keys.feed('rules'))) === 1,
    takeovers: async () => Number((await redis.get(keys.fence)) ?? 0),
    close: async () => {
      await writer.close()
      redis.disconnect()
      await server.close()
      await clickhouse.stop()
    },
    lines: [
      'bus: { kind: redis }',
      `redis: { url: "${server.url}" }`,
      `clickhouse: { url: "${clickhouse.url}", database: ${freshDatabase()} }`,
      `collector_id: ${id('collector')}`,
    ],
  }
}

/** A site with a hub that has these rules. `command` starts the worker. */
export async function openKillSite(
  kind: 'sqlite' | 'redis',
  rules: readonly RawRule[],
  command: readonly string[],
): Promise<KillSite> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-kill-'))
  const hub = new ScriptedHub()
  hub.feeds.rules!.push(...rules)
  const bus = kind === 'sqlite' ? sqliteBus(directory) : await redisBus()

  function spawn(slot: number): KillWorker {
    const dataDir = join(directory, `worker-${slot}`)
    const configFile = `${dataDir}.yaml`
    const readyFile = `${dataDir}.ready`
    writeFileSync(
      configFile,
      [
        `data_dir: ${dataDir}`,
        `hub: { url: "${hub.url}", token: "${hubToken}" }`,
        `admin: { listen: 127.0.0.1:0, token: ${ADMIN_TOKEN} }`,
        'ops: { listen: 127.0.0.1:0 }',
        'log: { level: error }',
        'alerting: { flap_transitions: 0, rules_state_interval: 200ms }',
        ...bus.lines,
      ].join('\n'),
    )
    rmSync(readyFile, { force: true })
    const words = [...command, '--config', configFile, '--ready-file', readyFile]
    return new KillWorker(Bun.spawn(words, { stdout: 'inherit', stderr: 'inherit' }), readyFile)
  }

  return {
    hub,
    workers: kind === 'sqlite' ? 1 : 2,
    publish: async (serverId, entry) => {
      const refusal = await bus.publish(serverId, entry)
      if (refusal !== null) throw new Error(`the bus did not take a batch: ${refusal}`)
    },
    hasRules: bus.hasRules,
    spawn,
    takeovers: bus.takeovers,
    close: async () => {
      await bus.close()
      await hub.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
