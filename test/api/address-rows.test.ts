// What a row of an address names is there, as long as the row is; what search knows of it is the same however it was
// written (migration 0080).
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type postgres from 'postgres'
import { sqlState } from '../../apps/hub/platform/db/connect.ts'
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
const subnet = (cidr: string) => data(call('POST', '/subnets', { cidr }))

describe('what an address names', () => {
  const MISSING = '23503'
  const client = () => hub.hub.database.client
  const add = (subnetId: string | null, companyId = tenant.companyId, to: postgres.ISql = client()) =>
    to.unsafe(
      `insert into ip_addresses (id, company_id, name, address, subnet_id)
        values (gen_random_uuid(), $1, '10.0.0.1', '10.0.0.1', $2) returning id`,
      [companyId, subnetId],
    )
  const stateOf = (act: Promise<unknown>) => act.then(() => null, sqlState)
  const waits = (query: string) =>
    until('one statement to wait for the other', async () => {
      const [row] = await client()`select 1 from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database() and query like ${`%${query}%`}`
      return row
    })

  test('must be there, when it is registered and when it moves', async () => {
    await company()
    const { id } = await subnet('10.0.0.0/24')
    const unknown = crypto.randomUUID()
    expect(await stateOf(add(unknown))).toBe(MISSING)
    expect(await stateOf(add(id, unknown))).toBe(MISSING)
    const [row] = await add(id)
    const move = (column: string) =>
      stateOf(client().unsafe(`update ip_addresses set ${column} = $1 where id = $2`, [unknown, row?.id]))
    expect([await move('subnet_id'), await move('company_id')]).toEqual([MISSING, MISSING])
  })

  test('is not deleted beside it, whichever of the two comes first', async () => {
    await company()
    const { id } = await subnet('10.0.0.0/24')
    const { id: other } = await subnet('10.0.1.0/24')
    const remove = (which: string, from: postgres.ISql = client()) =>
      from.unsafe('delete from subnets where id = $1', [which])
    const first = await client().begin(async held => {
      const [row] = await add(id, tenant.companyId, held)
      const removed = remove(id).execute()
      await waits('delete from subnets')
      return { row, removed }
    })
    await first.removed
    const [left] = await client()`select subnet_id from ip_addresses where id = ${first.row?.id}`
    expect(left).toEqual({ subnet_id: null })
    await client()`delete from ip_addresses where id = ${first.row?.id}`
    const second = await client().begin(async held => {
      await remove(other, held)
      const added = stateOf(add(other))
      await waits('insert into ip_addresses')
      return { added }
    })
    expect(await second.added).toBe(MISSING)
  })

  test('takes it along, with its document, when the company goes', async () => {
    await company()
    const { id } = await subnet('10.0.0.0/24')
    await add(id)
    await client()`delete from companies where id = ${tenant.companyId}`
    for (const table of ['ip_addresses', 'search_documents', 'subnets'])
      expect(await client()`select 1 from ${client()(table)} where company_id = ${tenant.companyId}`).toHaveLength(0)
  })

  test('is found by the same words, whether it was just registered or written again', async () => {
    await company()
    const words = { dns_name: 'Web.Example', mac: '02:00:00:00:00:AA', description: 'In Rack 7', tags: ['a', 'b'] }
    const made = [
      await data(call('POST', '/ips', { address: '10.0.0.1', ...words })),
      await data(call('POST', '/ips', { address: '2001:db8::1' })),
    ]
    const ids = made.map(({ id }) => id)
    const kept = () => client()`
      select d.name, d.subtitle, d.text, d.exact, d.health, d.status, a.search_text
      from search_documents d join ip_addresses a on a.id = d.resource_id where a.id = any(${ids}) order by d.name`
    const first = await kept()
    expect(first[0]).toMatchObject({
      subtitle: '10.0.0.1',
      text: '10.0.0.1 web.example 02:00:00:00:00:aa default in rack 7',
      exact: ['10.0.0.1', 'web.example', '02:00:00:00:00:aa'],
      search_text: '10.0.0.1 in rack 7 a b web.example 02:00:00:00:00:aa',
    })
    await client()`delete from search_documents where resource_id = any(${ids})`
    await client()`update ip_addresses set name = name where id = any(${ids})`
    expect(await kept()).toEqual(first)
  })
})

test('an address that is given out shows at once who had it long ago', async () => {
  await company()
  const { id } = await subnet('10.0.0.0/29')
  const { id: server } = await data(call('POST', '/servers', { name: 'old' }))
  await hub.hub.database.client`
    insert into ip_observations (company_id, server_id, address, interface, first_seen_at, last_seen_at)
    values (${tenant.companyId}, ${server}, '10.0.0.2', 'eth0', now() - interval '50 days', now() - interval '40 days')`
  const given = await data(call('POST', '/ips/allocate', { subnet_id: id, count: 2 }))
  expect(
    given.map((row: Json) => [row.address, row.seen.map((each: Json) => each.server.name), row.conflicts]),
  ).toEqual([
    ['10.0.0.1', [], []],
    ['10.0.0.2', ['old'], []],
  ])
})
