// A collector of several processes as an operator runs it: ingest and worker executables on one Redis and one
// ClickHouse server, with a scripted hub. Every process can be killed.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sha256Hex } from '../../core/series/hash.ts'
import { hubToken, id, ScriptedHub } from '../ingest/scripted-hub.ts'
import { freshDatabase } from '../support/clickhouse.ts'
import { startClickHouseServer } from '../support/clickhouse-server.ts'
import { commandOf } from '../support/executable.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'
import { SimulatedAgent } from '../support/simulated-agent.ts'
import { until } from '../support/until.ts'

const adminToken = 'admin-token-of-the-hub'

// biome-ignore lint/suspicious/noExplicitAny: answers over HTTP, checked by the expectations of the test
export type Json = any

export type Server = {
  readonly companyId: string
  readonly serverId: string
  readonly agentId: string
  readonly token: string
}

export const serverOf = (companyId: string, name: string): Server => ({
  companyId,
  serverId: id(`${companyId} server ${name}`),
  agentId: id(`${companyId} agent ${name}`),
  token: `agt_${sha256Hex(`${companyId} ${name}`).slice(0, 43)}`,
})

export type Process = {
  readonly pid: number
  readonly url: string
  readonly opsUrl: string
  kill(): Promise<void>
  /** SIGTERM; resolves to the exit code. */
  stop(): Promise<number>
  log(): string
}

let syncVersion = 0

/** A record of the agents feed. */
export const agentOf = (server: Server, changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  agent_id: server.agentId,
  company_id: server.companyId,
  server_id: server.serverId,
  collector_id: null,
  state: 'active',
  token_hash: sha256Hex(server.token),
  prev_token_hash: null,
  prev_token_expires_at: null,
  server_status: '',
  subnet_id: null,
  datacenter: null,
  interval_seconds: 10,
  version: 1,
  sync_version: ++syncVersion,
  ...changes,
})

export class Site {
  readonly hub = new ScriptedHub()
  readonly directory = mkdtempSync(join(tmpdir(), 'svc-redis-'))
  readonly database = freshDatabase()
  readonly clickhouse = startClickHouseServer(0)
  private readonly processes = new Set<Process>()
  private count = 0

  private constructor(
    readonly redis: TestRedis,
    private readonly keys: Readonly<Record<string, string>>,
  ) {}

  static async start(keys: Readonly<Record<string, string>> = {}, redis?: TestRedis): Promise<Site> {
    return new Site(redis ?? (await startTestRedis()), keys)
  }

  /** A rule on swap_used_percent > 50 of every server of the company. */
  addRule(companyId: string, changes: Record<string, unknown> = {}): void {
    this.hub.feeds.rules!.push({
      id: id(`rule of ${companyId}`),
      version: 1,
      sync_version: ++syncVersion,
      company_id: companyId,
      name: 'swap',
      kind: 'threshold',
      scope: { all: true },
      resolved_server_ids: [],
      metric: 'swap_used_percent',
      matchers: {},
      operator: '>',
      threshold: 50,
      for_seconds: 0,
      recover_for_seconds: 0,
      severity: 'warning',
      no_data: 'ignore',
      renotify_seconds: 0,
      enabled: true,
      deleted: false,
      ...changes,
    })
  }

  startIngest(): Promise<Process> {
    return this.spawn('ingest', { listen: '127.0.0.1:0' }, 'agent_url')
  }

  startWorker(): Promise<Process> {
    return this.spawn(
      'worker',
      {
        'admin.listen': '127.0.0.1:0',
        'admin.token': adminToken,
        'clickhouse.url': this.clickhouse.url,
        'clickhouse.database': this.database,
      },
      'admin_url',
    )
  }

  private async spawn(part: 'ingest' | 'worker', own: Record<string, string>, address: string): Promise<Process> {
    const dir = join(this.directory, `${part}-${++this.count}`)
    const values: Record<string, string> = {
      data_dir: dir,
      'ops.listen': '127.0.0.1:0',
      'bus.kind': 'redis',
      'redis.url': this.redis.url,
      'hub.url': this.hub.url,
      'hub.token': hubToken,
      collector_id: id('collector'),
      ...own,
      ...this.keys,
    }
    const env: Record<string, string | undefined> = { ...process.env }
    for (const [key, value] of Object.entries(values)) env[`SVC_${key.toUpperCase().replaceAll('.', '_')}`] = value
    const readyFile = `${dir}.ready`
    const logFile = `${dir}.log`
    writeFileSync(logFile, '')
    const child = Bun.spawn([...commandOf(`collector-${part}`), '--ready-file', readyFile], {
      env,
      stdout: Bun.file(logFile),
      stderr: Bun.file(`${logFile}.err`),
    })
    const log = () => readFileSync(logFile, 'utf8') + readFileSync(`${logFile}.err`, 'utf8')
    const ready = await until(
      `${part} to be ready`,
      async () => {
        if (child.exitCode !== null) throw new Error(`${part} ended with ${child.exitCode}: ${log()}`)
        return Bun.file(readyFile).exists()
      },
      60_000,
    ).then(() => JSON.parse(readFileSync(readyFile, 'utf8')) as Json)
    const running: Process = {
      pid: child.pid,
      url: ready[address],
      opsUrl: ready.ops_url,
      log,
      kill: async () => {
        child.kill('SIGKILL')
        await child.exited
        this.processes.delete(running)
      },
      stop: async () => {
        child.kill('SIGTERM')
        this.processes.delete(running)
        return child.exited
      },
    }
    this.processes.add(running)
    return running
  }

  async close(): Promise<void> {
    await Promise.all([...this.processes].map(running => running.kill()))
    await this.hub.stop()
    await this.clickhouse.stop()
    await this.redis.close()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

export const agentFor = (ingest: Process, server: Server): SimulatedAgent =>
  new SimulatedAgent(ingest.url, server.agentId, server.token)

export async function admin(worker: Process, method: string, path: string): Promise<{ status: number; body: Json }> {
  const response = await fetch(`${worker.url}/internal/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${adminToken}` },
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}

/** The failing parts that /readyz names. */
export async function failing(running: Process): Promise<string[]> {
  const response = await fetch(`${running.opsUrl}/readyz`)
  return ((await response.json()) as Json).failing
}

/** How many shards each worker has a lease of, by worker. */
export async function shardsByWorker(site: Site): Promise<number[]> {
  const keys = Array.from({ length: 64 }, (_, shard) => `svc:lease:shard:${shard}`)
  const counts = new Map<string, number>()
  for (const value of await site.redis.client.mget(keys)) {
    const owner = value?.split(' ')[0]
    if (owner) counts.set(owner, (counts.get(owner) ?? 0) + 1)
  }
  return [...counts.values()].sort((a, b) => a - b)
}
