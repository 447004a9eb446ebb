// What a batch of 150 series costs from its compressed bytes to the bus entry, against the generated code decoding
// alone. Prints one JSON line a question; microseconds are of processor time.
import { fromBinary } from '@bufbuild/protobuf'
import { EntryEncoder } from '../core/bus/entry.ts'
import { SampleBatch } from '../core/series/sample-batch.ts'
import { AdmissionReport } from '../core/wire/admission-report.ts'
import { AgentSeries, OwnCompanySeries } from '../core/wire/agent-series.ts'
import { BatchDecoder } from '../core/wire/decode-and-admit.ts'
import { MetricsBatchSchema } from '../proto/gen/svc/agent/v1/agent_pb.ts'
import { batchBytes, hostSeries } from './batches.ts'

const SERIES = 150
const AGENTS = 1000
const BODIES = 64
const SECONDS = Number(process.env.SVC_BENCH_SECONDS ?? 1)

const nowMs = Date.now()
const limits = {
  seriesPerAgentMax: 500,
  seriesPerCompanyMax: 0,
  pointsMax: 20_000,
  pointAgeMaxMs: 24 * 3_600_000,
  pointAheadMaxMs: 300_000,
}
const header = {
  companyId: '11111111-1111-4111-8111-111111111111',
  serverId: '22222222-2222-4222-8222-222222222222',
  agentId: '33333333-3333-4333-8333-333333333333',
  receivedAtMs: nowMs,
  seq: 1,
  intervalSeconds: 30,
}
const series = hostSeries(SERIES)
const bodies = Array.from({ length: BODIES }, (_, index) =>
  batchBytes(series, index + 1, nowMs, point => Math.round(((index * 7919 + point * 104_729) % 1_000_003) / 100)),
)
const compressed = bodies.map(body => Bun.zstdCompressSync(body as Uint8Array<ArrayBuffer>))
const batch = new SampleBatch()
const decoder = new BatchDecoder(batch, limits)
const entries = new EntryEncoder()
const report = new AdmissionReport()
const agents = Array.from({ length: AGENTS }, () => new AgentSeries(new OwnCompanySeries()))
for (const agent of agents) decoder.decode(bodies[0]!, agent, nowMs, report)

/** Microseconds of processor time of one call, after a warm-up: what else runs on the host is not measured. */
function microseconds(run: (index: number) => void): number {
  for (let index = 0; index < 3000; index++) run(index)
  const before = process.cpuUsage()
  const startedAtMs = performance.now()
  let calls = 0
  while (performance.now() - startedAtMs < SECONDS * 1000) for (let index = 0; index < 100; index++) run(calls++)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / calls
}

const decode = (index: number) => decoder.decode(bodies[index % BODIES]!, agents[index % AGENTS]!, nowMs, report)
const inflate = (index: number) => Bun.zstdDecompressSync(compressed[index % BODIES]!)
const oracle = microseconds(index => fromBinary(MetricsBatchSchema, bodies[index % BODIES]!))
const say = (question: string, us: number): void =>
  console.log(
    JSON.stringify({
      bench: 'decode',
      question,
      us: Math.round(us * 100) / 100,
      times_generated_code: Math.round((oracle / us) * 10) / 10,
    }),
  )
say('generated code, decode alone', oracle)
say('decode and admit', microseconds(decode))
say('zstd', microseconds(inflate))
say(
  'zstd, decode and admit',
  microseconds(index => {
    decoder.decode(inflate(index), agents[index % AGENTS]!, nowMs, report)
  }),
)
say(
  'zstd, decode, admit and encode the entry',
  microseconds(index => {
    decoder.decode(inflate(index), agents[index % AGENTS]!, nowMs, report)
    entries.encode(header, batch)
  }),
)
