import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { id } from '../../ingest/scripted-hub.ts'
import { until } from '../../support/until.ts'
import { type Json, type Server, serverOf, WorkerRig } from '../rig.ts'

setDefaultTimeout(60_000)
const LOST_MS = 95_000
const companies = ['plain', 'override', 'hub', 'bad hub', 'silenced', 'other', 'restart', 'revoke'] as const
type Name = (typeof companies)[number]
const idOf = (name: Name): string => id(`groups company ${name}`)

describe('wide-area incidents in a running worker', () => {
  const rig = new WorkerRig({
    keys: {
      'alerting.group_down.companies': {
        [idOf('override')]: { min: 3 },
        [idOf('hub')]: { min: 6 },
        [idOf('bad hub')]: { min: 3 },
      },
    },
  })
  const { hub } = rig
  const fleets = new Map<Name, Server[]>()

  const addFleet = (name: Name, count: number, changes: Record<string, unknown>): Server[] => {
    const fleet = Array.from({ length: count }, (_, index) => serverOf(idOf(name), `${name} ${index}`))
    for (const server of fleet) rig.addServer(server, changes)
    fleets.set(name, fleet)
    return fleet
  }
  const fleetOf = (name: Name): Server[] => fleets.get(name) ?? []
  const beat = async (servers: readonly Server[]): Promise<void> => {
    for (const server of servers) await rig.publish(server, [{ metric: 'uptime_seconds', points: [[Date.now(), 1]] }])
  }
  const groupEvents = (name: Name): Json[] =>
    hub.taken.filter(event => event.company_id === idOf(name) && String(event.type).startsWith('group_'))
  const downs = (name: Name): number =>
    hub.taken.filter(event => event.company_id === idOf(name) && event.type === 'agent.down').length
  const settingsCalls = (name: Name): number => hub.to(`/settings/${idOf(name)}`).length

  beforeAll(async () => {
    addFleet('plain', 5, { subnet_id: 's1', datacenter: 'd1' })
    addFleet('other', 4, { subnet_id: 's1', datacenter: 'd1' })
    addFleet('override', 3, { subnet_id: 's1' })
    addFleet('hub', 3, { subnet_id: 's1' })
    addFleet('bad hub', 3, { subnet_id: 's1' })
    addFleet('silenced', 5, { datacenter: 'd1', server_status: 'maintenance' })
    hub.settings.set(idOf('hub'), { group_down_min: 2, group_down_ratio: null, group_down_window_seconds: null })
    hub.settings.set(idOf('bad hub'), {
      group_down_min: 0,
      group_down_ratio: 1.5,
      group_down_window_seconds: 0,
      metrics_retention_days: 0,
    })
    await rig.start()
    for (const name of companies) await beat(fleetOf(name))
    await until('the batches to be evaluated', async () => (await rig.status()).bus_lag === 0)
    rig.clock.advance(LOST_MS)
    await until('everybody to be lost', () => companies.every(name => downs(name) === fleetOf(name).length))
  })
  afterAll(() => rig.close())

  test('[GRP-001] [GRP-002] [GRP-005] [GRP-010] [GRP-011] [GRP-028] five servers of a subnet and a datacenter: both groups open, and each agent.down is told', async () => {
    await until('both groups', () => groupEvents('plain').length === 2)
    const ids = fleetOf('plain')
      .map(server => server.serverId)
      .sort()
    const common = {
      type: 'group_down',
      server_id: ids[0],
      rule_id: 'group_down',
      member_server_ids: ids,
      group_total: 5,
      value: 5,
      threshold: 5,
      suppressed: false,
    }
    const events = groupEvents('plain').sort((a, b) => (a.group_key < b.group_key ? -1 : 1))
    expect(events[0]).toMatchObject({ ...common, group_key: 'datacenter:d1', series_key: 'datacenter:d1' })
    expect(events[1]).toMatchObject({ ...common, group_key: 'subnet:s1', series_key: 'subnet:s1' })
    expect(downs('plain')).toBe(5)
  })

  test('[GRP-003] four servers of another company with the same keys open nothing', () => {
    expect(groupEvents('other')).toEqual([])
  })

  test('[GRP-019] [OPS-009] the settings of the hub count before the configuration of the company, and that before the default', async () => {
    await until('the groups', () => groupEvents('hub').length === 1 && groupEvents('override').length === 1)
    expect(groupEvents('hub')[0].threshold).toBe(2)
    expect(groupEvents('override')[0].threshold).toBe(3)
  })

  test('[GRP-020] [SYNC-038] settings out of their domain are ignored, each by itself', async () => {
    await until('the group', () => groupEvents('bad hub').length === 1)
    expect(groupEvents('bad hub')[0].threshold).toBe(3)
  })

  test('[GRP-021] [GRP-022] a group of servers in maintenance is suppressed', async () => {
    await until('the group', () => groupEvents('silenced').length === 1)
    expect(groupEvents('silenced')[0]).toMatchObject({ suppressed: true, suppress_reason: 'maintenance' })
  })

  test('[SYNC-035] [SYNC-036] settings are asked for once in five minutes, after a failure once in 30 seconds', async () => {
    expect(settingsCalls('hub')).toBe(1)
    // The hub does not know this company: that is a failure.
    const before = settingsCalls('plain')
    rig.clock.advance(31_000)
    await until('another question', () => settingsCalls('plain') > before)
    expect(settingsCalls('hub')).toBe(1)
    rig.clock.advance(300_000)
    await until('another question', () => settingsCalls('hub') === 2)
  })

  test('[SYNC-037] reload-settings makes them be asked for again', async () => {
    const before = settingsCalls('hub')
    expect((await rig.admin('POST', '/reload/settings')).status).toBe(202)
    await until('another question', () => settingsCalls('hub') > before)
  })

  test('[SYNC-039] the attributes are those of the agents feed: nothing else is asked', () => {
    const paths = new Set(hub.requests.map(request => request.path.replace(/^\/settings\/.*/, '/settings')))
    expect([...paths].sort()).toEqual(['/events', '/rules', '/settings', '/silences'])
  })

  test('[GRP-012] [GRP-015] [GRP-016] [GRP-018] [GRP-024] [GRP-029] [EVT-008] members that come back are told one by one; the last one ends the group', async () => {
    const [first, ...rest] = fleetOf('plain').sort((a, b) => (a.serverId < b.serverId ? -1 : 1))
    await beat([first!])
    await until('the update', () => groupEvents('plain').filter(event => event.type === 'group_update').length === 2)
    const update = groupEvents('plain').find(event => event.type === 'group_update')
    expect(update).toMatchObject({
      server_id: first!.serverId,
      member_server_ids: rest.map(server => server.serverId),
      value: 4,
    })
    await beat(rest)
    const ends = () => groupEvents('plain').filter(event => event.type === 'group_resolved')
    await until('the end', () => ends().length === 2)
    expect(ends()[0]).toMatchObject({ server_id: first!.serverId, member_server_ids: [], reason: 'recovered' })
    expect(ends()[0].duration_seconds).toBeGreaterThan(0)
    for (const server of fleetOf('plain')) expect(rig.typesOf(server)).toContain('agent.up')
    const bySeries = groupEvents('plain').filter(event => event.group_key === 'subnet:s1')
    const seqs = bySeries.map(event => event.seq)
    expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b))
    await beat(fleetOf('silenced'))
    await until('the end of the suppressed one', () => groupEvents('silenced').at(-1).type === 'group_resolved')
    expect(groupEvents('silenced').every(event => event.suppressed)).toBe(true)
  })

  test('[GRP-026] [SNAP-010] an open group survives a restart: it is not opened again, and ends', async () => {
    addFleet('restart', 5, { subnet_id: 's9' })
    await beat(fleetOf('restart'))
    await until('the batches to be evaluated', async () => (await rig.status()).bus_lag === 0)
    rig.clock.advance(LOST_MS)
    await until('the group', () => groupEvents('restart').length === 1)
    expect(await rig.metric('svc_groups_open')).toBeGreaterThan(0)
    await rig.stop()
    // One member comes back while nobody looks.
    const [back, ...away] = fleetOf('restart')
    await beat([back!])
    await rig.start()
    await until('the update', () => groupEvents('restart').length === 2)
    expect(groupEvents('restart')[1]).toMatchObject({ type: 'group_update', value: 4 })
    await beat(away)
    await until('the end', () => groupEvents('restart').at(-1).type === 'group_resolved')
    // How many sweeps find some of the members back depends on the host; none opens it again.
    const types = groupEvents('restart').map(event => event.type)
    expect([types[0], ...new Set(types.slice(1, -1)), types.at(-1)]).toEqual([
      'group_down',
      'group_update',
      'group_resolved',
    ])
    // Each update tells of fewer servers that are away.
    const counts = groupEvents('restart')
      .slice(1, -1)
      .map(event => event.value)
    expect(counts).toEqual([...new Set(counts)].sort((a, b) => b - a))
    expect(new Set(groupEvents('restart').map(event => event.server_id)).size).toBe(1)
  })

  test('a server whose agent is revoked leaves its group, and with its next agent it is not lost', async () => {
    const fleet = addFleet('revoke', 6, { subnet_id: 's7' })
    await beat(fleet)
    await until('the batches to be evaluated', async () => (await rig.status()).bus_lag === 0)
    rig.clock.advance(LOST_MS)
    await until('the group', () => groupEvents('revoke').length === 1)
    const gone = fleet[3]!
    expect((await rig.admin('DELETE', `/agents/${gone.agentId}`)).status).toBe(204)
    await until('the update', () => groupEvents('revoke').length === 2)
    expect(groupEvents('revoke')[1].member_server_ids).not.toContain(gone.serverId)
    rig.addServer({ ...gone, agentId: id('its next agent') }, { subnet_id: 's7' })
    await beat(fleet.filter(server => server !== gone))
    await until('the end', () => groupEvents('revoke').at(-1).type === 'group_resolved')
    expect(
      groupEvents('revoke')
        .slice(1)
        .some(event => event.member_server_ids.includes(gone.serverId)),
    ).toBe(false)
  })

  test('[GRP-002] nothing is grouped where alerting.group_down.enabled is false', async () => {
    await rig.stop()
    await rig.start({ 'alerting.group_down.enabled': false })
    const openings = () => groupEvents('plain').filter(event => event.type === 'group_down').length
    const before = openings()
    await beat(fleetOf('plain'))
    await until('the batches to be evaluated', async () => (await rig.status()).bus_lag === 0)
    rig.clock.advance(LOST_MS)
    await until('five to be lost', () => downs('plain') === 10)
    await rig.someSweeps()
    expect(openings()).toBe(before)
  })
})

