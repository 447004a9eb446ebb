// Ingest as it runs in production, on a real SQLite bus in a directory of its own, with a scripted hub beside it.
import { expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import pino from 'pino'
import type { BusWriter } from '../../apps/collector/bus/bus.ts'
import { FileBusReader } from '../../apps/collector/bus/file-bus-reader.ts'
import { FileBusWriter } from '../../apps/collector/bus/file-bus-writer.ts'
import { type IngestConfig, ingestKeys, loadCollectorConfig } from '../../apps/collector/config.ts'
import { createAgentsSync } from '../../apps/collector/hub-link/agents-sync.ts'
import { ChecksFeed } from '../../apps/collector/hub-link/checks-feed.ts'
import { type RunningIngest, startIngest } from '../../apps/collector/ingest/ingest.ts'
import { RegistryStore } from '../../apps/collector/store/registry/file-registry-store.ts'
import { AgentRegistry } from '../../apps/collector/store/registry/registry.ts'
import { createCollectorMetrics } from '../../apps/collector/telemetry.ts'
import { EntryReader } from '../../core/bus/entry.ts'
import { sha256Hex } from '../../core/series/hash.ts'
import { type MetricsAck, MetricsAckSchema, MetricsBatchSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { bundledThread } from '../support/bundled-thread.ts'
import { RigClock } from './clock.ts'
import { clientOf, id, ScriptedHub } from './scripted-hub.ts'

export const companyId = id('company')
export const serverId = id('server')
export const agentId = id('agent')
export const token = 'agt_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG'

/** A record of the agents feed. */
export const agentRecord = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  agent_id: agentId,
  company_id: companyId,
  server_id: serverId,
  collector_id: null,
  state: 'active',
  token_hash: sha256Hex(token),
  prev_token_hash: null,
  prev_token_expires_at: null,
  server_status: '',
  subnet_id: null,
  datacenter: null,
  interval_seconds: 0,
  version: 1,
  sync_version: 1,
  ...changes,
})

/** One admitted batch as it lies on the bus. */
type BusBatch = {
  readonly companyId: string
  readonly serverId: string
  readonly agentId: string
  readonly seq: number
  readonly points: number
  readonly keys: string[]
}

export type Rig = {
  readonly hub: ScriptedHub
  readonly ingest: RunningIngest
  readonly registry: AgentRegistry
  readonly checks: ChecksFeed
  readonly agentsSync: ReturnType<typeof createAgentsSync>
  readonly config: IngestConfig
  readonly directory: string
  /** What ingest takes for now; moved by a test. */
  readonly clock: { nowMs: number }
  /** Threads that ended by themselves. */
  readonly failures: Error[]
  readonly logLines: Record<string, unknown>[]
  metricsText(): Promise<string>
  /** Everything that was published, oldest first. */
  published(): Promise<BusBatch[]>
  call(path: string, init?: RequestInit & { token?: string | null }): Promise<Response>
  send(batch: MessageInitShape<typeof MetricsBatchSchema>, init?: { token?: string }): Promise<Response>
  stop(): Promise<void>
}

export type RigOptions = {
  readonly keys?: Record<string, unknown>
  readonly agents?: Record<string, unknown>[]
  readonly checks?: Record<string, unknown>[]
  readonly withoutHub?: boolean
  readonly bus?: (writer: FileBusWriter) => BusWriter
  readonly directory?: string
  readonly inMemory?: boolean
  readonly hub?: ScriptedHub
  /** Listener threads besides the main thread; what the environment says unless given, 0 unless it says so. */
  readonly threads?: number
  /** In agentIndex of the one of the product. */
  readonly listenerThread?: URL
}

export const protoHeaders = { 'x-svc-proto': '1', 'x-svc-agent-version': '1.2.3' }

const threadsOfRun = Number(process.env.INGEST_TEST_THREADS ?? 0)
const listenerThreadUrl = new URL('./clocked-listener-thread.ts', import.meta.url)

