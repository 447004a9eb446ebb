// What agents say of themselves, from their batches to the report to the hub: in one thread, and in listener threads.
import { expect, test } from 'bun:test'
import { AgentStatement } from '../../apps/collector/ingest/agents/agent-statement.ts'
import { until } from '../support/until.ts'
import { ackOf, agentRecord, type Rig, startRig } from './rig.ts'
import { ScriptedHub } from './scripted-hub.ts'

const keys = {
  'seen.interval': '100ms',
  'ingest.limits.metrics_burst': 1_000_000,
  'ingest.limits.metrics_per_minute': 1_000_000,
}
type Entry = Record<string, unknown>
const entriesOf = (hub: ScriptedHub): Entry[] =>
  hub.to('/agents/seen').flatMap(({ body }) => (body as { agents: Entry[] }).agents)
/** What an entry has beside id, time and versions. */
const newsOf = ({ agent_id: _, last_seen_at: __, agent_version: ___, proto_version: ____, ...news }: Entry) => news

type Stats = { bufferBytes?: bigint; bufferBatches?: number; warnings?: string[] }

/** Sends a batch, a second on, and waits until it is reported; resolves to what the report says of the agent. */
async function reportOf(rig: Rig, stats: Stats | null): Promise<Entry> {
  if (rig.clock.nowMs > 0) rig.clock.nowMs += 1_000
  const before = entriesOf(rig.hub).length
  await ackOf(await rig.send(stats === null ? {} : { stats: { intervalSeconds: 30, ...stats } }))
  const reported = await until('the report', () => entriesOf(rig.hub).slice(before).at(-1))
  return newsOf(reported)
}

for (const threads of [0, 2]) {
  const how = threads === 0 ? 'one thread' : 'listener threads'

  test(`[SYNC-040] what an agent says of itself is told to the hub where it is news (${how})`, async () => {
    const hub = new ScriptedHub()
    const rig = await startRig({ keys, threads, hub })
    rig.clock.nowMs = Date.now()
    const now = () => new Date(rig.clock.nowMs).toISOString()
    const waits = { bufferBytes: 40_000n, bufferBatches: 12 }
    expect(await reportOf(rig, null)).toEqual({})
    expect(await reportOf(rig, waits)).toEqual({ buffer_bytes: 40_000, buffer_batches: 12 })
    expect(await reportOf(rig, waits)).toEqual({})
    // The one batch in the buffer is the one that is sent.
    expect(await reportOf(rig, { bufferBytes: 3_000n, bufferBatches: 1 })).toEqual({
      buffer_bytes: 0,
      buffer_batches: 0,
    })
    expect(await reportOf(rig, { bufferBytes: 3_100n, bufferBatches: 1 })).toEqual({})
    expect(await reportOf(rig, { bufferBytes: 2n ** 64n - 1n, bufferBatches: 2 ** 32 - 1 })).toEqual({
      ...{ buffer_bytes: Number.MAX_SAFE_INTEGER, buffer_batches: 2 ** 32 - 1 },
    })
    expect(await reportOf(rig, {})).toEqual({ buffer_bytes: 0, buffer_batches: 0 })

    // The warning comes by a message of its own from a listener thread, and so perhaps with the report after.
    const before = entriesOf(hub).length
    const toldOf = () =>
      entriesOf(hub)
        .slice(before)
        .filter(entry => 'last_warning' in entry)
        .map(newsOf)
    await reportOf(rig, { warnings: ['first', 'remote config: interval_seconds 5 is not 10 to 300'] })
    const warning = { last_warning: 'remote config: interval_seconds 5 is not 10 to 300', last_warning_at: now() }
    await until('the warning is told', () => toldOf().length > 0)
    // Said again in each batch, it is told no more.
    rig.clock.nowMs += 60_000
    expect(await reportOf(rig, { warnings: ['remote config: interval_seconds 5 is not 10 to 300'] })).toEqual({})
    expect(await reportOf(rig, {})).toEqual({})
    expect(toldOf()).toEqual([warning])
    // It holds still after an hour; what follows is hostile.
    rig.clock.nowMs += 3_600_000
    await reportOf(rig, { warnings: [warning.last_warning] })
    await until('it is told again', () => toldOf().length === 2)
    expect(toldOf()[1]).toMatchObject({ ...warning, last_warning_at: now() })
    await reportOf(rig, { warnings: [`<script>\u0000\u202e${'x'.repeat(10_000)}`] })
    await until('the hostile one is told', () => toldOf().length === 3)
    expect(toldOf()[2]).toMatchObject({ last_warning: `<script> ${'x'.repeat(491)}`, last_warning_at: now() })
    await rig.stop()

    // A collector that has just started knows nothing of what was told.
    const again = await startRig({ keys, threads, hub, agents: [] })
    const after = entriesOf(hub).length
    await reportOf(again, { warnings: [warning.last_warning] })
    await until('the warning is told anew', () =>
      entriesOf(hub)
        .slice(after)
        .some(entry => 'last_warning' in entry),
    )
    const news = Object.assign({}, ...entriesOf(hub).slice(after).map(newsOf))
    expect(news).toMatchObject({ buffer_bytes: 0, buffer_batches: 0, last_warning: warning.last_warning })
    await again.stop()
    await hub.stop()
  }, 120_000)
}

