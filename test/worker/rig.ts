// The worker as the executables wire it, in this process: real bus, real threads, the embedded samples store, its admin
// API over HTTP, and a scripted hub beside it. It can be stopped and started again on the directory it left.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { FileBusWriter } from '../../apps/collector/bus/file-bus-writer.ts'
import { collectorPaths, loadCollectorConfig, workerKeys } from '../../apps/collector/config.ts'
import { HubClient } from '../../apps/collector/hub-link/hub-client.ts'
import { isRecordFault, parseAgentRecord } from '../../apps/collector/store/registry/agent-record-faults.ts'
import { RegistryStore } from '../../apps/collector/store/registry/file-registry-store.ts'
import { AgentRegistry } from '../../apps/collector/store/registry/registry.ts'
import { type CollectorMetrics, createCollectorMetrics } from '../../apps/collector/telemetry.ts'
import { type RunningWorker, startWorker } from '../../apps/collector/worker/worker.ts'
import { hubToken, id, ScriptedHub } from '../ingest/scripted-hub.ts'
import { bundledThread } from '../support/bundled-thread.ts'
import { engineUrl, entryOf, freshDatabase, type TestSeries } from '../support/clickhouse.ts'
import { until } from '../support/until.ts'
import { ownClock } from './clock.ts'

export const adminToken = 'admin-token-of-the-hub'
const root = join(import.meta.dir, '../..')

/** JSON as a test reads it: every member may be missing, and the expectation says which. */
// biome-ignore lint/suspicious/noExplicitAny: answers over HTTP, checked by the expectations of the test
export type Json = any

let syncVersion = 0
/** A rule of the feed on swap_used_percent > 50 of every server of the company, with the next sync_version. */
export const ruleRecord = (companyId: string, changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: id(`rule of ${companyId}`),
  version: 1,
  sync_version: ++syncVersion,
  company_id: companyId,
  name: 'swap',
  kind: 'threshold',
  scope: { all: true, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] },
  resolved_server_ids: [],
  metric: 'swap_used_percent',
  matchers: {},
  operator: '>',
  threshold: 50,
  for_seconds: 0,
  recover_threshold: null,
  recover_for_seconds: 0,
  severity: 'warning',
  no_data: 'ignore',
  renotify_seconds: 0,
  enabled: true,
  deleted: false,
  ...changes,
})

/** A silence of the feed over every server of the company, with the next sync_version. */
export const silenceRecord = (
  companyId: string,
  startsAtMs: number,
  endsAtMs: number,
  changes: Record<string, unknown> = {},
): Record<string, unknown> => ({
  id: id(`silence of ${companyId}`),
  company_id: companyId,
  sync_version: ++syncVersion,
  scope: { all: true, server_ids: [], resolved_server_ids: [] },
  starts_at: new Date(startsAtMs).toISOString(),
  ends_at: new Date(endsAtMs).toISOString(),
  reason: 'planned work',
  deleted: false,
  ...changes,
})

/** A server with one active agent. */
export type Server = { readonly companyId: string; readonly serverId: string; readonly agentId: string }

export const serverOf = (companyId: string, name: string): Server => ({
  companyId,
  serverId: id(`${companyId} server ${name}`),
  agentId: id(`${companyId} agent ${name}`),
})

type RigOptions = {
  readonly keys?: Record<string, unknown>
  readonly withoutHub?: boolean
  /** A real hub in storage of the scripted one, by the token of a collector's service account. */
  readonly hubAt?: () => { readonly url: string; readonly token: string }
  readonly role?: 'worker' | 'all'
  readonly bytesMax?: number
  readonly hubTimeoutMs?: number
}

export class WorkerRig {
  readonly hub = new ScriptedHub()
  readonly directory = mkdtempSync(join(tmpdir(), 'svc-worker-'))
  readonly paths = collectorPaths(this.directory)
  readonly logLines: Json[] = []
  readonly failures: Error[] = []
  readonly clock = ownClock()
  readonly store: RegistryStore
  readonly registry: AgentRegistry
  readonly bus: FileBusWriter
  metrics: CollectorMetrics = createCollectorMetrics('0.0.0', 'worker')
  private readonly database = freshDatabase()
  private worker: RunningWorker | null = null

  constructor(private readonly options: RigOptions = {}) {
    this.store = new RegistryStore(this.paths.registry)
    this.registry = new AgentRegistry(this.store)
    this.bus = new FileBusWriter({
      path: this.paths.bus,
      bytesMax: options.bytesMax ?? 64 * 1024 * 1024,
      ageMaxMs: 24 * 3_600_000,
      groupWaitMs: 1,
      nowMs: Date.now,
      onPublished: () => this.worker?.wake(),
      onError: error => {
        throw error
      },
    })
  }

  get running(): RunningWorker {
    if (!this.worker) throw new Error('the worker does not run')
    return this.worker
  }

