import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { createAgentsSync } from '../../apps/collector/hub-link/agents-sync.ts'
import { FeedSync } from '../../apps/collector/hub-link/feed-sync.ts'
import { Heartbeat } from '../../apps/collector/hub-link/heartbeat.ts'
import { type SeenAgent, SeenReporter } from '../../apps/collector/hub-link/report-seen.ts'
import type { RawRecord } from '../../apps/collector/store/feed-store.ts'
import { FileFeedStore } from '../../apps/collector/store/file-feed-store.ts'
import { RegistryStore } from '../../apps/collector/store/registry/file-registry-store.ts'
import { AgentRegistry } from '../../apps/collector/store/registry/registry.ts'
import { createCollectorMetrics } from '../../apps/collector/telemetry.ts'
import { compileRule } from '../../core/alerting/rules/compile-rule.ts'
import type { RawRule } from '../../core/alerting/rules/rule.ts'
import { limits } from '../../core/limits.ts'
import { sha256Hex } from '../../core/series/hash.ts'
import { isGone } from '../../core/sync/gone-records.ts'
import { until } from '../support/until.ts'
import { agentId, agentRecord, someSeries, startRig } from './rig.ts'
import {
  clientOf,
  type HubClientParts,
  type HubRequest,
  hubToken,
  id,
  type ScriptedAgent,
  ScriptedHub,
} from './scripted-hub.ts'

let hub: ScriptedHub
let directory = ''
let logLines: Record<string, unknown>[] = []
const metrics = createCollectorMetrics('0', 'worker')
const log = pino({ level: 'info' }, { write: (line: string) => void logLines.push(JSON.parse(line)) })
const clock = { nowMs: 0 }
const nowMs = () => (clock.nowMs > 0 ? clock.nowMs : Date.now())