test('[ING-002] of a pending agent it is told too', async () => {
  const rig = await startRig({ keys, agents: [agentRecord({ state: 'pending' })] })
  expect(await reportOf(rig, { bufferBytes: 9_000n, bufferBatches: 3, warnings: ['w'] })).toEqual({
    ...{ buffer_bytes: 9_000, buffer_batches: 3, last_warning: 'w', last_warning_at: expect.any(String) },
  })
  await rig.stop()
})

test('bytes of a warning that were made a text are not made one again', () => {
  const statement = new AgentStatement()
  const encoder = new TextEncoder()
  const said = (text: string, nowMs: number): [isNew: boolean, text: string, atMs: number] => {
    const bytes = encoder.encode(text)
    statement.isWarningNew = false
    const header = { seq: 0, seqLow: 0, seqHigh: 0, sentAtMs: 0, intervalSeconds: 30, bufferBytes: 0, bufferBatches: 0 }
    statement.take({ ...header, warningAt: 0, warningBytes: bytes.length }, bytes, nowMs)
    return [statement.isWarningNew, statement.lastWarning, statement.lastWarningAtMs]
  }
  expect(said('a', 1_000)).toEqual([true, 'a', 1_000])
  expect(said('a', 2_000)).toEqual([false, 'a', 1_000])
  expect(said('b', 3_000)).toEqual([true, 'b', 3_000])
  expect(said('\u0000\n', 4_000)).toEqual([false, 'b', 3_000])
  expect(said('b', 5_000)).toEqual([true, 'b', 5_000])
  expect(said('b', 3_605_000)).toEqual([true, 'b', 3_605_000])
  // No more than so many bytes are looked at, whatever follows.
  expect(said('y'.repeat(1_000_000), 3_606_000)).toEqual([true, 'y'.repeat(500), 3_606_000])
})

test('a warning whose batch the bus refused is noted anew by the thread that has the agent next', () => {
  const bytes = new TextEncoder().encode('w')
  const header = { seq: 0, seqLow: 0, seqHigh: 0, sentAtMs: 0, intervalSeconds: 30, bufferBytes: 0, bufferBatches: 0 }
  const take = (statement: AgentStatement, nowMs: number): boolean => {
    statement.take({ ...header, warningAt: 0, warningBytes: bytes.length }, bytes, nowMs)
    return statement.isWarningNew
  }
  const [first, second, third] = [new AgentStatement(), new AgentStatement(), new AgentStatement()]
  expect(take(first, 1_000)).toBe(true)
  second.attach(first.detach())
  expect([first.isWarningNew, take(second, 2_000)]).toEqual([false, true])
  // Told of by now.
  second.isWarningNew = false
  third.attach(second.detach())
  expect(take(third, 3_000)).toBe(false)
})
