import { expect, test } from 'bun:test'
import { SampleBatch } from '../../core/series/sample-batch.ts'
import { seriesId } from '../../core/series/series-key.ts'
import { AdmissionReport } from '../../core/wire/admission.ts'
import { AgentSeries, OwnCompanySeries } from '../../core/wire/agent-series.ts'
import { BatchDecoder } from '../../core/wire/decode-batch.ts'
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
    const { facts } = decoder
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
    const seq = (BigInt(facts.seqHigh) << 32n) | BigInt(facts.seqLow)
    return {
      refusal,
      seq: seq.toString(),
      sentAtMs: facts.sentAtMs,
      intervalSeconds: facts.intervalSeconds,
      points,
      dropped: refusal ? {} : { ...report.dropped },
      droppedPoints: refusal ? 0 : report.droppedPoints,
      warnings: refusal ? [] : [...report.finish(limits.seriesPerAgentMax)],
    }
  }
}

test(
  '[WIRE-014] [WIRE-015] [WIRE-016] [WIRE-037] the hand-written decoder agrees with the generated code on random and on damaged batches',
  () => {
    const seed = seedOf('decode-batch')
    const runs = runsOf(20_000)
    const random = new Random(seed)
    const subject = new Subject()
    let reference = new ReferenceAgent(limits)
    let fields: number[][] = []
    const forms = { strict: 0, loose: 0, malformed: 0 }
    for (let run = 0; run < runs; run++) {
      if (run % BATCHES_AN_AGENT === 0) {
        subject.startAgent()
        reference = new ReferenceAgent(limits)
        fields = batchFields(nowMs, random)
      } else if (random.chance(0.5))
        fields = random.chance(0.7) ? [...fields, ...batchFields(nowMs, random)].slice(-14) : batchFields(nowMs, random)
      const whole = new Uint8Array(fields.flat())
      const bytes = random.chance(0.4) ? mutate(whole, random) : whole
      const form = formOf(bytes)
      forms[form]++
      const where = `seed ${seed}, run ${run}, ${form}, bytes ${Buffer.from(bytes).toString('hex')}`
      const got = subject.take(bytes)
      if (form === 'malformed') {
        if (got.refusal === null) throw new Error(`taken although malformed: ${where}`)
        continue
      }
      if (form === 'loose') {
        if (got.refusal === 'malformed') throw new Error(`refused although well-formed: ${where}`)
        // The two may differ on it; the agent starts anew, so that what follows can be compared.
        subject.startAgent()
        reference = new ReferenceAgent(limits)
        continue
      }
      const expected = reference.take(bytes, nowMs)
      const isEqual = got.refusal !== null && got.refusal === expected.refusal ? true : Bun.deepEquals(got, expected)
      if (!isEqual) expect(got, where).toEqual(expected)
    }
    console.log(`decode-batch: ${runs} inputs`, forms)
    expect(forms.strict).toBeGreaterThan(runs / 4)
    expect(forms.malformed).toBeGreaterThan(0)
  },
  Math.max(600_000, runsOf(0) * 10),
)
