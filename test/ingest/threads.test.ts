import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'
import type { PublishRefusal } from '../../apps/collector/bus/bus.ts'
import { sha256Hex } from '../../core/series/hash.ts'
import { MetricsAckSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { until } from '../support/until.ts'
import { type FreshResponse, sendFresh } from './connections.ts'
import { agentId, agentRecord, type Rig, type RigOptions, someSeries, startRig, token } from './rig.ts'
import { id } from './scripted-hub.ts'

const unlimited = { 'ingest.limits.metrics_burst': 1_000_000, 'ingest.limits.metrics_per_minute': 1_000_000 }

async function withThreads(options: RigOptions, run: (rig: Rig) => Promise<void>): Promise<void> {
  const rig = await startRig({ threads: 2, ...options })
  try {
    await run(rig)
  } finally {
    await rig.stop()
  }
}

const fresh = (rig: Rig, batch: Parameters<typeof sendFresh>[2], asToken = token) =>
  sendFresh(rig.ingest.url, asToken, batch)

const times = <T>(count: number, run: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => run(index))

const ack = (answer: FreshResponse) => fromBinary(MetricsAckSchema, answer.body)

async function handOvers(rig: Rig): Promise<number> {
  return Number(/^svc_ingest_hand_overs_total (\d+)/m.exec(await rig.metricsText())?.[1] ?? 0)
}

/** Agents 0 … count - 1 of one company, each on a server of its own, with token `agt_<index>`. */
const manyAgents = (count: number) =>
  times(count, index =>
    agentRecord({
      agent_id: id(`agent ${index}`),
      server_id: id(`server ${index}`),
      token_hash: sha256Hex(`agt_${index}`),
      sync_version: index + 1,
    }),
  )

test('[ING-036] [ING-037] the rate of an agent is exact over connections that meet different threads', () =>
  withThreads({}, async rig => {
    rig.clock.nowMs = Date.now()
    const answers = await Promise.all(times(80, index => fresh(rig, { seq: BigInt(index) })))
    expect(answers.filter(({ status }) => status === 200).length).toBe(10)
    expect(answers.filter(({ status }) => status === 429).length).toBe(70)
    for (const { status, head } of answers) if (status === 429) expect(head.toLowerCase()).toContain('retry-after: 15')
    rig.clock.nowMs += 30_000
    const later = await Promise.all(times(40, () => fresh(rig, {})))
    expect(later.filter(({ status }) => status === 200).length).toBe(2)
    expect(await handOvers(rig)).toBeGreaterThan(0)
  }))

test('[ING-019] [ING-020] the series limit of an agent is exact over connections that meet different threads', () =>
  withThreads({ keys: { ...unlimited, 'ingest.limits.max_series_per_agent': 500 } }, async rig => {
    const all = someSeries(1200)
    const answers = await Promise.all(
      times(60, index => fresh(rig, { series: all.slice(index * 20, index * 20 + 20) })),
    )
    const accepted = answers.reduce((sum, answer) => sum + ack(answer).acceptedPoints, 0)
    const dropped = answers.reduce((sum, answer) => sum + ack(answer).droppedPoints, 0)
    expect([accepted, dropped]).toEqual([500, 700])
    const keys = (await rig.published()).flatMap(batch => batch.keys)
    expect(new Set(keys).size).toBe(500)
    expect(await rig.metricsText()).toContain('svc_ingest_active_series 500')
    expect(await handOvers(rig)).toBeGreaterThan(0)
    // The same series again, over other connections: known in whatever thread, and not defined again.
    const before = (await rig.published()).length
    const kept = keys.map(key => Number(/core="(\d+)"/.exec(key)?.[1])).slice(0, 20)
    const again = await Promise.all(times(20, () => fresh(rig, { series: kept.map(core => all[core]!) })))
    expect(again.map(answer => ack(answer).acceptedPoints)).toEqual(times(20, () => 20))
    expect((await rig.published()).slice(before).flatMap(batch => batch.keys)).toEqual([])
  }))

test('[ING-024] [ING-025] [OPS-005] the series limit of a company is exact over all threads', () =>
  withThreads(
    { keys: { ...unlimited, 'ingest.limits.max_series_per_company': 333 }, agents: manyAgents(20) },
    async rig => {
      const answers = await Promise.all(
        times(100, index =>
          fresh(rig, { series: someSeries(10).map(s => ({ ...s, name: `m${index}` })) }, `agt_${index % 20}`),
        ),
      )
      expect(answers.reduce((sum, answer) => sum + ack(answer).acceptedPoints, 0)).toBe(333)
      expect(await rig.metricsText()).toContain('svc_ingest_active_series 333')
      // What agents lose is there for the others.
      rig.registry.revoke(id('agent 0'))
      rig.registry.revoke(id('agent 1'))
      await until('the places', async () => !(await rig.metricsText()).includes('svc_ingest_active_series 333'))
      const text = await rig.metricsText()
      const left = Number(/^svc_ingest_active_series (\d+)/m.exec(text)?.[1])
      const more = await fresh(rig, { series: someSeries(400).map(s => ({ ...s, name: 'more' })) }, 'agt_2')
      expect(ack(more).acceptedPoints).toBe(333 - left)
    },
  ))

test('[BUS-004] the bus keeps the order of the batches of a server, whichever threads they meet', () =>
  withThreads({ keys: unlimited, agents: manyAgents(12) }, async rig => {
    await Promise.all(
      times(12, async agent => {
        for (let seq = 0; seq < 25; seq++) {
          const answer = await fresh(rig, { seq: BigInt(seq), series: someSeries(5) }, `agt_${agent}`)
          expect(answer.status).toBe(200)
        }
      }),
    )
    const batches = await rig.published()
    for (let agent = 0; agent < 12; agent++)
      expect(batches.filter(batch => batch.agentId === id(`agent ${agent}`)).map(batch => batch.seq)).toEqual(
        times(25, seq => seq),
      )
    expect(await handOvers(rig)).toBeGreaterThan(12)
  }))

test('a batch that the bus did not take is defined again in whatever thread comes next', async () => {
  let refuseWith: PublishRefusal | null = null
  await withThreads(
    {
      keys: unlimited,
      bus: writer => ({
        publish: (server, entry) => (refuseWith ? Promise.resolve(refuseWith) : writer.publish(server, entry)),
        stats: () => writer.stats(),
        close: () => writer.close(),
      }),
    },
    async rig => {
      for (let round = 0; round < 12; round++) {
        const series = someSeries(3).map(s => ({ ...s, name: `round_${round}` }))
        refuseWith = round % 2 === 0 ? 'full' : 'failed'
        const refused = await fresh(rig, { series })
        expect([refused.status, refused.head.toLowerCase().includes('retry-after: 30')]).toEqual([503, true])
        refuseWith = null
        expect((await fresh(rig, { series })).status).toBe(200)
        const last = (await rig.published()).at(-1)
        expect(last?.keys.filter(key => key.startsWith(`round_${round}`)).length).toBe(3)
      }
      expect(await rig.metricsText()).toContain('svc_bus_dropped_total 12')
      expect(await handOvers(rig)).toBeGreaterThan(0)
    },
  )
})

test('[REG-015] [REG-016] a revocation holds in every thread at once, and so does a new token', () =>
  withThreads({ keys: unlimited, agents: manyAgents(10) }, async rig => {
    await Promise.all(times(60, index => fresh(rig, {}, `agt_${index % 10}`)))
    for (let agent = 0; agent < 5; agent++) {
      rig.registry.revoke(id(`agent ${agent}`))
      const after = await Promise.all(times(8, () => fresh(rig, {}, `agt_${agent}`)))
      expect(after.map(({ status }) => status)).toEqual(times(8, () => 403))
    }
    const record = rig.registry.byAgent(id('agent 7'))!
    rig.registry.push({ ...record, version: 2, tokenHash: sha256Hex('agt_new') })
    const old = await Promise.all(times(8, () => fresh(rig, {}, 'agt_7')))
    expect(old.every(({ status }) => status === 401)).toBe(true)
    const renewed = await Promise.all(times(8, () => fresh(rig, {}, 'agt_new')))
    expect(renewed.map(({ status }) => status)).toEqual(times(8, () => 200))
  }))

test('an agent that moves to another server while its connections hop starts its series anew', () =>
  withThreads({ keys: unlimited }, async rig => {
    for (let round = 0; round < 8; round++) {
      await Promise.all(times(6, () => fresh(rig, { series: someSeries(4) })))
      const record = rig.registry.byAgent(agentId)!
      rig.registry.push({ ...record, version: record.version + 1, serverId: id(`server ${round}`) })
      expect((await fresh(rig, { series: someSeries(4) })).status).toBe(200)
      const last = (await rig.published()).at(-1)
      expect([last?.serverId, last?.keys.length]).toEqual([id(`server ${round}`), 4])
      expect(await rig.metricsText()).toContain('svc_ingest_active_series 4')
    }
  }))

test('[BUS-005] what was acknowledged is on the bus after a stop under load, and nothing twice', async () => {
  const rig = await startRig({ threads: 2, keys: unlimited, agents: manyAgents(16) })
  const acknowledged = new Set<string>()
  let stopped: Promise<void> | null = null
  try {
    await Promise.all(
      times(16, async agent => {
        for (let seq = 0; seq < 200; seq++) {
          const answer = await fresh(rig, { seq: BigInt(seq), series: someSeries(3) }, `agt_${agent}`).catch(() => null)
          if (answer?.status === 200) acknowledged.add(`${id(`agent ${agent}`)} ${seq}`)
          if (acknowledged.size > 150) stopped ??= rig.ingest.stop()
          if (stopped && answer?.status !== 200) return
        }
      }),
    )
    await stopped
    const published = (await rig.published()).map(batch => `${batch.agentId} ${batch.seq}`)
    expect(new Set(published).size).toBe(published.length)
    expect([...acknowledged].filter(one => !published.includes(one))).toEqual([])
    expect(acknowledged.size).toBeGreaterThan(150)
  } finally {
    await rig.stop()
  }
})

test('[SYNC-041] agents that were seen in any thread are told to the hub, once each', () =>
  withThreads({ keys: { ...unlimited, 'seen.interval': '200ms' }, agents: manyAgents(10) }, async rig => {
    const beforeMs = Date.now()
    await Promise.all(times(40, index => fresh(rig, {}, `agt_${index % 10}`)))
    const seen = () =>
      rig.hub.to('/agents/seen').flatMap(call => (call.body as { agents: Record<string, unknown>[] }).agents)
    await until('all of them', () => new Set(seen().map(entry => entry.agent_id)).size === 10)
    for (const entry of seen()) {
      expect(entry).toMatchObject({ agent_version: '1.2.3', proto_version: 1 })
      expect(Date.parse(String(entry.last_seen_at))).toBeGreaterThanOrEqual(beforeMs - 1)
    }
    expect(rig.ingest.agentsSeen(60_000)).toBe(10)
  }))

test('a listener thread that dies is told to its process, which ends', async () => {
  const rig = await startRig({ threads: 2, listenerThread: new URL('./dying-listener-thread.ts', import.meta.url) })
  await fresh(rig, {}).catch(() => null)
  await until('the failure', () => rig.failures.length > 0)
  expect(rig.failures[0]?.message).toMatch(/^listener thread \d failed: /)
  rig.failures.length = 0
  await rig.stop()
}, 120_000)

test('every test of the agent API holds with two listener threads', async () => {
  const names = ['ack', 'enroll', 'inventory', 'lookup', 'metrics', 'transport', 'update'].map(
    name => `${name}.test.ts`,
  )
  const files = readdirSync(import.meta.dir).filter(name => names.includes(name))
  expect(files.length).toBe(names.length)
  const child = Bun.spawn(['bun', 'test', '--timeout', '60000', ...files.map(name => join(import.meta.dir, name))], {
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, INGEST_TEST_THREADS: '2' },
  })
  const said = await new Response(child.stderr).text()
  const failed = said.split('\n').filter(line => line.startsWith('(fail)'))
  expect(failed).toEqual([])
  expect(await child.exited).toBe(0)
}, 180_000)