  /** Puts servers into the registry, as the agents feed would. */
  addServer(server: Server, changes: Record<string, unknown> = {}): void {
    const record = parseAgentRecord({
      agent_id: server.agentId,
      company_id: server.companyId,
      server_id: server.serverId,
      state: 'active',
      token_hash: id(`hash ${server.agentId}`).replaceAll('-', '').padEnd(64, '0'),
      prev_token_hash: null,
      prev_token_expires_at: null,
      server_status: '',
      subnet_id: null,
      datacenter: null,
      interval_seconds: 0,
      version: ++syncVersion,
      sync_version: syncVersion,
      ...changes,
    })
    if (isRecordFault(record)) throw new Error(record.field)
    this.registry.apply([record], { since: syncVersion, syncedAtMs: Date.now() })
  }

  async start(keys: Record<string, unknown> = {}): Promise<void> {
    const { url: hubUrl, token } = this.options.hubAt?.() ?? { url: this.hub.url, token: hubToken }
    const { config, faults } = loadCollectorConfig(workerKeys, undefined, {
      data_dir: this.directory,
      'admin.listen': '127.0.0.1:0',
      'admin.token': adminToken,
      'hub.url': hubUrl,
      'hub.token': token,
      'clickhouse.url': engineUrl,
      'clickhouse.database': this.database,
      'alerting.presence_sweep': '100ms',
      'alerting.sweep_interval': '100ms',
      'alerting.rules_state_interval': '1s',
      ...this.options.keys,
      ...keys,
    })
    if (faults.length > 0) throw new Error(JSON.stringify(faults))
    const { role = 'worker', withoutHub } = this.options
    this.metrics = createCollectorMetrics('0.0.0', role)
    const log = pino({ level: 'info' }, { write: (line: string) => void this.logLines.push(JSON.parse(line)) })
    const { metrics } = this
    this.worker = await startWorker({
      config,
      role,
      version: '0.0.0',
      log,
      metrics,
      registry: this.registry,
      hub: withoutHub
        ? null
        : new HubClient({
            url: hubUrl,
            token,
            collectorId: id('collector'),
            isPlainAllowed: false,
            log,
            nowMs: Date.now,
            onClockSkew: () => {},
            timeoutMs: this.options.hubTimeoutMs ?? 2000,
          }),
      nowMs: Date.now,
      shardThreadUrl: await bundledThread(new URL('./clocked-shard-thread.ts', import.meta.url)),
      pauseMs: Number.POSITIVE_INFINITY,
      samplesThreadUrl: new URL(join(root, 'apps/collector/worker/samples/samples-thread.ts'), import.meta.url),
      threads: 2,
      reloadAgentFeeds: null,
      checksStatus: null,
      onFailure: error => void this.failures.push(error),
    })
  }

  /** Ends the worker in order; everything that it keeps stays. */
  async stop(): Promise<void> {
    await this.worker?.stop()
    this.worker = null
  }

  async close(): Promise<void> {
    await this.stop()
    await this.bus.close()
    this.store.close()
    await this.hub.stop()
    rmSync(this.directory, { recursive: true, force: true })
    if (this.failures.length > 0) throw new Error('a thread of the worker failed', { cause: this.failures[0] })
  }

  /** One batch of a server on the bus. */
  async publish(server: Server, series: readonly TestSeries[], receivedAtMs = Date.now()): Promise<void> {
    const { companyId, serverId, agentId } = server
    const entry = entryOf(companyId, serverId, series, receivedAtMs, { agentId })
    const refusal = await this.bus.publish(serverId, entry)
    if (refusal) throw new Error(`the bus refused: ${refusal}`)
  }

  /** One point of swap_used_percent, the metric of ruleRecord. */
  async swap(server: Server, value: number, tsMs = Date.now()): Promise<void> {
    await this.publish(server, [{ metric: 'swap_used_percent', points: [[tsMs, value]] }], tsMs)
  }

  /** Nothing tells of a sweep that found nothing: the time of five of them passes. */
  async someSweeps(): Promise<void> {
    const endsAt = performance.now() + 500
    await until('five sweeps', () => performance.now() >= endsAt)
  }

  async admin(method: string, path: string): Promise<{ status: number; body: Json }> {
    const response = await fetch(`${this.running.adminUrl}/internal/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${adminToken}` },
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  }

  /** The data of GET /internal/v1/status. */
  async status(): Promise<Json> {
    return (await this.admin('GET', '/status')).body.data
  }

  /** Types of the events that the hub took of a server, in order; of one series with `seriesKey`. */
  eventsOf(server: { readonly serverId: string }, seriesKey?: string): Json[] {
    return this.hub.taken.filter(
      event => event.server_id === server.serverId && (seriesKey === undefined || event.series_key === seriesKey),
    )
  }

  typesOf(server: { readonly serverId: string }, seriesKey?: string): string[] {
    return this.eventsOf(server, seriesKey).map(event => String(event.type))
  }

  logged(message: string): Json[] {
    return this.logLines.filter(line => line.msg === message)
  }

  /** The value of a metric as /metrics shows it. */
  async metric(name: string): Promise<number> {
    const text = await this.metrics.scrape()
    const line = text.split('\n').find(each => each.startsWith(`${name} `))
    return line ? Number(line.slice(name.length + 1)) : Number.NaN
  }
}
