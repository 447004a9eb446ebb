// Two workers on one Redis: presence, wide-area groups and shards across them, and what becomes of them when Redis
// forgets or cuts.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { id } from '../ingest/scripted-hub.ts'
import { until } from '../support/until.ts'
import { type Json, type Server, serverOf } from './processes.ts'
import { adminToken, type TestWorker, Workers } from './workers.ts'

setDefaultTimeout(90_000)
const LOST_MS = 95_000
const STEP_MS = 45_000

const company = id('company of two workers')
const fleet = Array.from({ length: 6 }, (_, index) => serverOf(company, `fleet ${index}`))
const alone = Array.from({ length: 4 }, (_, index) => serverOf(company, `alone ${index}`))
const all = [...fleet, ...alone]
let site: Workers
let first: TestWorker
let second: TestWorker

const isGroup = (event: Json): boolean => String(event.type).startsWith('group_')
const groups = (): string[] =>
  site.events(isGroup).map(event => `${event.type} ${event.group_key} ${event.member_server_ids.length}`)
/**
 * Sweeps of several threads find the servers of a group one after the other: how many it is opened with is theirs,
 * where it ends is not.
 */
function toldOf(count: number): Promise<unknown> {
  return until(`the group to tell of ${count}`, () => groups().at(-1)?.endsWith(` datacenter:d1 ${count}`))
}
const allOf = (servers: readonly Server[], types: string): boolean =>
  servers.every(
    server =>
      site
        .events(event => !isGroup(event) && event.server_id === server.serverId)
        .map(event => event.type)
        .join() === types,
  )

/** What other processes may read of the presence of these servers' agents, without the time. */
async function presences(servers: readonly Server[]): Promise<(string | undefined)[]> {
  const states = await site.server.client.mget(servers.map(server => `svc:agent:${server.agentId}:st`))
  return states.map(state => state?.split(' ')[0])
}

beforeAll(async () => {
  site = await Workers.open()
  site.addServers(fleet, { datacenter: 'd1' })
  site.addServers(alone)
  first = await site.start()
  await until('the first to have every shard', async () => (await site.shares()) === '64', 30_000)
  second = await site.start()
  await until('the shards to be shared out', async () => (await site.shares()) === '32,32', 30_000)
})
afterAll(() => site.close())

describe('presence and groups', () => {
  test('[PRES-004, PRES-016, PRES-017, GRP-002] servers of shards of both workers that fall silent are each told lost once, and their group once', async () => {
    expect(new Set(fleet.map(server => shardOfServer(server.serverId) < 32)).size).toBe(2)
    await site.send(all)
    await until('evaluation', () => site.isEvaluated())
    await until('presence of all to be written', async () => (await presences(all)).every(state => state === 'up'))
    // The servers that stand alone go on sending.
    for (let passed = 0; passed < LOST_MS; passed += STEP_MS) {
      site.clock.advance(STEP_MS)
      await site.send(alone)
      await until('evaluation', () => site.isEvaluated())
    }
    await until('all of the fleet to be lost', () => allOf(fleet, 'agent.down'))
    await toldOf(fleet.length)
    expect(groups()[0]).toMatch(/^group_down datacenter:d1 [56]$/)
    expect(groups().filter(group => group.startsWith('group_down'))).toHaveLength(1)
    expect(allOf(alone, '')).toBe(true)
    expect(await presences(fleet)).toEqual(fleet.map(() => 'down'))
    expect(await presences(alone)).toEqual(alone.map(() => 'up'))
  })

  test('[GRP-026, SNAP-010] the worker that had the group stops: the other one goes on with it, and opens nothing again', async () => {
    await first.stop()
    await until('the shards to move', async () => (await site.shares()) === '64', 30_000)
    const told = groups().length
    await site.send([...alone, fleet[0]!])
    await until('the member that is back', () => allOf(fleet.slice(0, 1), 'agent.down,agent.up'))
    await toldOf(fleet.length - 1)
    expect(groups().slice(told)).toEqual(['group_update datacenter:d1 5'])
    await site.send(fleet)
    await until('the group to end', () => groups().at(-1)?.startsWith('group_resolved') === true)
    expect(groups().filter(group => group.startsWith('group_down'))).toHaveLength(1)
    expect(allOf(fleet, 'agent.down,agent.up')).toBe(true)
    first = await site.start()
    await until('the shards to be shared out', async () => (await site.shares()) === '32,32', 30_000)
  })

  test('[PRES-010, BUS-002] a bus that refused gives the agents of every worker a grace, and then they are lost', async () => {
    await site.send(all)
    await until('evaluation', () => site.isEvaluated())
    site.clock.advance(LOST_MS - 10_000)
    const workers = [first, second]
    const heard = () =>
      workers.map(each => each.logLines.filter(({ msg }) => msg.startsWith('the bus was full')).length)
    expect(await site.writer(0).publish(all[0]!.serverId, new Uint8Array(96))).toBe('full')
    await until('the workers to hear of it', () => heard().every(count => count > 0))
    // Redis noted the time of the refusal by its own clock; the clock of this test is ahead of it.
    const before = heard()
    await site.server.client.hset('svc:bus:state', 'overflow', Date.now())
    await until('the workers to hear of it by this clock', () => heard().every((count, at) => count > before[at]!))
    // Threads answer one message after the other: what asks each of them comes back when all have heard of it too.
    for (const { running } of workers) {
      const headers = { authorization: `Bearer ${adminToken}` }
      expect((await fetch(`${running.adminUrl}/internal/v1/status`, { headers })).status).toBe(200)
    }
    const lost = site.events(event => event.type === 'agent.down').length
    site.clock.advance(40_000)
    const sweptAt = performance.now() + 500
    await until('some sweeps to go by', () => performance.now() > sweptAt)
    expect(site.events(event => event.type === 'agent.down')).toHaveLength(lost)
    site.clock.advance(40_000)
    await until('the silent ones to be lost', () => allOf(fleet, 'agent.down,agent.up,agent.down'))
  })
})

