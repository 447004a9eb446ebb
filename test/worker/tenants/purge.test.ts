import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { id } from '../../ingest/scripted-hub.ts'
import { until } from '../../support/until.ts'
import { ruleRecord, type Server, serverOf, WorkerRig } from '../rig.ts'

setDefaultTimeout(60_000)

describe('a purge in a running worker', () => {
  const rig = new WorkerRig({ keys: { 'purge.second_delete_after': '1s' } })
  const { hub } = rig
  const tombstoneFile = join(rig.directory, 'tombstones.json')
  let companyCount = 0

  const newCompany = async (): Promise<{ company: string; servers: [Server, Server] }> => {
    const company = id(`purge company ${++companyCount}`)
    const servers: [Server, Server] = [serverOf(company, 'a'), serverOf(company, 'b')]
    for (const server of servers) rig.addServer(server, { datacenter: 'd1' })
    hub.feeds.rules!.push(ruleRecord(company))
    expect((await rig.admin('POST', '/reload/rules')).status).toBe(202)
    return { company, servers }
  }
  const settled = () => until('everything to be evaluated and stored', async () => (await rig.status()).bus_lag === 0)
  const points = async ({ companyId, serverId }: Server): Promise<number> => {
    const { body } = await rig.admin(
      'GET',
      `/servers/${serverId}/series?company_id=${companyId}&metric=swap_used_percent`,
    )
    return (body.data.series as { points: unknown[] }[]).reduce((sum, series) => sum + series.points.length, 0)
  }
  const isKnown = async ({ companyId, serverId }: Server): Promise<boolean> =>
    (await rig.admin('GET', `/servers/${serverId}/status?company_id=${companyId}`)).status === 200

  beforeAll(() => rig.start())
  afterAll(() => rig.close())

  test('[PUR-002] [PUR-004] [PUR-005] [PUR-006] [PUR-007] [PUR-011] [PUR-012] [PUR-014] [EVT-029] a server goes with registry, samples and state, without an event; its neighbour stays', async () => {
    const { company, servers } = await newCompany()
    const [gone, stays] = servers
    for (const server of servers) await rig.swap(server, 90)
    await settled()
    await until('both alerts', () => servers.every(server => rig.typesOf(server).length === 1))
    const { firing } = (await rig.status()).rules
    const { status, body } = await rig.admin('DELETE', `/servers/${gone.serverId}/data?company_id=${company}`)
    expect(status).toBe(200)
    expect(body.data).toEqual({
      scope: 'server',
      id: gone.serverId,
      registry_deleted: 1,
      tombstone_until: expect.any(String),
    })
    const untilMs = Date.parse(body.data.tombstone_until)
    expect(Math.abs(untilMs - Date.now() - 900_000)).toBeLessThan(10_000)
    expect(JSON.parse(readFileSync(tombstoneFile, 'utf8'))).toContainEqual({
      companyId: company,
      serverId: gone.serverId,
      untilMs,
    })
    expect([await isKnown(gone), await isKnown(stays)]).toEqual([false, true])
    expect(await points(stays)).toBe(1)
    expect((await rig.status()).rules.firing).toBe(firing - 1)
    await rig.swap(stays, 10)
    await until('the end of the other alert', () => rig.typesOf(stays).length === 2)
    expect(rig.typesOf(gone)).toEqual(['alert.opened'])
  })

  test('[BUS-003] [PUR-009] [PUR-010] [PUR-025] batches that were on their way are dropped: no state, no event, no sample', async () => {
    const { company, servers } = await newCompany()
    const [gone, stays] = servers
    const counted = 'svc_ingest_dropped_total{reason="purged"}'
    const before = await rig.metric(counted)
    expect((await rig.admin('DELETE', `/servers/${gone.serverId}/data?company_id=${company}`)).status).toBe(200)
    await rig.swap(gone, 90)
    await rig.swap(stays, 90)
    await settled()
    await until('the alert of the other', () => rig.typesOf(stays).length === 1)
    expect(rig.typesOf(gone)).toEqual([])
    // The record comes back only so that the samples can be asked for.
    rig.addServer(gone)
    expect(await points(gone)).toBe(0)
    expect(await points(stays)).toBe(1)
    expect(await rig.metric(counted)).toBe(before + 1)
  })

  test('[PUR-001] [PUR-003] [PUR-008] a company goes as a whole, and once more a while later: what came in between is gone too', async () => {
    const { company, servers } = await newCompany()
    for (const server of servers) await rig.swap(server, 90)
    await settled()
    for (let time = 1; time <= 2; time++) {
      const { status, body } = await rig.admin('DELETE', `/companies/${company}/data`)
      expect([status, body.data.registry_deleted]).toEqual([200, time === 1 ? 2 : 0])
    }
    for (const server of servers) expect(await isKnown(server)).toBe(false)
    const { agents_total } = (await rig.admin('GET', `/companies/${company}/summary`)).body.data
    expect(agents_total).toBe(0)
  })

  test('[EVT-029] [PUR-011] events of the tenant that the hub has not taken go too; those of others are sent', async () => {
    const [one, two] = [await newCompany(), await newCompany()]
    await hub.stop()
    for (const { servers } of [one, two]) await rig.swap(servers[0], 90)
    await until('two events', async () => (await rig.status()).outbox_depth === 2)
    expect((await rig.admin('DELETE', `/companies/${one.company}/data`)).status).toBe(200)
    expect((await rig.status()).outbox_depth).toBe(1)
    hub.restart()
    await until('the event of the other', () => rig.typesOf(two.servers[0]).length === 1, 30_000)
    expect(rig.typesOf(one.servers[0])).toEqual([])
  })

  test('[PUR-010] [BUS-003] what lay on the bus at a purge stays gone when the process starts again after the tombstone has ended', async () => {
    const { company, servers } = await newCompany()
    for (const server of servers) await rig.swap(server, 10)
    await settled()
    const [one, other] = servers
    // Samples of one bucket are one point: what it says tells whether the second one is in it.
    const highest = async ({ companyId, serverId }: Server): Promise<number> => {
      const path = `/servers/${serverId}/series?company_id=${companyId}&metric=swap_used_percent&agg=max`
      const { body } = await rig.admin('GET', path)
      return Math.max(
        ...(body.data.series as { points: number[][] }[]).flatMap(series => series.points.map(([, value]) => value!)),
      )
    }
    await until('both samples', async () => (await highest(one)) === 10 && (await highest(other)) === 10)
    await rig.stop()
    for (const server of servers) await rig.swap(server, 90)
    const untilMs = Date.now() + 1
    writeFileSync(tombstoneFile, JSON.stringify([{ companyId: company, serverId: one.serverId, untilMs }]))
    await until('the end of the tombstone', () => Date.now() > untilMs)
    await rig.start()
    await settled()
    await until('the neighbour', async () => rig.typesOf(other).length === 1 && (await highest(other)) === 90)
    expect([rig.typesOf(one), await highest(one)]).toEqual([[], 10])
    // What comes after the tombstone is taken.
    await rig.swap(one, 90)
    await until('its alert', async () => rig.typesOf(one).length === 1 && (await highest(one)) === 90)
  })

  test('[PUR-011] an open group and the silence of its members go with the company, without group_resolved', async () => {
    const company = id('purge company of a group')
    const fleet = Array.from({ length: 5 }, (_, index) => serverOf(company, `fleet ${index}`))
    for (const server of fleet) rig.addServer(server, { datacenter: 'd1' })
    for (const server of fleet) await rig.swap(server, 1)
    await settled()
    rig.clock.advance(95_000)
    const ofCompany = () => hub.taken.filter(event => event.company_id === company)
    await until('the group', () => ofCompany().some(event => event.type === 'group_down'))
    const groups = await rig.metric('svc_groups_open')
    const before = ofCompany().length
    expect((await rig.admin('DELETE', `/companies/${company}/data`)).status).toBe(200)
    await until('the group to go', async () => (await rig.metric('svc_groups_open')) === groups - 1)
    await rig.someSweeps()
    expect(ofCompany()).toHaveLength(before)
  })

  test('[PUR-011] what a purge forgot does not come back with a restart, once the tombstone is gone', async () => {
    const { company, servers } = await newCompany()
    const { firing } = (await rig.status()).rules
    for (const server of servers) await rig.swap(server, 90)
    await until('both alerts', () => servers.every(server => rig.typesOf(server).length === 1))
    expect((await rig.admin('DELETE', `/companies/${company}/data`)).status).toBe(200)
    expect((await rig.status()).rules.firing).toBe(firing)
    await rig.stop()
    writeFileSync(tombstoneFile, '[]')
    await rig.start()
    expect((await rig.status()).rules.firing).toBe(firing)
    for (const server of servers) expect(rig.typesOf(server)).toEqual(['alert.opened'])
  })

  test('[PUR-004] a purge that a restart cut off after its tombstone is completed: registry, state, events and samples', async () => {
    const { company, servers } = await newCompany()
    for (const server of servers) await rig.swap(server, 90)
    await settled()
    await until('both alerts', () => servers.every(server => rig.typesOf(server).length === 1))
    const { firing } = (await rig.status()).rules
    await rig.stop()
    // What is on disk when the process ends right after the tombstone.
    writeFileSync(
      tombstoneFile,
      JSON.stringify([{ companyId: company, serverId: null, untilMs: Date.now() + 900_000 }]),
    )
    for (const server of servers) await rig.swap(server, 10)
    await rig.start()
    await settled()
    expect((await rig.status()).rules.firing).toBe(firing - 2)
    for (const server of servers) {
      expect(await isKnown(server)).toBe(false)
      expect(rig.typesOf(server)).toEqual(['alert.opened'])
      rig.addServer(server)
      await until('the samples to go', async () => (await points(server)) === 0)
    }
  })

  test('[PUR-013] a tombstone file that cannot be read refuses the start in words', async () => {
    await rig.stop()
    writeFileSync(tombstoneFile, '{ half of it')
    await expect(rig.start()).rejects.toThrow(/cannot read the tombstones .*tombstones\.json/)
    writeFileSync(tombstoneFile, '[]')
    await rig.start()
  })
})
