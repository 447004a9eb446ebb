// Two ingest and two worker processes on one Redis: what is promised of one process holds for several, whichever of
// them dies.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { openClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { allocatorSetting } from '../../apps/process/allocator-setting.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { id } from '../ingest/scripted-hub.ts'
import { environmentOf } from '../support/executable.ts'
import { pause, until } from '../support/until.ts'
import {
  admin,
  agentFor,
  agentOf,
  failing,
  type Json,
  type Process,
  type Server,
  Site,
  serverOf,
  shardsByWorker,
} from './processes.ts'

setDefaultTimeout(120_000)

const UNLIMITED = { 'ingest.limits.metrics_per_minute': '1000000', 'ingest.limits.metrics_burst': '1000000' }
const isAbove = (sample: number): boolean => sample % 4 < 2
const SERVERS = 8
/** About two seconds, on a host that is busy with other tests. */
const RELOAD_MS = 4_000
const CACHE_TTL_MS = 1_000
const PACE_MS = 20

/** Sends sample after sample of a server, each until it is acknowledged, to one ingest node and the other in turn. */
async function pump(ingests: readonly Process[], server: Pumped, isOver: () => boolean): Promise<void> {
  const agents = ingests.map(ingest => agentFor(ingest, server))
  for (let turn = 0; !isOver() || server.acked % 4 !== 0; turn++) {
    const tsMs = server.baseMs + server.acked * 1000
    const series = [{ name: 'swap_used_percent', points: [[tsMs, isAbove(server.acked) ? 90 : 10]] as const }]
    const { status } = await agents[turn % agents.length]!.send(series, 300)
    if (status === 200) server.acked++
    else if (status === 503) server.refused++
    else throw new Error(`ingest answered ${status}`)
    await pause(PACE_MS)
  }
}

type Pumped = Server & { readonly baseMs: number; acked: number; refused: number }

/** The events of a server as the hub takes them: the same event again is the same event. */
function eventsOf(site: Site, server: Server): Json[] {
  const seen = new Set<unknown>()
  return site.hub.taken.filter(event => {
    const isNew = event.server_id === server.serverId && !seen.has(event.event_id)
    if (isNew) seen.add(event.event_id)
    return isNew
  })
}

const busIsEmpty = async (worker: Process): Promise<boolean> =>
  (await admin(worker, 'GET', '/status')).body.data.bus_lag === 0

test('[BUS-005, OPS-016, SNAP-008] workers killed and Redis killed in mid-work: no acknowledged sample is lost, every alert opens and resolves once, in order', async () => {
  const site = await Site.start({
    ...UNLIMITED,
    'alerting.flap_transitions': '0',
    'alerting.rules_state_interval': '2s',
    // Samples are held for an eighth of it.
    'bus.max_age': '80s',
  })
  try {
    const company = id('kill company')
    const baseMs = Date.now() - 20 * 3_600_000
    const servers: Pumped[] = Array.from({ length: SERVERS }, (_, index) => ({
      ...serverOf(company, `server ${index}`),
      baseMs,
      acked: 0,
      refused: 0,
    }))
    expect(new Set(servers.map(server => shardOfServer(server.serverId))).size).toBeGreaterThan(4)
    site.hub.feeds.agents!.push(...servers.map(server => agentOf(server)))
    site.addRule(company)
    const [first, second, ...ingests] = await Promise.all([
      site.startWorker(),
      site.startWorker(),
      site.startIngest(),
      site.startIngest(),
    ])
    for (const { pid } of [first!, second!, ...ingests])
      expect(environmentOf(pid)).toContain(`${allocatorSetting.name}=${allocatorSetting.value}`)
    await until('the shards to be shared out', async () => String(await shardsByWorker(site)) === '32,32')
    let isOver = false
    const pumps = servers.map(server => pump(ingests, server, () => isOver))
    const progress = () => Math.min(...servers.map(server => server.acked))
    const goesOn = async (what: string): Promise<void> => {
      const from = progress()
      await until(what, () => progress() > from + 20, 30_000)
    }
    await goesOn('work with both')
    await first!.kill()
    await goesOn('work with one')
    await until(
      'the shards of the dead worker to move',
      async () => String(await shardsByWorker(site)) === '64',
      30_000,
    )
    await goesOn('work after the move')
    await site.redis.kill()
    await until('ingest to refuse', () => servers.every(server => server.refused > 0))
    await site.redis.start()
    await goesOn('work after Redis was killed')
    const third = await site.startWorker()
    await until('the shards to be shared again', async () => String(await shardsByWorker(site)) === '32,32', 30_000)
    expect(await second!.stop()).toBe(0)
    await until('the shards of the one that stopped', async () => String(await shardsByWorker(site)) === '64', 30_000)
    await goesOn('work with the third')
    isOver = true
    await Promise.all(pumps)
    await until('the bus to be empty', () => busIsEmpty(third))
    const store = openClickHouse({ url: site.clickhouse.url, database: site.database })
    for (const server of servers) {
      await until('the last event', () => eventsOf(site, server).length >= server.acked / 2, 30_000)
      const told = eventsOf(site, server).map(
        event => `${event.type} ${(Date.parse(String(event.occurred_at)) - baseMs) / 1000}`,
      )
      const expected = Array.from({ length: server.acked / 2 }, (_, change) =>
        change % 2 === 0 ? `alert.opened ${change * 2}` : `alert.resolved ${change * 2}`,
      )
      expect(told).toEqual(expected)
      const stored = async (): Promise<number> => {
        const [row] = await store.rows(
          `SELECT count() FROM ${site.database}.samples WHERE server_id = '${server.serverId}'`,
        )
        return Number(row?.[0])
      }
      await until('all samples to be stored', async () => (await stored()) === server.acked)
    }
    await store.close()
  } finally {
    await site.close()
  }
})

