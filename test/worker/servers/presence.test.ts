import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { id } from '../../ingest/scripted-hub.ts'
import { entryOf } from '../../support/clickhouse.ts'
import { until } from '../../support/until.ts'
import { type Server, serverOf, WorkerRig } from '../rig.ts'

setDefaultTimeout(60_000)
const company = id('presence company')
/** The rig's servers report an interval of 30 s: lost after 90 s, grace of 60 s. */
const LOST_MS = 95_000

const BUS_BYTES_MAX = 1024 * 1024

describe('presence in a running worker', () => {
  const rig = new WorkerRig({ bytesMax: BUS_BYTES_MAX, role: 'all' })
  const names = ['sends', 'falls silent', 'never sent', 'grace', 'overflow', 'revoked', 'separate'] as const
  const servers = Object.fromEntries(names.map(name => [name, serverOf(company, name)])) as Record<
    (typeof names)[number],
    Server
  >

  beforeAll(async () => {
    for (const name of names) rig.addServer(servers[name])
    await rig.start()
  })
  afterAll(() => rig.close())

  const stateOf = async ({ serverId }: Server, companyId = company) => {
    const { status, body } = await rig.admin('GET', `/servers/${serverId}/status?company_id=${companyId}`)
    return status === 200 ? body.data : status
  }
  const beat = async (server: Server, receivedAtMs = Date.now()): Promise<void> => {
    await rig.publish(server, [{ metric: 'uptime_seconds', points: [[receivedAtMs, 1]] }], receivedAtMs)
    await until('the batch to be evaluated', async () => (await rig.status()).bus_lag === 0)
  }
  const summary = async () => (await rig.admin('GET', `/companies/${company}/summary`)).body.data

  test('[OPS-017] /status names the role of a process that does everything', async () => {
    expect((await rig.status()).role).toBe('all')
  })

  test('[PRES-014] an agent that never sent is unknown, without a time', async () => {
    expect(await stateOf(servers['never sent'])).toMatchObject({ state: 'unknown', last_seen: null })
    expect(await stateOf(servers['never sent'], id('another company'))).toBe(404)
  })

  test('[PRES-013] an agent that sends is online, with the time of its last batch', async () => {
    const atMs = Date.now()
    await beat(servers.sends, atMs)
    expect(await stateOf(servers.sends)).toMatchObject({ state: 'online', last_seen: new Date(atMs).toISOString() })
    expect(await summary()).toEqual({ agents_total: names.length, online: 1, offline: names.length - 1 })
  })

  test('[PRES-015] [PRES-009] silent beyond the threshold within the grace of the start: unknown, and no agent.down', async () => {
    await beat(servers.grace, Date.now() - LOST_MS)
    expect(await stateOf(servers.grace)).toMatchObject({ state: 'unknown', last_seen: expect.any(String) })
    await rig.someSweeps()
    expect(rig.typesOf(servers.grace)).toEqual([])
  })

  test('[PRES-013] [PRES-018] a lost agent is down: one critical agent.down, and the summary counts it offline', async () => {
    const silent = servers['falls silent']
    await beat(silent)
    rig.clock.advance(LOST_MS)
    await until('agent.down', () => rig.typesOf(silent).length > 0)
    expect(rig.eventsOf(silent)[0]).toMatchObject({
      type: 'agent.down',
      severity: 'critical',
      rule_id: 'agent_down',
      series_key: `agent:${silent.agentId}`,
      threshold: 90,
      company_id: company,
    })
    expect((await stateOf(silent)).state).toBe('down')
    await until('the others to be offline too', async () => (await summary()).online === 0)
    await beat(silent)
    await until('agent.up', () => rig.typesOf(silent).length === 2)
    expect(rig.typesOf(silent)).toEqual(['agent.down', 'agent.up'])
    expect((await stateOf(silent)).state).toBe('online')
  })

  test('[PRES-010] [BUS-002] a bus that refused gives every agent a grace of two intervals, and no longer', async () => {
    const server = servers.overflow
    await beat(server)
    await rig.stop()
    rig.clock.advance(40_000)
    await rig.start()
    rig.clock.advance(45_000)
    // 85 s silent. The worker hears of the refusal through the file, as it does where ingest is another process.
    const points = Array.from({ length: 20_000 }, (_, index): [number, number] => [Date.now() - index, index])
    const large = entryOf(company, id('filler'), [{ metric: 'uptime_seconds', points }])
    const refusals = await Promise.all(Array.from({ length: 6 }, () => rig.bus.publish(id('filler'), large)))
    expect(refusals).toContain('full')
    await until(
      'the grace to begin',
      () => rig.logged('the bus was full and refused batches; agents are not taken for lost for a while').length > 0,
    )
    // No save is due by the clock: what is evaluated is saved at once, so that there is room again.
    await until('room on the bus', async () => (await rig.bus.stats()).bytes < BUS_BYTES_MAX / 2)
    rig.clock.advance(45_000)
    // 130 s silent, the grace of the start long over: only the refusal, 45 s ago, holds agent.down back.
    await rig.someSweeps()
    expect(rig.typesOf(server)).toEqual([])
    rig.clock.advance(20_000)
    await until('agent.down', () => rig.typesOf(server).length > 0)
    expect(rig.typesOf(server)).toEqual(['agent.down'])
  })

  test('an agent that is revoked is unknown, and its silence opens no alert', async () => {
    const server = servers.revoked
    await beat(server)
    expect((await stateOf(server)).state).toBe('online')
    expect((await rig.admin('DELETE', `/agents/${server.agentId}`)).status).toBe(204)
    await until('the end of presence', async () => (await stateOf(server)).state === 'unknown')
    rig.clock.advance(LOST_MS)
    await until('the others to be lost', () => rig.typesOf(servers['falls silent']).length === 3)
    expect(rig.typesOf(server)).toEqual([])
  })
})
