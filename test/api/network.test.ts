// Subnets and addresses (resources.md 10).
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { watchAddresses } from '../../apps/hub/network/network-watch.ts'
import { refreshUsage } from '../../apps/hub/network/subnet-fullness.ts'
import { until } from '../support/until.ts'
import { type Answer, type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
let call: Call

beforeAll(async () => {
  hub = await TestHub.start()
})
afterAll(() => hub.stop())

/** Each test has a company, and so an address space, of its own. */
async function company(): Promise<void> {
  tenant = await hub.tenant()
  call = tenant.call
}
const data = async (answer: Promise<Answer>): Promise<Json> => (await answer).body.data
const subnet = (cidr: string, more: Json = {}) => data(call('POST', '/subnets', { cidr, ...more }))
const faultsOf = async (answer: Promise<Answer>) => {
  const { status, body } = await answer
  return [status, Object.keys(body.errors ?? {})]
}
const allocate = (subnetId: string, more: Json = {}) => call('POST', '/ips/allocate', { subnet_id: subnetId, ...more })
const addresses = (answer: Answer): string[] => answer.body.data.map((row: Json) => row.address)
const number = (address: string) => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
const observe = (server: string, address: string, agoSeconds = 0) =>
  hub.hub.database.db.execute(sql`
    insert into ip_observations (company_id, server_id, address, interface, first_seen_at, last_seen_at)
    values (${tenant.companyId}, ${server}, ${address}::inet, 'eth0', now(), now() - make_interval(secs => ${agoSeconds}))
    on conflict (company_id, address, server_id) do update set last_seen_at = excluded.last_seen_at`)
const server = async (body: Json = {}): Promise<string> =>
  (await data(call('POST', '/servers', { name: crypto.randomUUID(), ...body }))).id

describe('subnets', () => {
  test('[RES-218] [RES-219] [RES-221] blocks have no host bits, a usual spelling, and stand once in an address space', async () => {
    await company()
    for (const cidr of ['10.0.0.1/24', '10.0.0.0/33', '::/129', '10.0.0.0', 'x'])
      expect(await faultsOf(call('POST', '/subnets', { cidr }))).toEqual([422, ['cidr']])
    expect((await subnet('2001:DB8::/32')).cidr).toBe('2001:db8::/32')
    const one = await subnet('10.0.0.0/24')
    expect(await faultsOf(call('POST', '/subnets', { cidr: '10.0.0.0/24', name: 'again' }))).toEqual([422, ['cidr']])
    const other = await subnet('10.0.0.0/24', { vrf: 'blue' })
    expect([one.name, other.name]).toEqual(['10.0.0.0/24', '10.0.0.0/24 (blue)'])
    expect(await faultsOf(call('PATCH', `/subnets/${other.id}`, { vrf: 'default' }))).toEqual([422, ['cidr']])
    expect(await faultsOf(call('PATCH', `/subnets/${one.id}`, { cidr: '10.0.0.1/24' }))).toEqual([422, ['cidr']])
  })

  test('[RES-220] [RES-236] [RES-223] [RES-015] the tree is what lies in what, for blocks and addresses', async () => {
    await company()
    const a = await subnet('10.0.1.0/24')
    const b = await subnet('10.0.2.0/24')
    const address = await data(call('POST', '/ips', { address: '10.0.3.7' }))
    expect(address.subnet_id).toBeNull()
    const top = await subnet('10.0.0.0/8')
    const middle = await subnet('10.0.0.0/16')
    const shown = async (id: string) => data(call('GET', `/subnets/${id}`))
    expect([(await shown(a.id)).parent_id, (await shown(b.id)).depth]).toEqual([middle.id, 2])
    expect((await shown(middle.id)).parent_id).toBe(top.id)
    const held = async () => (await data(call('GET', `/ips/${address.id}`))).subnet_id
    expect(await held()).toBe(middle.id)
    const path = await data(call('GET', '/subnets?contains=10.0.1.2'))
    expect(path.map((row: Json) => row.cidr)).toEqual(['10.0.0.0/8', '10.0.0.0/16', '10.0.1.0/24'])
    const tops = await data(call('GET', '/subnets?parent_id=none'))
    expect([tops.length, (await data(call('GET', `/subnets?parent_id=${middle.id}`))).length]).toEqual([1, 2])
    expect(await faultsOf(call('GET', '/subnets?parent_id=x'))).toEqual([422, ['parent_id']])
    expect((await call('DELETE', `/subnets/${middle.id}`)).status).toBe(204)
    expect([(await shown(a.id)).parent_id, (await shown(a.id)).depth, await held()]).toEqual([top.id, 1, top.id])
    const refused = await call('DELETE', `/subnets/${top.id}`)
    expect([refused.status, refused.body.reason, refused.body.referrers[0].name]).toEqual([409, 'in_use', '10.0.3.7'])
    await data(call('POST', '/servers', { name: 'in-it', subnet_id: top.id }))
    const { referrers, referrers_total } = (await call('DELETE', `/subnets/${top.id}`)).body
    const named = [referrers.map((each: Json) => [each.kind, each.name]), referrers_total]
    expect(named).toEqual([
      [
        ['server', 'in-it'],
        ['ip_address', '10.0.3.7'],
      ],
      2,
    ])
  })

  test('[check 16.12] [RES-220] [RES-236] changes side by side leave the tree that containment says, and never wait for each other in a circle', async () => {
    const seed = Number(process.env.SVC_FUZZ_SEED ?? Date.now() % 100_000)
    let state = seed
    const random = (max: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
      return Math.floor((state / 2_147_483_648) * max)
    }
    const block = () => {
      const prefix = 14 + random(13)
      const size = 2 ** (32 - prefix)
      const from = Math.floor(random(2 ** 18) / size) * size
      return `10.${from >> 16}.${(from >> 8) & 255}.${from & 255}/${prefix}`
    }
    await company()
    const { client } = hub.hub.database
    const circles = async () =>
      Number((await client`select deadlocks from pg_stat_database where datname = current_database()`)[0]?.deadlocks)
    const circlesBefore = await circles()
    const [standing, trash]: [string[], string[]] = [[], []]
    const take = (ids: string[]) => ids.splice(random(ids.length), 1)[0] ?? ''
    const acts: readonly (() => Promise<number>)[] = [
      async () => {
        const id = take(standing)
        const { status } = await call('DELETE', `/subnets/${id}`)
        ;(status === 204 ? trash : standing).push(id)
        return status
      },
      async () => {
        const id = take(trash)
        const { status } = await call('PATCH', `/subnets/${id}`, { deleted_at: null })
        ;(status === 200 ? standing : trash).push(id)
        return status
      },
      async () => (await call('PATCH', `/subnets/${standing[random(standing.length)]}`, { cidr: block() })).status,
      async () => (await call('POST', '/ips', { address: `10.${random(4)}.${random(256)}.${random(256)}` })).status,
    ]
    const create = async () => {
      const { status, body } = await call('POST', '/subnets', { cidr: block() })
      if (status === 201) standing.push(body.data.id)
      return status
    }
    const writer = async () => {
      for (let step = 0; step < 12; step++) {
        const at = random(8)
        const act =
          (at === 0 ? standing : at === 1 ? trash : ['']).length > 0 && standing.length > 0 ? acts[at] : create
        const status = await (act ?? create)()
        expect([seed, [200, 201, 204, 404, 409, 422].includes(status) ? 'answered' : status]).toEqual([
          seed,
          'answered',
        ])
        await refreshUsage(hub.hub)
      }
    }
    await Promise.all(Array.from({ length: 5 }, writer))
    const around = sql`from subnets a where a.company_id = x.company_id and a.vrf = x.vrf and a.deleted_at is null`
    const wrong = await hub.hub.database.db.execute(sql`
      select x.cidr::text as what from subnets x, lateral (select count(*) as depth,
        (array_agg(a.id order by masklen(a.cidr) desc))[1] as parent_id ${around} and a.cidr >> x.cidr) w
      where x.company_id = ${tenant.companyId} and x.deleted_at is null
        and (x.depth <> w.depth or x.parent_id is distinct from w.parent_id)
      union all select x.address::text from ip_addresses x where x.company_id = ${tenant.companyId}
        and x.subnet_id is distinct from (select a.id ${around} and a.cidr >>= x.address order by masklen(a.cidr) desc limit 1)
      union all select x.cidr || ' counts' from subnets x where x.company_id = ${tenant.companyId}
        and x.direct_used <> (select count(*) from ip_addresses i where i.subnet_id = x.id)`)
    expect([seed, [...wrong]]).toEqual([seed, []])
    expect([seed, await circles()]).toEqual([seed, circlesBefore])
  })

  test('[RES-222] a block is not moved away from what lies in it', async () => {
    await company()
    const one = await subnet('10.0.0.0/24')
    await call('POST', '/ips', { address: '10.0.0.200' })
    expect(await faultsOf(call('PATCH', `/subnets/${one.id}`, { cidr: '10.0.0.0/25' }))).toEqual([422, ['cidr']])
    expect((await data(call('PATCH', `/subnets/${one.id}`, { cidr: '10.0.0.0/23' }))).name).toBe('10.0.0.0/23')
  })

  test('[RES-224] [RES-225] usage counts addresses of all depths, gateways and reserved ranges, each once', async () => {
    await company()
    const container = await subnet('10.0.0.0/16', { kind: 'container' })
    await subnet('10.0.128.0/17', { kind: 'container' })
    const one = await subnet('10.0.0.0/24', { gateway: '10.0.0.1' })
    await allocate(one.id, { count: 10 })
    const usage = async (id: string) => (await data(call('GET', `/subnets/${id}`))).usage
    expect(await usage(one.id)).toMatchObject({ usable: 254, used: 11, used_percent: 4.3 })
    expect(await usage(container.id)).toMatchObject({ size: 65_536, used: 11, delegated_percent: 50.3 })
    await refreshUsage(hub.hub)
    const { version } = await data(call('GET', `/subnets/${one.id}`))
    expect(await data(call('PATCH', `/subnets/${one.id}`, { gateway: '10.0.0.1' }))).toMatchObject({ version })
    await call('PATCH', `/subnets/${one.id}`, { reserved: [{ from: '10.0.0.5', to: '10.0.0.20', note: 'DHCP' }] })
    expect((await usage(container.id)).used).toBe(20)
    const details = await data(call('GET', `/subnets/${one.id}/usage`))
    expect(details.by_status).toEqual({ active: 10 })
    const states = new Set(details.ranges.map((range: Json) => range.state))
    expect([...states].sort()).toEqual(['free', 'reserved', 'used'])
    // Ten addresses from .2 on, a gateway before them, and reserved ones that begin among them.
    expect(details.ranges.map((range: Json) => `${range.from} ${range.to} ${range.state}`)).toEqual([
      '10.0.0.0 10.0.0.0 reserved',
      '10.0.0.1 10.0.0.11 used',
      '10.0.0.12 10.0.0.20 reserved',
      '10.0.0.21 10.0.0.254 free',
      '10.0.0.255 10.0.0.255 reserved',
    ])
    expect((await usage((await subnet('2001:db8::/32')).id)).size).toBe('79228162514264337593543950336')
  })

  test('addresses are found by the name of their server, also when it was renamed', async () => {
    await company()
    const server = await data(call('POST', '/servers', { name: 'Printer-07' }))
    const kept = await data(call('POST', '/ips', { address: '10.0.0.5', server_id: server.id }))
    const trashed = await data(call('POST', '/ips', { address: '10.0.0.6', server_id: server.id }))
    await call('POST', '/ips', { address: '10.0.0.7' })
    const found = async (text: string) =>
      (await data(call('GET', `/ips?search=${text}`))).map((each: Json) => each.address)
    expect(await found('printer')).toEqual(['10.0.0.5', '10.0.0.6'])
    await call('DELETE', `/ips/${trashed.id}`)
    await call('PATCH', `/servers/${server.id}`, { name: 'scanner-07' })
    await call('PATCH', `/ips/${trashed.id}`, { deleted_at: null })
    expect([await found('printer'), await found('scanner')]).toEqual([[], ['10.0.0.5', '10.0.0.6']])
    await call('POST', `/ips/${kept.id}/release`)
    expect(await found('SCANNER')).toEqual(['10.0.0.6'])
  })

  test('[RES-240] [RES-241] split makes parts, merge makes one of them', async () => {
    await company()
    const one = await subnet('10.0.0.0/24')
    const parts = await data(call('POST', `/subnets/${one.id}/split`, { prefix: 26 }))
    expect(parts.map((part: Json) => part.cidr)).toEqual([
      '10.0.0.0/26',
      '10.0.0.64/26',
      '10.0.0.128/26',
      '10.0.0.192/26',
    ])
    expect(parts[1].parent_id).toBe(one.id)
    expect(await faultsOf(call('POST', `/subnets/${one.id}/split`, { prefix: 25 }))).toEqual([422, ['prefix']])
    expect(await faultsOf(call('POST', `/subnets/${parts[0].id}/split`, { prefix: 35 }))).toEqual([422, ['prefix']])
    const ids = (...indexes: number[]) => ({ subnet_ids: indexes.map(index => parts[index].id) })
    expect(await faultsOf(call('POST', '/subnets/merge', ids(0, 2)))).toEqual([422, ['subnet_ids']])
    expect(await faultsOf(call('POST', '/subnets/merge', ids(1, 2)))).toEqual([422, ['subnet_ids']])
    await allocate(parts[3].id)
    const merged = await data(call('POST', '/subnets/merge', ids(3, 2)))
    expect(merged).toMatchObject({ cidr: '10.0.0.128/25', parent_id: one.id, usage: { used: 1 } })
    const other = await subnet('10.1.0.0/25')
    const foreign = await subnet('10.1.0.128/25', { vrf: 'blue' })
    const mixed = { subnet_ids: [other.id, foreign.id] }
    expect(await faultsOf(call('POST', '/subnets/merge', mixed))).toEqual([422, ['subnet_ids']])
    expect(await faultsOf(call('POST', `/subnets/${(await subnet('10.2.0.0/16')).id}/split`, { prefix: 26 }))).toEqual([
      422,
      ['prefix'],
    ])
  })

  test('free blocks of a prefix length begin where no address, child or reserved range lies', async () => {
    await company()
    const four = await subnet('10.0.0.0/24', { reserved: [{ from: '10.0.0.130', to: '10.0.0.131', note: 'DHCP' }] })
    await subnet('10.0.0.64/26')
    expect((await call('POST', '/ips', { address: '10.0.0.7' })).status).toBe(201)
    const free = await call('GET', `/subnets/${four.id}/free?prefix=27`)
    expect([free.status, free.body]).toEqual([
      200,
      { data: ['10.0.0.32/27', '10.0.0.160/27', '10.0.0.192/27', '10.0.0.224/27'], total_free: 4 },
    ])
    const six = await subnet('2001:db8::/62')
    expect((await call('POST', '/ips', { address: '2001:db8::1' })).status).toBe(201)
    const blocks = await call('GET', `/subnets/${six.id}/free?prefix=64`)
    expect(blocks.body).toEqual({
      data: ['2001:db8:0:1::/64', '2001:db8:0:2::/64', '2001:db8:0:3::/64'],
      total_free: 3,
    })
    expect(await faultsOf(call('GET', `/subnets/${four.id}/free?prefix=33`))).toEqual([422, ['prefix']])
  })

  test('[check 16.7] [RES-246] [RES-244] a server names a subnet by its id, or any text', async () => {
    await company()
    const one = await subnet('10.0.0.0/24')
    const named = await server({ name: 'holder', subnet_id: one.id })
    await server({ subnet_id: 'rack 7', ip_address: '10.0.0.9' })
    const refused = await call('DELETE', `/subnets/${one.id}`)
    expect([refused.status, refused.body.referrers_total]).toEqual([409, 1])
    expect(refused.body.referrers[0]).toMatchObject({ kind: 'server', id: named, name: 'holder', field: 'subnet_id' })
    const blind = (await hub.user(tenant.companyId, ['network.manage', 'network.view'])).call
    const unseen = await blind('DELETE', `/subnets/${one.id}`)
    expect([unseen.body.referrers, unseen.body.referrers_total]).toEqual([[], 1])
    const servers = await data(call('GET', `/subnets/${one.id}/servers`))
    expect(servers.map((row: Json) => row.source).sort()).toEqual(['address', 'subnet_id'])
    await call('PATCH', `/servers/${named}`, { subnet_id: null })
    expect((await call('DELETE', `/subnets/${one.id}`)).status).toBe(204)
  })
})

describe('addresses', () => {
  test('[check 16.9] [check 16.10] [RES-227] [RES-226] [RES-230] addresses that are asked for side by side are the lowest free ones, each once', async () => {
    await company()
    const one = await subnet('10.20.0.0/24', {
      gateway: '10.20.0.1',
      reserved: [{ from: '10.20.0.10', to: '10.20.0.12' }],
    })
    await subnet('10.20.0.16/28')
    const agent = await server()
    await observe(agent, '10.20.0.5')
    const given = await Promise.all(Array.from({ length: 64 }, () => allocate(one.id)))
    const numbers = given
      .flatMap(addresses)
      .map(number)
      .sort((a, b) => a - b)
    const base = number('10.20.0.0')
    const never = [1, 5, 10, 11, 12, ...Array.from({ length: 16 }, (_, index) => 16 + index)]
    const expected = Array.from({ length: 254 }, (_, index) => index + 1).filter(each => !never.includes(each))
    expect(numbers.map(each => each - base)).toEqual(expected.slice(0, 64))
    const free = await call('GET', `/subnets/${one.id}/free?count=3`)
    expect(free.body).toEqual({
      data: expected.slice(64, 67).map(each => `10.20.0.${each}`),
      total_free: expected.length - 64,
    })
    // The first block has the gateway, the second what an agent reported.
    const narrow = await subnet('10.31.0.0/28', { gateway: '10.31.0.1' })
    await observe(agent, '10.31.0.6')
    const blocks = await call('GET', `/subnets/${narrow.id}/free?prefix=30`)
    expect(blocks.body).toEqual({ data: ['10.31.0.8/30', '10.31.0.12/30'], total_free: 2 })
    const last = await call('GET', `/subnets/${narrow.id}/free?prefix=30&from=last&count=1`)
    expect(last.body).toEqual({ data: ['10.31.0.12/30'], total_free: 2 })
    const small = await subnet('10.30.0.0/30')
    expect(addresses(await allocate(small.id, { count: 2 }))).toEqual(['10.30.0.1', '10.30.0.2'])
    expect(await faultsOf(allocate(small.id))).toEqual([422, ['subnet_id']])
    const container = await subnet('10.40.0.0/24', { kind: 'container' })
    expect(await faultsOf(allocate(container.id))).toEqual([422, ['subnet_id']])
  })

  /** Waits until so many statements that contain the text wait for a lock. */
  const waits = (query: string, count = 1) =>
    until(`${count} of "${query}" to wait for a lock`, async () => {
      const waiting = await hub.hub.database.client`select 1 from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database() and query like ${`%${query}%`}`
      return waiting.length >= count
    })

  test('[RES-227] an address that is registered by hand meanwhile is given to nobody, and who asks for any gets another', async () => {
    await company()
    const one = await subnet('10.51.0.0/27')
    // Nobody sees the address yet, and it stands where the search finds none. With a subnet it would hold that.
    const asked = await hub.hub.database.client.begin(async held => {
      await held`insert into ip_addresses (id, company_id, name, address)
        values (gen_random_uuid(), ${tenant.companyId}, '10.51.0.2', '10.51.0.2')`
      const all = [1, 2, 3].map(() => allocate(one.id))
      const named = allocate(one.id, { address: '10.51.0.2' })
      await waits('insert into "ip_addresses"')
      return { all, named }
    })
    const given = await Promise.all(asked.all)
    expect(given.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(given.flatMap(addresses).sort()).toEqual(['10.51.0.1', '10.51.0.3', '10.51.0.4'])
    expect(await faultsOf(asked.named)).toEqual([422, ['address']])
    // Through the door of those who register by hand, side by side.
    const byHand = ['10.51.0.5', '10.51.0.7', '10.51.0.8', '10.51.0.10']
    const [registered, more] = await Promise.all([
      Promise.all(byHand.map(address => call('POST', '/ips', { address }))),
      Promise.all(Array.from({ length: 8 }, () => allocate(one.id))),
    ])
    expect(more.map(({ status }) => status)).toEqual(more.map(() => 201))
    const stored = registered.flatMap(({ status, body }) => (status === 201 ? [body.data.address] : []))
    const all = [...given.flatMap(addresses), ...more.flatMap(addresses), ...stored]
    expect(new Set(all).size).toBe(3 + 8 + stored.length)
    expect((await call('GET', `/ips?subnet_id=${one.id}`)).body.meta.total).toBe(all.length)
  })

  test('[RES-227] of many subnets at once each gives its own lowest ones, and none waits for one that another holds', async () => {
    await company()
    const blocks = await Promise.all(
      Array.from({ length: 8 }, (_, index) => subnet(`10.60.${index}.0/29`, { vrf: index % 2 ? 'blue' : 'default' })),
    )
    const agent = await server()
    await observe(agent, '10.60.3.2')
    const asks = [...blocks, ...blocks, ...blocks].map(({ id }) => allocate(id))
    const refused = await faultsOf(allocate(crypto.randomUUID()))
    expect(refused).toEqual([422, ['subnet_id']])
    const given = (await Promise.all(asks)).flatMap(addresses)
    const lowest = (index: number) => (index === 3 ? [1, 3, 4] : [1, 2, 3]).map(at => `10.60.${index}.${at}`)
    expect(given.sort()).toEqual(blocks.flatMap((_, index) => lowest(index)).sort())
    const { later } = await hub.hub.database.client.begin(async held => {
      await held`select id from subnets where id = ${blocks[1]!.id} for no key update`
      const later = [1, 2].map(() => allocate(blocks[1]!.id))
      await waits('for no key update of s')
      const others = await Promise.all(
        [blocks[0]!, blocks[1]!, blocks[2]!].map(({ id }, at) => at !== 1 && allocate(id)),
      )
      expect(others.flatMap(answer => (answer ? addresses(answer) : []))).toEqual(['10.60.0.4', '10.60.2.4'])
      return { later }
    })
    expect((await Promise.all(later)).flatMap(addresses).sort()).toEqual(['10.60.1.4', '10.60.1.5'])
  })

  test('[RES-227] [RES-233] what is free again by itself is given out, however far the search has come', async () => {
    await company()
    const one = await subnet('10.61.0.0/27', { quarantine_hours: 1 })
    const agent = await server()
    await observe(agent, '10.61.0.2')
    await observe(agent, '10.61.0.4')
    const first = (await allocate(one.id, { count: 3 })).body.data
    expect(first.map((row: Json) => row.address)).toEqual(['10.61.0.1', '10.61.0.3', '10.61.0.5'])
    // One that is registered and was seen is no longer in the way of the search, one that was only seen is.
    expect((await call('POST', '/ips', { address: '10.61.0.2' })).status).toBe(201)
    expect(addresses(await allocate(one.id))).toEqual(['10.61.0.6'])
    const searched = async () => {
      const [row] = await hub.hub.database.client`select host(free_from) as at from subnets where id = ${one.id}`
      return row?.at
    }
    expect(await searched()).toBe('10.61.0.4')
    await observe(agent, '10.61.0.4', 31 * 86_400)
    await call('POST', `/ips/${first[1].id}/release`, {})
    expect(addresses(await allocate(one.id))).toEqual(['10.61.0.4'])
    expect(await searched()).toBe('10.61.0.3')
    await hub.hub.database.client`
      update ip_addresses set released_at = now() - interval '2 hours' where id = ${first[1].id}`
    const again = await Promise.all([1, 2].map(() => allocate(one.id)))
    expect(again.flatMap(addresses).sort()).toEqual(['10.61.0.3', '10.61.0.7'])
    expect(addresses(await allocate(one.id))).toEqual(['10.61.0.8'])
    expect(await searched()).toBe('10.61.0.8')
  })

  test('[RES-227] [RES-228] [RES-229] side by side each has its own outcome, and what one is refused stops no other', async () => {
    await company()
    const one = await subnet('10.50.0.0/27')
    const viewer = await hub.user(tenant.companyId, ['network.view', 'network.manage'])
    const answers = await Promise.all([
      ...[1, 2, 3].map(() => allocate(one.id)),
      allocate(one.id, { count: 2, request_id: 'same' }),
      allocate(one.id, { server_id: crypto.randomUUID() }),
      allocate(one.id, { count: 64 }),
      allocate(one.id, { count: 2, request_id: 'same' }),
      allocate(one.id, { from: 'last' }),
      viewer.call('POST', '/ips/allocate', { subnet_id: one.id, dns_name: 'mine.example' }),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 201, 201, 201, 201, 201, 201, 422, 422])
    const faults = answers.filter(({ status }) => status === 422).map(({ body }) => Object.keys(body.errors)[0])
    expect(faults.sort()).toEqual(['server_id', 'subnet_id'])
    const [twice, again] = answers.filter(({ body }) => body.data?.length === 2).map(addresses)
    expect(twice).toEqual(again ?? [])
    const given = [...new Set(answers.filter(({ body }) => body.data).flatMap(addresses))].map(number).sort()
    const base = number('10.50.0.0')
    expect(given.map(each => each - base).sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 30])
    const mine = answers.find(({ body }) => body.data?.[0].dns_name === 'mine.example')?.body.data[0]
    expect([mine.created_by.id, mine.version, mine.conditions]).toEqual([viewer.userId, 1, []])
    const log = (await call('GET', '/audit-log?action=ip_address.allocate')).body.data
    expect(log.map((entry: Json) => entry.actor.id).filter((actor: string) => actor === viewer.userId)).toHaveLength(1)
    expect(log).toHaveLength(7)
  })

  test('when an address was seen last is its own, whoever came first', async () => {
    await company()
    const agent = await server()
    await observe(agent, '10.60.0.2', 60)
    const before = await data(call('POST', '/ips', { address: '10.60.0.2' }))
    const after = await data(call('POST', '/ips', { address: '10.60.0.3' }))
    const never = await data(call('POST', '/ips', { address: '10.60.0.4' }))
    await observe(agent, '10.60.0.3')
    const ids = async (query: string) => (await data(call('GET', `/ips?${query}`))).map((row: Json) => row.id)
    expect(await ids('seen=1&sort=last_seen')).toEqual([before.id, after.id])
    expect(await ids('seen=0')).toEqual([never.id])
    await observe(agent, '10.60.0.2')
    expect(await ids('seen=1&sort=last_seen')).toEqual([after.id, before.id])
    await hub.hub.database.db.execute(sql`delete from ip_observations where company_id = ${tenant.companyId}`)
    expect(await ids('seen=1')).toEqual([])
  })

  test('one that is given out says who saw it long ago, and its subnet', async () => {
    await company()
    const agent = await server()
    const one = await data(call('POST', '/subnets', { cidr: '10.62.0.0/29' }))
    await data(call('POST', '/subnets', { cidr: '10.62.0.4/30' }))
    await observe(agent, '10.62.0.1', 40 * 86_400)
    const [first, second] = (await allocate(one.id, { count: 2 })).body.data
    expect([first.address, first.subnet_id, first.seen[0]?.server.id]).toEqual(['10.62.0.1', one.id, agent])
    expect([second.address, second.subnet_id, second.seen]).toEqual(['10.62.0.2', one.id, []])
    expect((await data(call('GET', '/ips?seen=1'))).map((row: Json) => row.id)).toEqual([first.id])
  })

  test('[RES-228] [RES-229] [RES-232] [RES-231] all or none, once a request, from either end, neighbours', async () => {
    await company()
    const one = await subnet('10.0.0.0/28')
    expect(await faultsOf(allocate(one.id, { count: 15 }))).toEqual([422, ['subnet_id']])
    expect((await call('GET', '/ips')).body.meta.total).toBe(0)
    const first = await allocate(one.id, { count: 2, request_id: 'a', dns_name: 'A.example' })
    const again = await allocate(one.id, { count: 2, request_id: 'a' })
    expect([first.status, again.status, addresses(again)]).toEqual([201, 200, addresses(first)])
    expect(first.body.data[0].dns_name).toBe('a.example')
    expect(addresses(await allocate(one.id, { from: 'last' }))).toEqual(['10.0.0.14'])
    await allocate(one.id, { address: '10.0.0.5' })
    expect(await faultsOf(allocate(one.id, { address: '10.0.0.5' }))).toEqual([422, ['address']])
    expect(addresses(await allocate(one.id, { count: 3, contiguous: true }))).toEqual([
      '10.0.0.6',
      '10.0.0.7',
      '10.0.0.8',
    ])
    await observe(await server(), '10.0.0.3')
    expect(await faultsOf(allocate(one.id, { address: '10.0.0.3' }))).toEqual([422, ['address']])
    expect(addresses(await allocate(one.id))).toEqual(['10.0.0.4'])
  })

  test('[RES-233] a released address rests, keeps its history, and is given out again', async () => {
    await company()
    const one = await subnet('10.0.0.0/29', { quarantine_hours: 1 })
    const [address] = (await allocate(one.id)).body.data
    const named = await server()
    await call('PATCH', `/ips/${address.id}`, { server_id: named, interface: 'eth0' })
    const released = await data(call('POST', `/ips/${address.id}/release`, { note: 'moved' }))
    expect(released).toMatchObject({ status: 'released', server_id: null, interface: null })
    expect(addresses(await allocate(one.id))).toEqual(['10.0.0.2'])
    await call('PATCH', `/subnets/${one.id}`, { quarantine_hours: 0 })
    const [again] = (await allocate(one.id)).body.data
    expect([again.id, again.status]).toEqual([address.id, 'active'])
    const history = await data(call('GET', `/ips/${address.id}/history`))
    expect(history.map((entry: Json) => entry.type)).toEqual(['allocated', 'released', 'changed', 'allocated'])
  })

  test('[RES-234] [RES-235] [RES-239] an address stands once in a company, and is reserved until a time ahead', async () => {
    await company()
    const both = await Promise.all([1, 2].map(() => call('POST', '/ips', { address: '10.0.0.9' })))
    expect(both.map(each => each.status).sort()).toEqual([201, 422])
    expect(both.find(each => each.status === 422)?.body.errors).toHaveProperty('address')
    const foreign = await hub.tenant()
    expect((await foreign.call('POST', '/ips', { address: '10.0.0.9' })).status).toBe(201)
    expect((await call('GET', '/ips?contained_in=10.0.0.0/8')).body.meta.total).toBe(1)
    const [row] = await data(call('GET', '/ips'))
    expect(await faultsOf(call('POST', `/ips/${row.id}/reserve`, { until: '2020-01-01T00:00:00Z' }))).toEqual([
      422,
      ['until'],
    ])
    const until = new Date(Date.now() + 3_600_000).toISOString()
    expect((await data(call('POST', `/ips/${row.id}/reserve`, { until }))).status).toBe('reserved')
  })
})

describe('what agents report', () => {
  /** An agent of the company, and its inventory as its collector sends it. */
  const agentOf = async (serverId: string): Promise<string> => {
    const id = crypto.randomUUID()
    await hub.hub.database.db.execute(sql`
      insert into monitoring_agents (id, company_id, server_id, token_hash, state, last_seen_at)
      values (${id}, ${tenant.companyId}, ${serverId}, ${id}, 'active', now())`)
    return id
  }
  const report = async (serverId: string, agentId: string, ips: string[], name = 'eth0') => {
    const collector = await hub.collector()
    const facts = { nics: [{ name, ips }] }
    const item = {
      agent_id: agentId,
      company_id: tenant.companyId,
      server_id: serverId,
      reported_at: new Date().toISOString(),
      facts,
    }
    const taken = await collector.call('POST', '/inventory', { items: [item] })
    expect(taken.body.data).toMatchObject({ accepted: 1 })
  }

  test('[RES-238] [RES-243] observed addresses are counted, registered or assigned as the subnet says', async () => {
    await company()
    const watched = await subnet('10.1.0.0/24', { assign_servers: true })
    const registering = await subnet('10.2.0.0/24', { discovery: 'register' })
    const one = await server()
    const agent = await agentOf(one)
    await report(one, agent, ['10.1.0.7/24', '10.2.0.7', '127.0.0.1', 'fe80::1%eth0'])
    await report(one, agent, ['10.1.0.99'], 'docker0')
    const rows = await data(call('GET', '/ips'))
    expect(rows.map((row: Json) => [row.address, row.origin, row.server_id])).toEqual([['10.2.0.7', 'discovered', one]])
    expect(rows[0].subnet_id).toBe(registering.id)
    expect(rows[0].seen[0].server.id).toBe(one)
    expect((await data(call('GET', `/subnets/${watched.id}`))).usage).toMatchObject({ used: 0, discovered: 1 })
    expect((await data(call('GET', `/servers/${one}`))).subnet_id).toBe(watched.id)
  })

  test('[RES-237] two servers with one address are a conflict until one stops', async () => {
    await company()
    const shared = await data(call('POST', '/ips', { address: '10.0.0.5' }))
    const vip = await data(call('POST', '/ips', { address: '10.0.0.6', role: 'vip' }))
    const [one, two] = [await server({ name: 'one' }), await server({ name: 'two' })]
    for (const each of [one, two]) for (const address of ['10.0.0.5', '10.0.0.6']) await observe(each, address)
    await watchAddresses(hub.hub)
    const shown = await data(call('GET', `/ips/${shared.id}`))
    expect(shown.conditions).toMatchObject([{ code: 'duplicate_address', severity: 'critical' }])
    expect(shown.conditions[0].message).toBe('10.0.0.5 is reported by one, two')
    expect([shown.health, (await data(call('GET', `/ips/${vip.id}`))).health]).toEqual(['critical', 'ok'])
    expect((await data(call('GET', '/ips?conflict=1'))).map((row: Json) => row.id)).toEqual([shared.id])
    await observe(two, '10.0.0.5', 700)
    await watchAddresses(hub.hub)
    expect((await data(call('GET', `/ips/${shared.id}`))).conditions).toEqual([])
  })

  test('[RES-242] [RES-239] a subnet that fills up says so once a level, a reservation ends by itself', async () => {
    await company()
    const one = await subnet('10.0.0.0/28')
    const codes = async () => {
      await refreshUsage(hub.hub)
      return (await data(call('GET', `/subnets/${one.id}`))).conditions.map((each: Json) => each.code)
    }
    await allocate(one.id, { count: 12 })
    expect(await codes()).toEqual(['subnet_filling'])
    expect((await data(call('GET', '/subnets?used_over=80'))).map((row: Json) => row.id)).toEqual([one.id])
    const [last] = (await allocate(one.id, { count: 2 })).body.data
    expect(await codes()).toEqual(['subnet_full'])
    await hub.hub.database.db.execute(sql`
      update ip_addresses set status = 'reserved', reserved_until = now() - interval '1 minute' where id = ${last.id}`)
    await watchAddresses(hub.hub)
    expect((await data(call('GET', `/ips/${last.id}`))).status).toBe('released')
    expect(await codes()).toEqual(['subnet_filling'])
  })
})
