import { expect, test } from 'bun:test'
import { create, toBinary } from '@bufbuild/protobuf'
import { SampleBatch } from '../../core/series/sample-batch.ts'
import { seriesId } from '../../core/series/series-key.ts'
import { AdmissionReport } from '../../core/wire/admission-report.ts'
import { AgentSeries, OwnCompanySeries } from '../../core/wire/agent-series.ts'
import { BatchDecoder } from '../../core/wire/decode-and-admit.ts'
import { MetricsBatchSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { batchFields, mutate } from './batch-messages.ts'
import { formOf, type Outcome, pointText, ReferenceAgent } from './batch-reference.ts'
import { Random, runsOf, seedOf } from './seeded.ts'

const nowMs = 1_795_000_000_000
const limits = {
  seriesPerAgentMax: 40,
  seriesPerCompanyMax: 0,
  pointsMax: 60,
  pointAgeMaxMs: 24 * 3_600_000,
  pointAheadMaxMs: 300_000,
}
const BATCHES_AN_AGENT = 12
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/** The decoder with the memory of the worker beside it: which key an id means, learnt from definitions alone. */
class Subject {
  private readonly batch = new SampleBatch()
  private readonly decoder = new BatchDecoder(this.batch, limits)
  private agent = new AgentSeries(new OwnCompanySeries())
  private keys = new Map<string, string>()

  startAgent(): void {
    this.agent = new AgentSeries(new OwnCompanySeries())
    this.keys = new Map()
  }

  take(bytes: Uint8Array): Outcome {
    const report = new AdmissionReport()
    this.agent.announcesAll = false
    const refusal = this.decoder.decode(bytes, this.agent, nowMs, report)
    const { batch, decoder } = this
    const { header } = decoder
    const points: string[] = []
    for (const { seriesIndex, key } of batch.definitions) {
      const id = `${batch.idLo[seriesIndex]}:${batch.idHi[seriesIndex]}`
      expect(seriesId(key)).toEqual({ lo: batch.idLo[seriesIndex]!, hi: batch.idHi[seriesIndex]! })
      this.keys.set(id, key)
    }
    for (let series = 0; series < batch.seriesCount; series++) {
      const key = this.keys.get(`${batch.idLo[series]}:${batch.idHi[series]}`)
      if (key === undefined) throw new Error('a series was sent without its definition')
      for (let at = batch.pointStart[series]!; at < batch.pointStart[series + 1]!; at++)
        points.push(pointText(key, batch.tsMs[at]!, batch.value[at]!))
    }
    const seq = (BigInt(header.seqHigh) << 32n) | BigInt(header.seqLow)
    return {
      refusal,
      seq: seq.toString(),
      sentAtMs: header.sentAtMs,
      intervalSeconds: header.intervalSeconds,
      bufferBytes: header.bufferBytes,
      bufferBatches: header.bufferBatches,
      agentWarning:
        header.warningAt === 0
          ? null
          : utf8.decode(bytes.subarray(header.warningAt, header.warningAt + header.warningBytes)),
      points,
      dropped: refusal ? {} : { ...report.dropped },
      droppedPoints: refusal ? 0 : report.droppedPoints,
      warnings: refusal ? [] : [...report.finish(limits.seriesPerAgentMax)],
    }
  }
}

/** The decoder beside the generated code: batch after batch of one agent, then of another. */
class Comparison {
  private readonly subject = new Subject()
  private reference = new ReferenceAgent(limits)
  readonly forms = { strict: 0, loose: 0, malformed: 0 }

  constructor(private readonly seed: number) {}

  startAgent(): void {
    this.subject.startAgent()
    this.reference = new ReferenceAgent(limits)
  }

  take(bytes: Uint8Array, run: number): void {
    const form = formOf(bytes)
    this.forms[form]++
    const where = `seed ${this.seed}, run ${run}, ${form}, bytes ${Buffer.from(bytes).toString('hex')}`
    const got = this.subject.take(bytes)
    if (form === 'malformed') {
      if (got.refusal === null) throw new Error(`taken although malformed: ${where}`)
      return
    }
    if (form === 'loose') {
      if (got.refusal === 'malformed') throw new Error(`refused although well-formed: ${where}`)
      // The two may differ on it; the agent starts anew, so that what follows can be compared.
      this.startAgent()
      return
    }
    const expected = this.reference.take(bytes, nowMs)
    const isEqual = got.refusal !== null && got.refusal === expected.refusal ? true : Bun.deepEquals(got, expected)
    if (!isEqual) expect(got, where).toEqual(expected)
  }
}

test(
  '[WIRE-014] [WIRE-015] [WIRE-016] [WIRE-037] the hand-written decoder agrees with the generated code on random and on damaged batches',
  () => {
    const seed = seedOf('decode-batch')
    const runs = runsOf(10_000)
    const random = new Random(seed)
    const comparison = new Comparison(seed)
    let fields: number[][] = []
    for (let run = 0; run < runs; run++) {
      if (run % BATCHES_AN_AGENT === 0) {
        comparison.startAgent()
        fields = batchFields(nowMs, random)
      } else if (random.chance(0.5))
        fields = random.chance(0.7) ? [...fields, ...batchFields(nowMs, random)].slice(-14) : batchFields(nowMs, random)
      const whole = new Uint8Array(fields.flat())
      comparison.take(random.chance(0.4) ? mutate(whole, random) : whole, run)
    }
    const { forms } = comparison
    console.log(`decode-batch: ${runs} inputs`, forms)
    expect(forms.strict).toBeGreaterThan(runs / 4)
    expect(forms.malformed).toBeGreaterThan(0)
  },
  Math.max(600_000, runsOf(0) * 10),
)

/** Series as a host has them: most are shorter than 128 bytes on the wire, some longer. */
const hostSeries = Array.from({ length: 16 }, (_, index): { name: string; labels: Record<string, string> } => ({
  name: `metric_${index}`,
  labels: index % 3 === 0 ? {} : { mount: '/srv'.padEnd(index % 5 === 0 ? 100 : 8, 'x'), device: `sd${index}` },
}))

/** Bytes of a batch in which most points have one time, as agents send it. */
function hostBatch(run: number, random: Random): Uint8Array {
  const tsMs = BigInt(nowMs - random.below(3) * 30_000)
  const sent = random.chance(0.8) ? hostSeries : hostSeries.slice(random.below(8))
  // Now and then more points than a request may have.
  const repeated = random.chance(0.05) ? Array.from({ length: 5 }, () => sent).flat() : sent
  const series = (random.chance(0.9) ? repeated : random.shuffle(repeated)).map(({ name, labels }) => ({
    name,
    labels,
    points: Array.from({ length: random.chance(0.97) ? 1 : random.below(4) }, () => ({
      tsMs: random.chance(0.97) ? tsMs : tsMs - 1n,
      value: random.chance(0.98) ? random.float() * 1e6 : Number.NaN,
    })),
  }))
  return toBinary(MetricsBatchSchema, create(MetricsBatchSchema, { seq: BigInt(run), sentAtMs: tsMs, series }))
}

test(
  '[WIRE-014] [WIRE-015] [WIRE-016] the two agree on batches of the same series in the same order, whole and damaged',
  () => {
    const seed = seedOf('decode-batch of a host')
    const runs = runsOf(2000)
    const random = new Random(seed)
    const comparison = new Comparison(seed)
    for (let run = 0; run < runs; run++) {
      if (run % BATCHES_AN_AGENT === 0) comparison.startAgent()
      const whole = hostBatch(run, random)
      comparison.take(random.chance(0.5) ? mutate(whole, random) : whole, run)
    }
    const { forms } = comparison
    console.log(`decode-batch of a host: ${runs} inputs`, forms)
    expect(forms.strict).toBeGreaterThan(runs / 4)
    expect(forms.malformed).toBeGreaterThan(0)
  },
  Math.max(60_000, runsOf(0) * 10),
)