describe('wide-area incidents of two workers that share nothing', () => {
  // A process has one embedded engine, which goes with the thread that opened it. The other store is away: no event
  // waits for it.
  const storeAway = { 'clickhouse.url': 'http://127.0.0.1:9' }
  const rigs = [new WorkerRig(), new WorkerRig({ keys: storeAway })] as const
  const companyId = id('groups company of two workers')
  const fleet = Array.from({ length: 5 }, (_, index) => serverOf(companyId, `shared ${index}`))
  const told = (rig: WorkerRig, type: string): Json[] => rig.hub.taken.filter(event => event.type === type)
  const report = async (rig: WorkerRig, servers: readonly Server[]): Promise<void> => {
    for (const server of servers) await rig.publish(server, [{ metric: 'uptime_seconds', points: [[Date.now(), 1]] }])
    await until('them to be online', async () => (await rig.status()).agents_online === servers.length)
  }
  afterAll(async () => {
    for (const rig of rigs) await rig.close()
  })

  test('[GRP-027] each groups the servers that it found silent itself, and none that the other one did', async () => {
    const [one, other] = rigs
    for (const rig of rigs) {
      for (const server of fleet) rig.addServer(server, { subnet_id: 's1' })
      await rig.start()
    }
    await report(one, fleet.slice(0, 3))
    await report(other, fleet.slice(3))
    // The clock is that of the process, and so of both.
    one.clock.advance(LOST_MS)
    await until(
      'each to lose its own',
      () => told(one, 'agent.down').length === 3 && told(other, 'agent.down').length === 2,
    )
    await one.someSweeps()
    expect([...told(one, 'group_down'), ...told(other, 'group_down')]).toEqual([])
    await report(one, fleet)
    one.clock.advance(LOST_MS)
    await until('the one that heard of all five to group them', () => told(one, 'group_down').length === 1)
    expect(told(one, 'group_down')[0]).toMatchObject({ group_key: 'subnet:s1', group_total: 5 })
    expect(told(other, 'group_down')).toEqual([])
  })
})