describe('two of each', () => {
  const company = id('company of two')
  const servers = Array.from({ length: 8 }, (_, index) => serverOf(company, `server ${index}`))
  let site: Site
  let workers: Process[]
  let ingests: Process[]
  let minute = 0

  beforeAll(async () => {
    site = await Site.start({
      ...UNLIMITED,
      'alerting.rules_sync_interval': '1h',
      'alerting.silences_sync_interval': '1h',
      'checks.sync_interval': '1h',
      'registry.sync_interval': '1h',
      'redis.cache_ttl': `${CACHE_TTL_MS}ms`,
    })
    site.hub.feeds.agents!.push(...servers.map(server => agentOf(server)))
    workers = await Promise.all([site.startWorker(), site.startWorker()])
    ingests = await Promise.all([site.startIngest(), site.startIngest()])
    await until('the shards to be shared out', async () => String(await shardsByWorker(site)) === '32,32', 30_000)
  })
  afterAll(() => site.close())

  /** One sample of a server, a minute after the one before. */
  async function swap(server: Server, value: number): Promise<number> {
    const tsMs = Date.now() - 3_600_000 + ++minute * 1000
    const series = [{ name: 'swap_used_percent', points: [[tsMs, value]] as const }]
    return (await agentFor(ingests[0]!, server).send(series, 300)).status
  }

  test('[SYNC-032, SYNC-033] a reload call at one worker makes both workers pull and apply rules, silences and checks within about 2 s', async () => {
    for (const server of servers) expect(await swap(server, 90)).toBe(200)
    site.addRule(company)
    const pulls = (feed: string): number => site.hub.to(`/${feed}`).length
    const before = { rules: pulls('rules'), silences: pulls('silences'), checks: pulls('checks') }
    for (const feed of ['rules', 'silences', 'checks'])
      expect((await admin(workers[0]!, 'POST', `/reload/${feed}`)).status).toBe(202)
    await until(
      'both to pull',
      () =>
        pulls('rules') >= before.rules + 2 &&
        pulls('silences') >= before.silences + 2 &&
        pulls('checks') >= before.checks + 2,
      RELOAD_MS,
    )
    for (const worker of workers)
      await until('the rule', async () => (await admin(worker, 'GET', '/status')).body.data.rules.loaded === 1)
    for (const server of servers) expect(await swap(server, 91)).toBe(200)
    await until('an alert of each', () => servers.every(server => eventsOf(site, server).length === 1))
  })

  test('the newest samples of a server, and of its company, are in the answer of each worker, though one of them holds them', async () => {
    const nowMs = Date.now()
    for (const server of servers) {
      const series = [{ name: 'cpu_usage_percent', points: [[nowMs, 42]] as const }]
      expect((await agentFor(ingests[0]!, server).send(series, 300)).status).toBe(200)
    }
    for (const worker of workers) {
      for (const { serverId } of servers) {
        const path = `/servers/${serverId}/series?company_id=${company}&metric=cpu_usage_percent&agg=last`
        const newest = async () => (await admin(worker, 'GET', path)).body.data.series[0]?.points.at(-1)?.[1]
        await until('its sample', async () => (await newest()) === 42)
      }
      const values = async () =>
        (await admin(worker, 'GET', `/companies/${company}/values?metric=cpu_usage_percent`)).body
      await until('the values of all', async () => (await values()).data.values.length === servers.length)
    }
  })

  test("[PRES-013, PRES-017] each worker knows how a server stands whose shard is the other one's", async () => {
    for (const worker of workers) {
      for (const server of servers) {
        const path = `/servers/${server.serverId}/alerting?company_id=${company}`
        const { body } = await admin(worker, 'GET', path)
        expect(body.data.series.map((series: Json) => series.state)).toEqual(['firing'])
        const status = await admin(worker, 'GET', `/servers/${server.serverId}/status?company_id=${company}`)
        expect(status.body.data.state).toBe('online')
      }
      const summary = await admin(worker, 'GET', `/companies/${company}/summary`)
      expect(summary.body.data).toMatchObject({ agents_total: 8, online: 8 })
    }
  })

  test('[ADM-021, ADM-022] /status of each worker counts the states and agents of all', async () => {
    for (const worker of workers) {
      const { body } = await admin(worker, 'GET', '/status')
      expect(body.data.agents_online).toBe(8)
      expect(body.data.rules.firing).toBe(8)
    }
  })

  test('[REG-015, REG-018] an agent that one worker revokes is refused by every ingest node within redis.cache_ttl', async () => {
    const server = servers[7]!
    const send = (ingest: Process) =>
      agentFor(ingest, server).send([{ name: 'uptime_seconds', points: [[Date.now(), 1]] }])
    for (const ingest of ingests) expect((await send(ingest)).status).toBe(200)
    expect((await admin(workers[0]!, 'DELETE', `/agents/${server.agentId}`)).status).toBe(204)
    for (const ingest of ingests)
      await until(
        'the refusal',
        async () => {
          const { status, text } = await send(ingest)
          return status === 403 && text.includes('agent_revoked')
        },
        CACHE_TTL_MS * 2,
      )
    // It was the server's last agent: its open alert ends, on whichever worker has it.
    const isOpen = () => eventsOf(site, server).at(-1)?.type === 'alert.opened'
    await until('its alert to end', () => !isOpen(), 30_000)
  })

  test('[PUR-009, PUR-011, OPS-018] a purge at one worker makes the other one forget the server and drop its batches, without an event', async () => {
    const tenant = id('company to purge')
    const fleet = Array.from({ length: 6 }, (_, index) => serverOf(tenant, `server ${index}`))
    site.hub.feeds.agents!.push(...fleet.map(server => agentOf(server)))
    site.addRule(tenant)
    expect((await admin(workers[0]!, 'POST', '/reload/rules')).status).toBe(202)
    for (const worker of workers)
      await until('the rule', async () => (await admin(worker, 'GET', '/status')).body.data.rules.loaded === 2)
    for (const server of fleet) expect(await swap(server, 90)).toBe(200)
    await until('an alert of each', () => fleet.every(server => eventsOf(site, server).length === 1))
    const firing = async (worker: Process): Promise<number> =>
      (await admin(worker, 'GET', '/status')).body.data.rules.firing
    // Each worker counts the states of all; one of the servers before was revoked.
    const others = servers.length - 1
    for (const worker of workers)
      await until('all to be counted', async () => (await firing(worker)) === others + fleet.length)
    expect((await admin(workers[1]!, 'DELETE', `/companies/${tenant}/data`)).status).toBe(200)
    expect(await site.redis.client.hlen('svc:purge:tombstones')).toBe(1)
    for (const worker of workers) await until('both to forget', async () => (await firing(worker)) === others)
    for (const server of fleet) expect(eventsOf(site, server).map(event => event.type)).toEqual(['alert.opened'])
    await until('the outboxes to be empty', async () => {
      const outboxes = await Promise.all(
        fleet.map(server => site.redis.client.xlen(`svc:outbox:${shardOfServer(server.serverId)}`)),
      )
      return outboxes.every(length => length === 0)
    })
  })

  test('[PUR-013] while Redis is away ingest and the admin API answer 503 and /readyz names it; afterwards everything goes on by itself', async () => {
    await site.redis.kill()
    expect(await swap(servers[0]!, 90)).toBe(503)
    for (const ingest of ingests) expect(await failing(ingest)).toContain('bus')
    for (const worker of workers) {
      await until('the worker to say so', async () => (await failing(worker)).includes('redis'))
      expect((await admin(worker, 'POST', '/reload/rules')).status).toBe(503)
      expect((await admin(worker, 'DELETE', `/agents/${id('nobody')}`)).status).toBe(503)
      expect((await admin(worker, 'DELETE', `/companies/${id('nobody')}/data`)).status).toBe(503)
      for (const path of ['/status', `/companies/${company}/summary`])
        for (const { status } of await Promise.all([1, 2, 3, 4].map(() => admin(worker, 'GET', path))))
          expect(status).toBe(503)
    }
    // Agents and their tokens come from the hub; only the bus is missing.
    const late = await site.startIngest()
    expect(await failing(late)).toEqual(['bus'])
    const point = [{ name: 'uptime_seconds', points: [[Date.now(), 1]] as const }]
    expect((await agentFor(late, servers[1]!).send(point)).status).toBe(503)
    await site.redis.start()
    await until('the one that started meanwhile', async () => (await failing(late)).length === 0)
    expect((await agentFor(late, servers[1]!).send(point)).status).toBe(200)
    for (const ingest of ingests)
      await until('ingest to take batches', async () => !(await failing(ingest)).includes('bus'))
    expect(await swap(servers[0]!, 10)).toBe(200)
    await until('the alert to resolve', () => eventsOf(site, servers[0]!).at(-1)?.type === 'alert.resolved', 40_000)
    for (const running of [...ingests, ...workers]) {
      expect(running.log()).toContain('cannot reach Redis')
      await until('the log to say that it is back', () => running.log().includes('Redis answers again'))
    }
  })

  test('[PUR-011, EVT-029] events of a purged company that a worker left when it died are told by nobody', async () => {
    const tenant = id('company to purge while a worker is dead')
    const fleet = Array.from({ length: 8 }, (_, index) => serverOf(tenant, `server ${index}`))
    site.hub.feeds.agents!.push(...fleet.map(server => agentOf(server)))
    site.addRule(tenant)
    expect((await admin(workers[0]!, 'POST', '/reload/rules')).status).toBe(202)
    for (const server of fleet) expect(await swap(server, 90)).toBe(200)
    await until('an alert of each', () => fleet.every(server => eventsOf(site, server).length === 1))
    site.hub.script = ({ path }) => (path === '/events' ? site.hub.error(503, 'unavailable') : null)
    for (const server of fleet) expect(await swap(server, 10)).toBe(200)
    const waiting = async (): Promise<number> => {
      const shards = [...new Set(fleet.map(server => shardOfServer(server.serverId)))]
      const lengths = await Promise.all(shards.map(shard => site.redis.client.xlen(`svc:outbox:${shard}`)))
      return lengths.reduce((sum, length) => sum + length, 0)
    }
    await until('an event of each', async () => (await waiting()) === fleet.length)
    // Each tells of what waits in the shards of both.
    for (const worker of workers)
      await until(
        'the worker to count them',
        async () => (await admin(worker, 'GET', '/status')).body.data.outbox_depth === fleet.length,
      )
    await workers[1]!.kill()
    expect((await admin(workers[0]!, 'DELETE', `/companies/${tenant}/data`)).status).toBe(200)
    // Those of the shards that it had are there still.
    expect(await waiting()).toBeGreaterThan(0)
    await until('the other to have all shards', async () => String(await shardsByWorker(site)) === '64', 30_000)
    site.hub.script = () => null
    await until('the outboxes to be empty', async () => (await waiting()) === 0, 30_000)
    for (const server of fleet) expect(eventsOf(site, server).map(event => event.type)).toEqual(['alert.opened'])
    for (const server of fleet)
      expect(await site.redis.client.hlen(`svc:journal:${shardOfServer(server.serverId)}:open`)).toBeLessThanOrEqual(
        servers.filter(other => shardOfServer(other.serverId) === shardOfServer(server.serverId)).length,
      )
  })
})
