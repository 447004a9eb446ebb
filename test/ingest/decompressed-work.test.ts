// What little bytes can make a listener do: bodies that compress to nothing and inflate to millions of fields.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { SampleBatch } from '../../core/series/sample-batch.ts'
import { AdmissionReport } from '../../core/wire/admission-report.ts'
import { AgentSeries, OwnCompanySeries } from '../../core/wire/agent-series.ts'
import { BatchDecoder } from '../../core/wire/decode-and-admit.ts'
import { ackOf, agentRecord, errorOf, type Rig, someSeries, startRig } from './rig.ts'
import { id } from './scripted-hub.ts'

const MIB = 1024 * 1024
const nowMs = 1_795_000_000_000
const pendingToken = 'agt_pendingpendingpendingpending'
const START_MS = Date.now()

/** Bytes that repeat `unit`, in a length-delimited field of this tag where one is given. */
function repeated(unit: readonly number[], times: number, tag?: number): Uint8Array<ArrayBuffer> {
  const length = unit.length * times
  const head = tag === undefined ? [] : [tag, ...varint(length)]
  const bytes = new Uint8Array(head.length + length)
  bytes.set(head)
  for (let index = 0; index < times; index++) bytes.set(unit, head.length + index * unit.length)
  return bytes
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)]
}

const limits = {
  seriesPerAgentMax: 500,
  seriesPerCompanyMax: 0,
  pointsMax: 20_000,
  pointAgeMaxMs: 24 * 3_600_000,
  pointAheadMaxMs: 300_000,
}

const decode = (bytes: Uint8Array, agent = new AgentSeries(new OwnCompanySeries())) =>
  new BatchDecoder(new SampleBatch(), limits).decode(bytes, agent, nowMs, new AdmissionReport())

test('a batch of more series than it may have points is refused, with points in them or without', () => {
  expect(decode(repeated([0x1a, 0], 20_000))).toBe(null)
  expect(decode(repeated([0x1a, 0], 20_001))).toBe('too_many_series')
  expect(decode(repeated([0x1a, 0], 4 * MIB))).toBe('too_many_series')
  const known = new AgentSeries(new OwnCompanySeries())
  known.add({ lo: 1, hi: 2 }, 1, 0)
  expect(decode(repeated([0x1a, 0], 20_001), known)).toBe('too_many_series')
})

test('a batch of millions of names, labels or unknown fields is refused', () => {
  for (const unit of [
    [0x0a, 0],
    [0x12, 0],
    [0x12, 3, 0x0a, 1, 0x61],
    [0x78, 1],
  ])
    expect(decode(repeated(unit, 600_000, 0x1a))).toBe('too_many_series')
  expect(decode(repeated([0x78, 1], 600_000))).toBe('too_many_series')
  expect(decode(repeated([0x22, 0], 600_000))).toBe('too_many_series')
  // The sequence number and the time, again and again, and as many fields of the agent's own report.
  for (const unit of [
    [0x08, 1],
    [0x10, 1],
  ])
    expect(decode(repeated(unit, 600_000))).toBe('too_many_series')
  for (const unit of [
    [0x30, 1],
    [0x52, 0],
  ])
    expect(decode(repeated(unit, 600_000, 0x22))).toBe('too_many_series')
  expect(decode(repeated([0x78, 1], 100_000))).toBe(null)
})

let rig: Rig
beforeAll(async () => {
  rig = await startRig({
    agents: [
      agentRecord(),
      agentRecord({
        agent_id: id('pending'),
        server_id: id('draft'),
        state: 'pending',
        token_hash: new Bun.CryptoHasher('sha256').update(pendingToken).digest('hex'),
      }),
    ],
  })
})
afterAll(() => rig.stop())

const post = (bytes: Uint8Array<ArrayBuffer>, token?: string) =>
  rig.call('/metrics', {
    method: 'POST',
    headers: { 'content-type': 'application/x-protobuf', 'content-encoding': 'zstd' },
    body: Bun.zstdCompressSync(bytes),
    ...(token === undefined ? {} : { token }),
  })

/** A batch of 8 MiB that holds nothing: one field that nobody knows. */
const large = () => repeated([0], 8 * MIB - 5, 0x7a)

test('8 MiB of empty series answer 413', async () => {
  const answer = await post(repeated([0x1a, 0], 4 * MIB))
  expect(await errorOf(answer)).toBe('413 too_large')
})

test('an agent whose batches inflate to more than its share answers 429 with Retry-After, and is served after it', async () => {
  rig.clock.nowMs = START_MS + 3_600_000
  for (let times = 0; times < 3; times++) expect((await post(large())).status).toBe(200)
  const refused = await rig.send({ seq: 1n, series: someSeries(3, rig.clock.nowMs) })
  expect(await errorOf(refused)).toBe('429 rate_limited')
  // 24 MiB of 20 at once, 8 MiB a minute.
  expect(refused.headers.get('retry-after')).toBe('30')
  rig.clock.nowMs += 30_000
  expect((await ackOf(await rig.send({ seq: 1n, series: someSeries(3, rig.clock.nowMs) }))).acceptedPoints).toBe(3)
})

test('a pending agent has less: nothing of it is kept', async () => {
  rig.clock.nowMs = START_MS + 7_200_000
  for (let times = 0; times < 2; times++) expect((await post(large(), pendingToken)).status).toBe(200)
  expect(await errorOf(await post(large(), pendingToken))).toBe('429 rate_limited')
  rig.clock.nowMs += 150_000
  expect((await rig.send({ seq: 1n }, { token: pendingToken })).status).toBe(200)
})