describe('a Redis that cuts and forgets', () => {
  const ruled = id('company of a rule')
  const servers = Array.from({ length: 5 }, (_, index) => serverOf(ruled, `server ${index}`))

  test('connections that are cut end no alert and double none', async () => {
    site.hub.feeds.rules!.push({
      id: id('rule'),
      version: 1,
      sync_version: 1,
      company_id: ruled,
      name: 'swap',
      kind: 'threshold',
      scope: { all: true },
      resolved_server_ids: [],
      metric: 'swap_used_percent',
      matchers: {},
      operator: '>',
      threshold: 50,
      for_seconds: 0,
      recover_for_seconds: 0,
      severity: 'warning',
      no_data: 'ignore',
      renotify_seconds: 0,
      enabled: true,
      deleted: false,
    })
    await site.server.client.incr('svc:rules:reload')
    await until('the rule', () => site.hub.to('/rules').length >= 2)
    await until('the alerts', async () => {
      site.clock.advance(1000)
      await site.send(servers, 90)
      return allOf(servers, 'alert.opened')
    })
    for (let cut = 0; cut < 3; cut++) {
      await site.server.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      site.clock.advance(1000)
      await site.send(servers, cut % 2 === 0 ? 10 : 90)
      const types = ['alert.opened', 'alert.resolved', 'alert.opened', 'alert.resolved'].slice(0, cut + 2)
      await until('what follows', () => allOf(servers, types.join()), 40_000)
    }
    expect([...first.failures, ...second.failures]).toEqual([])
  })

  test('a Redis that lost everything is begun anew from what each worker knows: alerts of before end, and open again', async () => {
    const before = Array.from({ length: 5 }, (_, at) => (at % 2 === 0 ? 'alert.opened' : 'alert.resolved'))
    await until('the alerts', async () => {
      site.clock.advance(1000)
      await site.send(servers, 90)
      return allOf(servers, before.join())
    })
    await site.server.client.flushall()
    await until('the shards to be shared out', async () => (await site.shares()) === '32,32', 40_000)
    for (const { logLines } of [first, second])
      await until('the worker to say so', () =>
        logLines.some(({ msg }) => msg.startsWith('Redis has lost what it had')),
      )
    await until(
      'the alerts to end',
      async () => {
        site.clock.advance(1000)
        await site.send(servers, 10)
        return allOf(servers, [...before, 'alert.resolved'].join())
      },
      40_000,
    )
    for (const { logLines } of [first, second])
      await until('the worker to say so', () =>
        logLines.some(({ msg }) => msg.startsWith('Redis has lost what it had')),
      )
    site.clock.advance(1000)
    await until(
      'new alerts',
      async () => {
        site.clock.advance(1000)
        await site.send(servers, 90)
        return allOf(servers, [...before, 'alert.resolved', 'alert.opened'].join())
      },
      40_000,
    )
    expect([...first.failures, ...second.failures]).toEqual([])
  })
})