export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const hub = options.hub ?? new ScriptedHub()
  hub.feeds.agents!.push(...(options.agents ?? [agentRecord()]))
  hub.feeds.checks!.push(...(options.checks ?? []))
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'svc-ingest-'))
  const { config, faults } = loadCollectorConfig(ingestKeys, undefined, { listen: '127.0.0.1:0', ...options.keys })
  if (faults.length > 0) throw new Error(JSON.stringify(faults))
  const logLines: Record<string, unknown>[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void logLines.push(JSON.parse(line)) })
  const clock = new RigClock()
  const nowMs = () => (clock.nowMs > 0 ? clock.nowMs : Date.now())
  const metrics = createCollectorMetrics('0.0.0', 'ingest')
  const busPath = join(directory, 'bus.sqlite')
  const reader = new FileBusReader(busPath, ['test'])
  const writer = new FileBusWriter({
    path: busPath,
    bytesMax: 64 * 1024 * 1024,
    ageMaxMs: 3_600_000,
    groupWaitMs: 1,
    nowMs: Date.now,
    onPublished: () => {},
    onError: error => log.error({ err: error }, 'bus'),
  })
  const bus = options.bus?.(writer) ?? writer
  const client = options.withoutHub
    ? null
    : clientOf(hub, log, { onClockSkew: seconds => metrics.clockSkew.set(seconds), timeoutMs: 2000 })
  const store = new RegistryStore(join(directory, 'registry.sqlite'))
  const registry = new AgentRegistry(store)
  const shared = { hub: client, log, metrics, nowMs }
  const agentsSync = createAgentsSync({ ...shared, registry, intervalMs: 3_600_000 })
  const checks = new ChecksFeed({ ...shared, registry, directory: join(directory, 'feeds'), intervalMs: 3_600_000 })
  await Promise.all([agentsSync.start(), checks.start()])
  const failures: Error[] = []
  const listenerThreads = options.threads ?? threadsOfRun
  const threads =
    listenerThreads === 0
      ? null
      : {
          count: listenerThreads,
          url: options.listenerThread ?? (await bundledThread(listenerThreadUrl)),
          onFailure: (error: Error) => void failures.push(error),
        }
  const ingest = await startIngest({ ...shared, config, registry, bus, checks, threads })

  const call: Rig['call'] = (path, init = {}) => {
    const { token: given = token, headers, ...rest } = init
    return fetch(`${ingest.url}/agent/v1${path}`, {
      ...rest,
      headers: {
        ...protoHeaders,
        ...(given === null ? {} : { authorization: `Bearer ${given}` }),
        ...Object.fromEntries(new Headers(headers)),
      },
    })
  }
  return {
    hub,
    ingest,
    registry,
    checks,
    agentsSync,
    config,
    directory,
    clock,
    logLines,
    metricsText: () => metrics.scrape(),
    published: () => readBus(reader),
    call,
    send: (batch, init = {}) =>
      call('/metrics', {
        method: 'POST',
        headers: { 'content-type': 'application/x-protobuf', 'content-encoding': 'zstd' },
        body: Bun.zstdCompressSync(
          toBinary(MetricsBatchSchema, create(MetricsBatchSchema, batch)) as Uint8Array<ArrayBuffer>,
        ),
        ...init,
      }),
    failures,
    stop: async () => {
      await ingest.stop()
      clock.nowMs = 0
      expect(failures).toEqual([])
      await Promise.all([agentsSync.stop(), checks.stop()])
      await writer.close()
      await reader.close()
      store.close()
      if (!options.hub) await hub.stop()
      if (!options.directory) rmSync(directory, { recursive: true, force: true })
    },
  }
}

async function readBus(reader: FileBusReader): Promise<BusBatch[]> {
  const batches: BusBatch[] = []
  const entries = new EntryReader()
  for (let position = 0; ; ) {
    const read = await reader.read(0, position, 64 * 1024 * 1024)
    const last = read.at(-1)
    if (!last) break
    position = last.firstPosition + last.count - 1
    for (const group of read) {
      entries.open(group.bytes)
      while (entries.next()) {
        const keys: string[] = []
        entries.eachDefinition((_, key) => keys.push(key))
        batches.push({
          companyId: entries.companyId(),
          serverId: entries.serverId(),
          agentId: entries.agentId(),
          seq: entries.seq,
          points: entries.pointCount,
          keys,
        })
      }
    }
  }
  return batches
}

/** The acknowledgement of an answer that must be a 200. */
export async function ackOf(response: Response): Promise<MetricsAck> {
  if (response.status !== 200) throw new Error(`expected 200, got ${response.status} ${await response.text()}`)
  return fromBinary(MetricsAckSchema, await response.bytes())
}

/** Status and code of an error. */
export async function errorOf(response: Response): Promise<string> {
  const body = (await response.json()) as { error?: { code?: string; message?: string } }
  return `${response.status} ${body.error?.code}`
}

/** `count` series with one point each, now. */
export const someSeries = (count: number, tsMs = Date.now()) =>
  Array.from({ length: count }, (_, index) => ({
    name: 'cpu_core_usage_percent',
    labels: { core: String(index) },
    points: [{ tsMs: BigInt(tsMs), value: index }],
  }))
