// Requests of ingest per second of processor time: batches of 150 series over HTTP, kept-alive connections, agents in
// turn, durable on the bus; and how long an acknowledgement takes at half that rate. The load comes from a process of
// its own; the processor time is of this one, so the load is not in it. Usage: bun bench/ingest.ts [AGENTS] [ROUNDS]
// [CONNECTIONS] [THREADS] [RECONNECT] THREADS 1: the main thread listens and writes the bus. RECONNECT 1: a connection
// for every batch, which meets any thread.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'
import pino from 'pino'
import { FileBusReader } from '../apps/collector/bus/file-bus-reader.ts'
import { FileBusWriter } from '../apps/collector/bus/file-bus-writer.ts'
import { ThreadBus } from '../apps/collector/bus/thread-bus.ts'
import { ingestKeys, loadCollectorConfig } from '../apps/collector/config.ts'
import { startIngest } from '../apps/collector/ingest/ingest.ts'
import { isRecordFault, parseAgentRecord } from '../apps/collector/store/registry/agent-record-faults.ts'
import { AgentRegistry } from '../apps/collector/store/registry/registry.ts'
import { createCollectorMetrics } from '../apps/collector/telemetry.ts'
import { sha256Hex } from '../core/series/hash.ts'
import { CheckSet } from '../core/wire/checks-of-server.ts'
import { MetricsBatchSchema } from '../proto/gen/svc/agent/v1/agent_pb.ts'
import { batchBytes, hostSeries } from './batches.ts'
import { fleetProcess } from './fleet.ts'

const [agentCount = 2000, rounds = 10, connections = 64, threadCount = 1, reconnect = 0] = process.argv
  .slice(2)
  .map(Number)
const SERIES = 150
const HALF_LOAD_ROUNDS = 15
const CALIBRATION_CALLS = 1000

const directory = mkdtempSync(join(tmpdir(), 'svc-bench-ingest-'))
const uuid = (kind: string, index: number) => `${kind}0000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`
const tokens = Array.from({ length: agentCount }, (_, index) => `agt_bench_${index}`)
const { config } = loadCollectorConfig(ingestKeys, undefined, {
  listen: '127.0.0.1:0',
  'ingest.limits.metrics_per_minute': 1_000_000,
  'ingest.limits.metrics_burst': 1_000_000,
})
const registry = new AgentRegistry(null)
for (const [index, token] of tokens.entries()) {
  const record = parseAgentRecord({
    agent_id: uuid('a', index),
    company_id: uuid('c', index % 100),
    server_id: uuid('5', index),
    state: 'active',
    token_hash: sha256Hex(token),
    version: 1,
  })
  if (isRecordFault(record)) throw new Error(`${record.field} must be ${record.expected}`)
  registry.apply([record])
}
const path = join(directory, 'bus.sqlite')
// A consumer that never passes: emptying the bus is the worker's time, not that of ingest.
const reader = new FileBusReader(path, ['bench'])
const onPublished = () => {}
const onError = (error: unknown) => console.error(error)
const onFailure = (error: Error) => {
  throw error
}
const file = (name: string) => new URL(`../apps/collector/${name}`, import.meta.url)
const options = { path, bytesMax: 8 * 1024 ** 3, ageMaxMs: 3_600_000, groupWaitMs: 5 }
const bus =
  threadCount === 1
    ? new FileBusWriter({ ...options, nowMs: Date.now, onPublished, onError })
    : await ThreadBus.open({ threadUrl: file('bus/bus-thread.ts'), options, onPublished, onError, onFailure })
const metrics = createCollectorMetrics('bench', 'ingest')
const checks = new CheckSet()
const ingest = await startIngest({
  config,
  log: pino({ level: 'warn' }),
  metrics,
  registry,
  hub: null,
  bus,
  checks: { current: () => checks, onChange: () => () => {} },
  nowMs: Date.now,
  threads:
    threadCount === 1 ? null : { count: threadCount, url: file('ingest/listener/listener-thread.ts'), onFailure },
})
const tokensFile = join(directory, 'tokens.json')
await Bun.write(tokensFile, JSON.stringify(tokens))

const load = (rounds: number, ...more: readonly string[]) =>
  fleetProcess(
    ingest.url,
    tokensFile,
    ...['--rounds', `${rounds}`, '--series', `${SERIES}`, '--connections', `${connections}`],
    ...(reconnect === 1 ? ['--reconnect'] : []),
    ...more,
  )

/** Processor time of each thread of this process, ms, by its number. */
function threadTimes(): Map<string, number> {
  const times = new Map<string, number>()
  for (const task of readdirSync('/proc/self/task')) {
    const stat = readFileSync(`/proc/self/task/${task}/stat`, 'utf8')
    const [, , ...rest] = stat.slice(stat.lastIndexOf(')')).split(' ')
    times.set(
      `${task}${stat.slice(stat.indexOf('('), stat.lastIndexOf(')') + 1)}`,
      (Number(rest[10]) + Number(rest[11])) * 10,
    )
  }
  return times
}

const body = batchBytes(hostSeries(SERIES), 1, Date.now(), index => index + 0.25)

/**
 * How fast the host is at the moment: what the generated code takes to decode one such batch, us of processor time.
 */
function generatedDecodeUs(): number {
  const before = process.cpuUsage()
  for (let call = 0; call < CALIBRATION_CALLS; call++) fromBinary(MetricsBatchSchema, body)
  const { user, system } = process.cpuUsage(before)
  return Math.round((user + system) / CALIBRATION_CALLS)
}

// Long enough for the runtime to have compiled what is hot.
await load(10)
generatedDecodeUs()
const decodeBeforeUs = generatedDecodeUs()
const timesBefore = threadTimes()
const before = process.cpuUsage()
const { batches, refused, seconds } = await load(rounds)
const { user, system } = process.cpuUsage(before)
const decodeUs = (decodeBeforeUs + generatedDecodeUs()) / 2
const threadMs = [...threadTimes()]
  .map(([task, ms]): [string, number] => [task, ms - (timesBefore.get(task) ?? 0)])
  .filter(([, ms]) => ms >= 20)
const perCpuSecond = Math.round((batches / (user + system)) * 1e6)
const half = await load(HALF_LOAD_ROUNDS, '--interval-ms', `${Math.round((agentCount / (perCpuSecond / 2)) * 1000)}`)
console.log(
  JSON.stringify({
    bench: 'ingest',
    question: 'batches of 150 series a second of processor time',
    per_cpu_second: perCpuSecond,
    samples_per_cpu_second: perCpuSecond * SERIES,
    cpu_us_a_batch: Math.round(((user + system) * 10) / batches) / 10,
    generated_decode_us: decodeUs,
    user_us_a_batch: Math.round((user * 10) / batches) / 10,
    batches,
    refused,
    seconds,
    threads: threadCount,
    hand_overs: metrics.hot.handOvers,
    thread_ms: Object.fromEntries(threadMs),
    rss_mib: Math.round(process.memoryUsage.rss() / 1024 ** 2),
  }),
)
console.log(
  JSON.stringify({
    bench: 'ingest',
    question: 'acknowledgement at half that rate',
    per_second: Math.round(half.batches / half.seconds),
    refused: half.refused,
    p50_ms: half.p50_ms,
    p99_ms: half.p99_ms,
    threads: threadCount,
  }),
)
await ingest.stop()
await bus.close()
await reader.close()
rmSync(directory, { recursive: true, force: true })
process.exit(0)