beforeEach(() => {
  hub = new ScriptedHub()
  directory = mkdtempSync(join(tmpdir(), 'svc-feeds-'))
  logLines = []
  clock.nowMs = 0
})
afterEach(async () => {
  await hub.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** Of agents that say nothing of themselves. */
const statement: SeenAgent['statement'] = { bufferBytes: -1, bufferBatches: 0, lastWarning: '', lastWarningAtMs: 0 }

const makeClient = (changes: Partial<HubClientParts> = {}) =>
  clientOf(hub, log, { onClockSkew: seconds => metrics.clockSkew.set(seconds), ...changes })

/** A sync of rules and every set that it put in force. */
function makeRules(feed: 'rules' | 'silences' = 'rules') {
  const applied: string[][] = []
  const sync = new FeedSync({
    feed,
    intervalMs: 3_600_000,
    hub: makeClient(),
    store: new FileFeedStore(directory, feed, log),
    isGone: isGone[feed],
    onApplied: (records: ReadonlyMap<string, RawRecord>) => void applied.push([...records.keys()].sort()),
    log,
    metrics,
    nowMs,
  })
  return { sync, applied }
}
const rule = (name: string, syncVersion: number, changes: Record<string, unknown> = {}) => ({
  id: name,
  company_id: id('company'),
  sync_version: syncVersion,
  enabled: true,
  deleted: false,
  ...changes,
})

test('[SYNC-001] [SYNC-004] [SYNC-005] [SYNC-006] [SYNC-031] rules are pulled at the start with limit=500, page after page, and put in force in one piece', async () => {
  for (let index = 1; index <= 1200; index++) hub.feeds.rules!.push(rule(`rule-${index}`, index * 3, { version: 1 }))
  const { sync, applied } = makeRules()
  expect(await sync.start()).toBe('applied')
  expect(hub.to('/rules').map(request => [request.query.get('since'), request.query.get('limit')])).toEqual([
    ['0', '500'],
    ['1500', '500'],
    ['3000', '500'],
  ])
  expect(applied.map(set => set.length)).toEqual([0, 1200])
  expect(sync.status()).toMatchObject({ since: 3600, lastSyncError: null })
  await sync.stop()
})

test('[SYNC-016] [SYNC-007] [SYNC-008] [SYNC-009] [SYNC-014] [SYNC-015] [SYNC-019] an error in mid-way keeps set and cursor', async () => {
  for (const feed of ['rules', 'silences'] as const) {
    hub.script = () => null
    hub.feeds[feed]!.push(rule('a', 1))
    const { sync, applied } = makeRules(feed)
    await sync.start()
    for (let index = 2; index <= 700; index++) hub.feeds[feed]!.push(rule(`r${index}`, index))
    hub.script = ({ query }) => (query.get('since') === '501' ? hub.error(500, 'server_error') : null)
    expect(await sync.reload()).toBe('unavailable')
    expect(applied).toEqual([[], ['a']])
    expect(sync.status()).toMatchObject({ since: 1, lastSyncError: 'the hub answered 500 server_error' })
    hub.script = () => null
    expect(await sync.reload()).toBe('applied')
    expect(applied.at(-1)).toHaveLength(700)
    await sync.stop()
  }
})

test('[SYNC-003] [SYNC-010] [SYNC-011] [SYNC-018] [SYNC-020] a reload takes in what came, and takes out disabled and deleted rules', async () => {
  hub.feeds.rules!.push(rule('a', 1), rule('b', 2), rule('c', 3))
  const { sync, applied } = makeRules()
  await sync.start()
  hub.feeds.rules!.push(rule('a', 4, { enabled: false }), rule('b', 5, { deleted: true }), rule('d', 6))
  expect(await sync.reload()).toBe('applied')
  expect(applied.at(-1)).toEqual(['c', 'd'])
  await sync.stop()
})

test('a reload during a pull is answered by a pull that began after it', async () => {
  const { sync, applied } = makeRules()
  let release = () => {}
  const held = new Promise<void>(settle => {
    release = settle
  })
  let isFirst = true
  hub.script = async () => {
    if (isFirst) {
      isFirst = false
      const answer = hub.ok({ rules: [], next_since: 0, more: false })
      await held
      return answer
    }
    return null as never
  }
  const first = sync.start()
  await until('the first pull is under way', () => hub.requests.length === 1)
  hub.feeds.rules!.push(rule('late', 1))
  const reloads = [sync.reload(), sync.reload()]
  release()
  expect(await Promise.all([first, ...reloads])).toEqual(['applied', 'applied', 'applied'])
  expect(applied.at(-1)).toEqual(['late'])
  expect(hub.requests).toHaveLength(2)
  await sync.stop()
})

test('[SYNC-012] [SYNC-013] [SYNC-021] a restart while the hub is down runs the last set, and goes on from its cursor', async () => {
  hub.feeds.rules!.push(rule('a', 1, { unknown_field: { kept: true } }), rule('b', 2))
  const before = makeRules()
  await before.sync.start()
  await before.sync.stop()
  const file = join(directory, 'rules.json')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(JSON.parse(readFileSync(file, 'utf8')).records[0].unknown_field).toEqual({ kept: true })

  await hub.stop()
  const after = makeRules()
  expect(after.applied).toEqual([['a', 'b']])
  expect(await after.sync.start()).toBe('unavailable')
  expect(after.applied).toEqual([['a', 'b']])
  expect(after.sync.isFilled).toBe(true)
  hub.restart()
  hub.requests.length = 0
  expect(await after.sync.reload()).toBe('applied')
  expect(hub.to('/rules')[0]?.query.get('since')).toBe('2')
  await after.sync.stop()
})

test('a saved feed that cannot be read is said and pulled anew', async () => {
  writeFileSync(join(directory, 'rules.json'), '{"format":1,"recor')
  hub.feeds.rules!.push(rule('a', 1))
  const { sync, applied } = makeRules()
  expect(await sync.start()).toBe('applied')
  expect(applied.at(-1)).toEqual(['a'])
  expect(logLines.some(line => String(line.msg).includes('cannot read a saved feed'))).toBe(true)
  await sync.stop()
})

test('[SYNC-002] [SYNC-017] [SYNC-022] without a call feeds are pulled at every interval', async () => {
  const sync = new FeedSync({
    feed: 'silences',
    intervalMs: 20,
    hub: makeClient(),
    store: new FileFeedStore(directory, 'silences', log),
    isGone: isGone.silences,
    onApplied: () => {},
    log,
    metrics,
    nowMs,
  })
  await sync.start()
  await until('three more pulls', () => hub.to('/silences').length >= 4)
  await sync.stop()
})

test('a hub whose answers are no pages changes nothing', async () => {
  hub.feeds.rules!.push(rule('a', 1))
  const { sync, applied } = makeRules()
  await sync.start()
  const answers = [
    () => new Response('<html>'),
    () => hub.ok({ rules: 'none', next_since: 1, more: false }),
    () => hub.ok({ rules: [], next_since: 'x', more: false }),
    () => hub.ok({ rules: [], next_since: 1, more: true }),
  ]
  for (const answer of answers) {
    hub.script = () => answer()
    expect(await sync.reload()).toBe('unavailable')
  }
  expect(applied.at(-1)).toEqual(['a'])
  expect(sync.status().since).toBe(1)
  await sync.stop()
})

test('401 and 403 about the collector’s own token are logged as errors and stand in last_sync_error', async () => {
  const { sync } = makeRules()
  hub.script = () => hub.error(403, 'forbidden')
  expect(await sync.start()).toBe('unavailable')
  expect(sync.status().lastSyncError).toBe('the hub answered 403 forbidden')
  expect(logLines.some(line => line.level === 50 && String(line.msg).includes('hub.token'))).toBe(true)
  expect(JSON.stringify(logLines)).not.toContain(hubToken)
  await sync.stop()
})

test('[OPS-001] [OPS-002] a clock that differs by more than 5 s is said once, and shown always', async () => {
  const f = async (offsetMs: number) => {
    logLines = []
    hub.clockOffsetMs = offsetMs
    const client = makeClient()
    await client.settings('x')
    await client.settings('x')
    const text = await metrics.scrape()
    const shown = Number(/^svc_hub_clock_skew_seconds (\S+)/m.exec(text)?.[1])
    expect(Math.abs(shown - offsetMs / 1000)).toBeLessThan(1)
    return logLines.filter(line => String(line.msg).includes('differ by more than 5 seconds')).length
  }
  expect(await f(0)).toBe(0)
  expect(await f(4900)).toBe(0)
  expect(await f(7000)).toBe(1)
  expect(await f(-7000)).toBe(1)
})

test('plain http to another server is refused', () => {
  expect(() => makeClient({ url: 'http://hub.example.net' })).toThrow('plain http')
  expect(() => makeClient({ url: 'http://hub.example.net', isPlainAllowed: true })).not.toThrow()
  expect(() => makeClient({ url: 'https://hub.example.net' })).not.toThrow()
})

test('a hub that does not answer in time cannot be reached', async () => {
  hub.script = () => new Promise<Response>(() => {})
  expect(await makeClient({ timeoutMs: 50 }).settings('x')).toEqual({
    kind: 'unreachable',
    message: 'no answer in time',
  })
})

test('[ING-002] [SYNC-040] [SYNC-042] agents that sent are reported as seen, once, with version and protocol', async () => {
  const rig = await startRig({ keys: { 'seen.interval': '100ms' } })
  await rig.send({ series: someSeries(1) })
  await until('the report', () => rig.hub.to('/agents/seen').length > 0)
  expect(rig.hub.to('/agents/seen')[0]?.body).toEqual({
    collector_id: id('collector'),
    agents: [
      { agent_id: agentId, last_seen_at: expect.stringMatching(/Z$/), agent_version: '1.2.3', proto_version: 1 },
    ],
  })
  await rig.send({})
  await until('the next report', () => rig.hub.to('/agents/seen').length > 1)
  expect(rig.hub.to('/agents/seen')).toHaveLength(2)
  await rig.stop()
})

test('an agent that is new, or was silent for long, is told of at once; the others wait for the report', async () => {
  const agent = (name: string): SeenAgent => ({
    record: { agentId: id(name) },
    lastSeenAtMs: 0,
    agentVersion: '',
    protoVersion: 0,
    statement,
    isUnreported: false,
  })
  const sees = (seen: SeenAgent, atMs: number) => Object.assign(seen, { lastSeenAtMs: atMs, isUnreported: true })
  const agents = [agent('steady'), agent('late')] as const
  const reporter = new SeenReporter({ agents: () => agents, hub: makeClient(), log, intervalMs: 3_600_000 })
  const told = () =>
    hub
      .to('/agents/seen')
      .map(({ body }) => (body as { agents: { agent_id: string }[] }).agents.map(each => each.agent_id))
  const [steady, late] = agents
  const startMs = Date.now()
  sees(steady, startMs)
  await until('the new agent is told of', () => told().length === 1)
  sees(steady, startMs + 30_000)
  sees(late, startMs + 30_000)
  await until('the second new agent is told of', () => told().length === 2)
  expect(told()).toEqual([[id('steady')], [id('late')]])
  expect(steady.isUnreported).toBe(true)
  // Back after ten minutes.
  sees(late, startMs + 630_000)
  await until('the return is told of', () => told().length === 3)
  expect(told()[2]).toEqual([id('late')])
  await reporter.stop()
  expect(told()[3]).toEqual([id('steady')])
}, 120_000)

test('at most 1000 agents go in a report, and what the hub did not take is news still', async () => {
  const agents: SeenAgent[] = Array.from({ length: 2500 }, (_, index) => ({
    record: { agentId: id(`a${index}`) },
    lastSeenAtMs: 1,
    agentVersion: '',
    protoVersion: 0,
    statement,
    isUnreported: true,
  }))
  const reporter = new SeenReporter({ agents: () => agents, hub: makeClient(), log, intervalMs: 3_600_000 })
  hub.script = () => (hub.requests.length === 2 ? hub.error(503, 'unavailable') : null)
  await reporter.report()
  expect(agents.filter(agent => agent.isUnreported)).toHaveLength(1500)
  await reporter.stop()
  expect(agents.filter(agent => agent.isUnreported)).toHaveLength(0)
  expect(hub.to('/agents/seen').map(request => (request.body as { agents: unknown[] }).agents.length)).toEqual([
    1000, 1000, 1000, 500,
  ])
})

test('[SYNC-040] [SYNC-042] one agent that the hub refuses, or that says nothing readable of itself, does not cost the others their report', async () => {
  const agents: SeenAgent[] = Array.from({ length: 700 }, (_, index) => ({
    record: { agentId: id(`agent-${index}`) },
    lastSeenAtMs: Date.now(),
    agentVersion: ['\u00a0', '1.0.0\u00ff', '', '2.0.0'][index] ?? '1.0.0',
    protoVersion: 1,
    statement,
    isUnreported: true,
  }))
  const bad = new Set([id('agent-5'), id('agent-600')])
  const taken = new Map<string, unknown>()
  hub.script = ({ path, body }) => {
    if (path !== '/agents/seen') return null
    const entries = (body as { agents: { agent_id: string; agent_version?: string }[] }).agents
    if (entries.some(entry => bad.has(entry.agent_id))) return hub.error(422, 'invalid_request')
    for (const entry of entries) taken.set(entry.agent_id, entry.agent_version)
    return hub.ok({ updated: entries.length, unknown: [] })
  }
  const reporter = new SeenReporter({ agents: () => agents, hub: makeClient(), log, intervalMs: 3_600_000 })
  await reporter.report()
  expect(taken.size).toBe(698)
  expect([0, 1, 2, 3, 4].map(index => taken.get(id(`agent-${index}`)))).toEqual([
    undefined,
    '1.0.0',
    undefined,
    '2.0.0',
    '1.0.0',
  ])
  expect(hub.to('/agents/seen').length).toBeLessThan(45)
  const said = logLines.filter(line => String(line.msg).includes('refuses a report'))
  expect(said.map(line => line.agent_ids)).toEqual([[id('agent-5')], [id('agent-600')]])
  // A hub that is gone in the middle of it leaves what it did not take as news.
  for (const agent of agents) agent.isUnreported = true
  hub.requests.length = 0
  hub.script = () => (hub.requests.length === 1 ? hub.error(422, 'invalid_request') : hub.error(503, 'unavailable'))
  await reporter.report()
  expect(agents.filter(agent => agent.isUnreported)).toHaveLength(700)
  hub.script = () => null
  await reporter.stop()
})

test('[SYNC-043] a heartbeat carries what the process knows', async () => {
  const heartbeat = new Heartbeat({
    hub: makeClient(),
    body: () => ({ version: '1', agent_count: 3, ingest_rps: 1.5, outbox_depth: 4 }),
    intervalMs: 20,
    log,
  })
  await until('two heartbeats', () => hub.to('/heartbeat').length >= 2)
  expect(hub.to('/heartbeat')[0]?.body).toEqual({
    version: '1',
    agent_count: 3,
    ingest_rps: 1.5,
    outbox_depth: 4,
    collector_id: id('collector'),
  })
  await heartbeat.stop()
})

/**
 * A page as text, with so much beside its records that it is larger than the collector reads; made anew for each
 * request.
 */
function hugePage(feed: string, record: Record<string, unknown>, more: boolean): Response {
  const [head, tail] = JSON.stringify({
    data: { [feed]: [{ ...record, padding: '@' }], next_since: record.sync_version, more },
    server_time: new Date().toISOString(),
  }).split('@')
  const block = new Uint8Array(1024 * 1024).fill(0x78)
  let blocks = limits.hubAnswerBytesMax / block.length + 1
  return new Response(
    new ReadableStream({
      start: controller => controller.enqueue(new TextEncoder().encode(head)),
      pull(controller) {
        if (blocks-- > 0) controller.enqueue(block)
        else {
          controller.enqueue(new TextEncoder().encode(tail))
          controller.close()
        }
      },
    }),
  )
}

/** Answers with a page that is too large whenever the record of that number is in it. */
const scriptHuge =
  (feed: string, syncVersion: number) =>
  ({ path, query }: HubRequest): Response | null => {
    if (path !== `/${feed}`) return null
    const since = Number(query.get('since'))
    const after = hub.feeds[feed]!.filter(record => Number(record.sync_version) > since)
    const page = after.slice(0, Number(query.get('limit')))
    const huge = page.find(record => record.sync_version === syncVersion)
    return huge ? hugePage(feed, page.length === 1 ? huge : page[0]!, after.length > page.length) : null
  }
const countOfSkipped = async (feed: string, reason: string) => {
  const line = (await metrics.scrape())
    .split('\n')
    .find(each => each.startsWith(`svc_sync_skipped_total{feed="${feed}",reason="${reason}"`))
  return Number(line?.split(' ').at(-1))
}

test('[SYNC-005] [SYNC-007] [SYNC-031] one record that is too large to be read is skipped and told of; all others are in force, and the version before it is not', async () => {
  for (let index = 1; index <= 20; index++) hub.feeds.rules!.push(rule(id(`r${index}`), index, { version: 1 }))
  const running: RawRule[][] = []
  const sync = new FeedSync({
    feed: 'rules',
    intervalMs: 3_600_000,
    hub: makeClient(),
    store: new FileFeedStore(directory, 'rules', log),
    isGone: isGone.rules,
    onApplied: records => void running.push([...records.values()] as unknown as RawRule[]),
    log,
    metrics,
    nowMs,
  })
  expect(await sync.start()).toBe('applied')
  const skipped = await countOfSkipped('rules', 'too_large')
  for (let index = 21; index <= 40; index++) hub.feeds.rules!.push(rule(id(`r${index - 10}`), index, { version: 2 }))
  hub.script = scriptHuge('rules', 27)
  hub.requests.length = 0
  expect(await sync.reload()).toBe('applied')
  expect(sync.status()).toMatchObject({ since: 40, lastSyncError: null })
  expect(hub.to('/rules')[0]?.query.get('limit')).toBe('500')
  const set = new Map(running.at(-1)!.map(record => [record.id, record]))
  expect(set.size).toBe(30)
  for (let index = 11; index <= 30; index++)
    expect([set.get(id(`r${index}`))?.sync_version, set.get(id(`r${index}`))?.version]).toEqual([
      index + 10,
      index === 17 ? (undefined as never) : 2,
    ])
  expect(compileRule(set.get(id('r17')))).toMatchObject({
    kind: 'rejected',
    rejected: { rule_id: id('r17'), company_id: id('company'), reason: 'too_large' },
  })
  expect(await countOfSkipped('rules', 'too_large')).toBe(skipped + 1)
  expect(logLines.some(line => line.level === 50 && line.id === id('r17'))).toBe(true)
  // The next version of it is taken as any other, also after a restart.
  await sync.stop()
  hub.script = () => null
  hub.feeds.rules!.push(rule(id('r17'), 41, { version: 3 }))
  const { sync: again } = makeRules()
  expect(again.records.size).toBe(30)
  expect(await again.start()).toBe('applied')
  expect(again.records.get(id('r17'))?.version).toBe(3)
  await again.stop()
}, 120_000)

test('[SYNC-019] a silence or agent that is too large is passed over where it is first, last or alone', async () => {
  for (const [numbers, huge] of [
    [[1, 2, 3], 1],
    [[1, 2, 3], 3],
    [[7], 7],
  ] as const) {
    rmSync(directory, { recursive: true, force: true })
    hub.feeds.silences = numbers.map(number => rule(id(`s${number}`), number))
    hub.script = scriptHuge('silences', huge)
    const { sync, applied } = makeRules('silences')
    expect(await sync.start()).toBe('applied')
    expect(applied.at(-1)).toEqual(numbers.map(number => id(`s${number}`)).sort())
    expect(sync.records.get(id(`s${huge}`))).toMatchObject({ company_id: id('company'), sync_version: huge })
    expect(sync.records.get(id(`s${huge}`))?.too_large).toBeGreaterThan(limits.hubAnswerBytesMax)
    expect(sync.status().since).toBe(numbers.at(-1)!)
    await sync.stop()
  }
}, 120_000)

test('an answer that is too large and no page changes nothing, and is not held in memory', async () => {
  const { sync } = makeRules()
  hub.script = () => new Response('x'.repeat(limits.hubAnswerBytesMax + 1))
  expect(await sync.start()).toBe('unavailable')
  expect(sync.status()).toMatchObject({ since: 0, lastSyncError: expect.stringContaining('larger than is read') })
  expect(await makeClient().settings(id('company'))).toEqual({
    kind: 'unreachable',
    message: `an answer of more than ${limits.hubAnswerBytesMax} bytes`,
  })
  await sync.stop()
}, 120_000)

test('records that are none are skipped one by one, counted and told of', async () => {
  const skipped = await countOfSkipped('rules', 'malformed')
  hub.feeds.rules!.push(rule('a', 1), { ...rule('b', 2), id: 7 }, rule('c', 3))
  hub.script = ({ path }) =>
    path === '/rules'
      ? hub.ok({ rules: [...hub.feeds.rules!, null, 'x', [], { id: 'd' }], next_since: 3, more: false })
      : null
  const { sync, applied } = makeRules()
  expect(await sync.start()).toBe('applied')
  expect(applied.at(-1)).toEqual(['a', 'c'])
  expect(sync.status().since).toBe(3)
  expect(await countOfSkipped('rules', 'malformed')).toBe(skipped + 5)
  expect(logLines.some(line => line.level === 50 && line.id === 'd')).toBe(true)
  await sync.stop()
})

test('[SYNC-029] an agent record that cannot be read is skipped alone and counted; what was known of the agent stays, also where all is read anew', async () => {
  const store = new RegistryStore(join(directory, 'registry.sqlite'))
  const registry = new AgentRegistry(store)
  const options = { registry, hub: makeClient(), intervalMs: 3_600_000, log, metrics, nowMs }
  const names = ['a', 'b', 'c']
  const record = (name: string, syncVersion: number, changes: Record<string, unknown> = {}) =>
    agentRecord({
      agent_id: id(name),
      token_hash: sha256Hex(name),
      version: syncVersion,
      sync_version: syncVersion,
      ...changes,
    }) as ScriptedAgent
  hub.feeds.agents = names.map((name, index) => record(name, index + 1))
  const first = createAgentsSync(options)
  expect(await first.start()).toBe('applied')
  await first.stop()
  const skipped = await countOfSkipped('agents', 'malformed')
  hub.feeds.agents = [record('a', 4), record('b', 5, { token_hash: 'nothing' })]
  clock.nowMs = Date.now() + 31 * 24 * 3_600_000
  const second = createAgentsSync(options)
  expect(await second.start()).toBe('applied')
  expect(hub.to('/agents').at(-1)?.query.get('since')).toBe('0')
  expect(names.map(name => registry.byAgent(id(name))?.version)).toEqual([4, 2, undefined])
  expect(await countOfSkipped('agents', 'malformed')).toBe(skipped + 1)
  expect(logLines.some(line => line.agent_id === id('b') && line.field === 'token_hash')).toBe(true)
  await second.stop()
  store.close()
})
