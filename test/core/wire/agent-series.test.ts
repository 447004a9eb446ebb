import { expect, test } from 'bun:test'
import { create, toBinary } from '@bufbuild/protobuf'
import { SampleBatch } from '../../../core/series/sample-batch.ts'
import { AdmissionReport } from '../../../core/wire/admission-report.ts'
import { AgentSeries, OwnCompanySeries } from '../../../core/wire/agent-series.ts'
import { BatchDecoder } from '../../../core/wire/decode-and-admit.ts'
import { MetricsBatchSchema } from '../../../proto/gen/svc/agent/v1/agent_pb.ts'

const START_MS = 1_795_000_000_000
const HOUR_MS = 3_600_000

/** An agent with its decoder, at a limit of `seriesMax`. */
function makeAgent(seriesMax = 3, company = new OwnCompanySeries()) {
  const batch = new SampleBatch()
  const decoder = new BatchDecoder(batch, {
    seriesPerAgentMax: seriesMax,
    seriesPerCompanyMax: 0,
    pointsMax: 20_000,
    pointAgeMaxMs: 24 * HOUR_MS,
    pointAheadMaxMs: 300_000,
  })
  const agent = new AgentSeries(company)
  const send = (names: readonly (string | Record<string, string>)[], nowMs = START_MS) => {
    const report = new AdmissionReport()
    const series = names.map(name => ({
      name: typeof name === 'string' ? name : 'labelled',
      labels: typeof name === 'string' ? {} : name,
      points: [{ tsMs: BigInt(nowMs), value: 1 }],
    }))
    const refusal = decoder.decode(
      toBinary(MetricsBatchSchema, create(MetricsBatchSchema, { series })),
      agent,
      nowMs,
      report,
    )
    return {
      refusal,
      accepted: batch.pointCount,
      dropped: report.droppedPoints,
      defined: batch.definitions.map(d => d.key),
    }
  }
  return { agent, batch, decoder, send, company }
}

test('[ING-019] [ING-022] at the limit known series go on, new ones are dropped', () => {
  const { send, company } = makeAgent(3)
  expect(send(['a', 'b', 'c'])).toMatchObject({ accepted: 3, dropped: 0, defined: ['a', 'b', 'c'] })
  expect(send(['d', 'a', 'b', 'c'])).toMatchObject({ accepted: 3, dropped: 1, defined: [] })
  expect(company.inUse).toBe(3)
})

test('[ING-023] an hour of silence frees a place, and not a second earlier', () => {
  const { send, company } = makeAgent(3)
  send(['a', 'b', 'c'])
  send(['b', 'c'], START_MS + 60_000)
  expect(send(['d'], START_MS + HOUR_MS - 1000)).toMatchObject({ accepted: 0, dropped: 1 })
  expect(send(['d'], START_MS + HOUR_MS)).toMatchObject({ accepted: 1, dropped: 0, defined: ['d'] })
  expect(send(['b', 'c'], START_MS + HOUR_MS)).toMatchObject({ accepted: 2, defined: [] })
  expect(send(['a'], START_MS + HOUR_MS)).toMatchObject({ accepted: 0, dropped: 1 })
  expect(company.inUse).toBe(3)
})

test('silent series give their places back to the company without a new one asking', () => {
  const { agent, send, company } = makeAgent(10)
  send(['a', 'b', 'c'])
  send(['a'], START_MS + 1_800_000)
  agent.expire((START_MS + HOUR_MS) / 1000)
  expect(company.inUse).toBe(1)
  agent.release()
  expect(company.inUse).toBe(0)
})

test('a refused batch leaves the table as it was', () => {
  const { agent, decoder, send, company } = makeAgent(3)
  send(['a'])
  const bytes = toBinary(
    MetricsBatchSchema,
    create(MetricsBatchSchema, { series: [{ name: 'b', points: [{ tsMs: BigInt(START_MS), value: 1 }] }] }),
  )
  const broken = new Uint8Array([...bytes, 0x1a, 0x7f])
  expect(decoder.decode(broken, agent, START_MS, new AdmissionReport())).toBe('malformed')
  expect(agent.count).toBe(1)
  expect(company.inUse).toBe(1)
  agent.announcesAll = false
  expect(send(['a', 'b'])).toMatchObject({ accepted: 2, defined: ['b'] })
})

test('the order of labels on the wire makes no other series', () => {
  const { agent, send } = makeAgent(10)
  const labels = { mount: '/', device: 'sda', fstype: 'ext4' }
  send([labels])
  for (const order of [
    ['device', 'mount', 'fstype'],
    ['fstype', 'device', 'mount'],
    ['mount', 'fstype', 'device'],
  ] as const)
    expect(send([Object.fromEntries(order.map(key => [key, labels[key]]))])).toMatchObject({ accepted: 1, defined: [] })
  expect(agent.count).toBe(1)
})

test('many forms of few series are forgotten and learnt again, never mixed up', () => {
  const { agent, batch, send } = makeAgent(10)
  const keys = ['alpha', 'beta', 'gamma', 'delta', 'epsilon']
  const ids = new Set<string>()
  for (let round = 0; round < 120; round++) {
    const order = keys.map((_, index) => keys[(index * ((round % 4) + 1) + round) % 5]!)
    send([Object.fromEntries(order.map(key => [key, '1']))])
    ids.add(`${batch.idLo[0]}:${batch.idHi[0]}`)
  }
  expect(ids.size).toBe(1)
  expect(agent.count).toBe(1)
})

test('all definitions go out again when they are announced', () => {
  const { agent, send } = makeAgent(10)
  send(['a', 'b'])
  expect(send(['a', 'b']).defined).toEqual([])
  agent.announcesAll = true
  expect(send(['a', 'b', 'c']).defined).toEqual(['a', 'b', 'c'])
})

test('one agent can hold tens of thousands of series', () => {
  const { agent, send } = makeAgent(60_000)
  const names = Array.from({ length: 15_000 }, (_, index) => `m${index}`)
  expect(send(names).accepted).toBe(15_000)
  expect(send([...names].reverse())).toMatchObject({ accepted: 15_000, defined: [] })
  expect(agent.count).toBe(15_000)
})
