// How much work requests are among many resources: the statements that they send and the blocks that these read, which
// a busy host does not change. Their times, among as many rows as companies have, are those of bench/resources.ts.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import postgres from 'postgres'
import { listPaths, seedLists } from '../../bench/resources-lists.ts'
import { readWork } from '../support/count-statements.ts'
import { until } from '../support/until.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

/** Those of a request, and of what the hub may do beside it; one for each row would be hundreds. */
const STATEMENTS_MAX = 40

let hub: TestHub
let tenant: Tenant
/** One connection, for what is set on it. */
let seeding: postgres.Sql

beforeAll(async () => {
  hub = await TestHub.start()
  // What these find is seeded here, and on a busy host they would read in each round of a request.
  for (const task of ['address_watch', 'subnet_usage', 'conditions', 'left_over_notifications'])
    await hub.holdTask(task)
  seeding = postgres(hub.databaseUrl, { max: 1, onnotice: () => {} })
})
afterAll(async () => {
  await seeding.end()
  await hub.stop()
})

/** While anything runs that began before, rows are not known to be visible to all, and an index does not do alone. */
async function visibleToAll(table: string): Promise<void> {
  await until(`rows of ${table} to be visible to all`, async () => {
    await seeding.unsafe(`vacuum analyze ${table}`)
    const [pages] = await seeding`select relpages = relallvisible as seen from pg_class where relname = ${table}`
    return pages?.seen
  })
}

/** Makes rows without the triggers that keep search and counts, which are not what is asked here. */
async function seeded(table: string, rows: string): Promise<void> {
  await seeding`set session_replication_role = replica`
  await seeding.unsafe(`insert into ${table} ${rows}`)
  await seeding`set session_replication_role = origin`
  await visibleToAll(table)
}

async function ask(path: string, body?: Json): Promise<Json> {
  const response = await fetch(`${hub.url}/api/v1${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  expect([path, response.ok]).toEqual([path, true])
  return response.json()
}
const work = (path: string, body?: Json) => readWork(hub.hub.database.client, () => ask(path, body))

test('[RES-038] no list reads its rows one by one, whatever is asked of it', async () => {
  tenant = await hub.tenant()
  const rows = 2_000
  // To look up a row takes three blocks; to read whole tables takes fewer, and so the planner may among so few.
  const blocksMax = 2 * rows
  await seedLists(seeding, tenant.companyId, tenant.userId, rows)
  for (const table of ['ip_addresses', 'resource_conditions']) await visibleToAll(table)
  const heavy: Json[] = []
  for (const path of listPaths.filter(each => !/(sort|page)=/.test(each))) {
    const { statements, blocks } = await work(path)
    if (statements > STATEMENTS_MAX || blocks > blocksMax) heavy.push({ path, statements, blocks })
  }
  expect(heavy).toEqual([])
})

test('[RES-054] a graph of 2,000 nodes and 5,000 edges is a handful of statements, none for each of them', async () => {
  tenant = await hub.tenant()
  const [edges, nodes] = [5_000, 2_000]
  await seeded(
    'connections',
    `(id, company_id, name, source_kind, source_name, source_key, target_kind, target_name, target_key, port, type,
        criticality, state, state_since, search_text)
      select gen_random_uuid(), '${tenant.companyId}', 'c ' || i, 'service', 'n-' || s, 'service:n-' || s, 'service',
        'n-' || t, 'service:n-' || t, i, 'http', 'hard', 'up', now(), 'c ' || i
      from generate_series(1, ${edges}) i,
        lateral (select i % ${nodes} as s, (i % ${nodes} + 1 + (i * 7919) % (${nodes} - 1)) % ${nodes} as t) x`,
  )
  const path = `/connections/graph?max_nodes=${nodes}`
  const { data } = await ask(path)
  expect([data.nodes.length, data.edges.length, data.truncated]).toEqual([nodes, edges, false])
  for (const query of ['', '&root=service:n-7&depth=10']) {
    const { statements, blocks } = await work(path + query)
    expect(statements).toBeLessThan(STATEMENTS_MAX)
    expect(blocks).toBeLessThan(edges / 2)
  }
})

describe('[RES-247] among addresses of a /12 of which every other is taken', () => {
  const rows = 6_000
  let subnet: string

  beforeAll(async () => {
    tenant = await hub.tenant()
    subnet = (await tenant.call('POST', '/subnets', { cidr: '10.16.0.0/12' })).body.data.id
    // Those of the tests before have other values, and the planner knows the shares of the whole table only.
    await seeding`set session_replication_role = replica`
    await seeding`delete from ip_addresses`
    await seeding`delete from resource_conditions`
    // What is looked up beside them, as it is known after a while, not only when the database happens to come by.
    await seeding`vacuum analyze resource_conditions, dns_records, ip_observations, servers, teams, users`
    // Of a table that is all of one company its rows are read faster than an index.
    const neighbour = await hub.tenant()
    await seeded(
      'ip_addresses',
      `(id, company_id, name, address, search_text, subnet_id)
        select gen_random_uuid(), c::uuid, host(a), a, host(a), '${subnet}'
        from unnest(array['${tenant.companyId}', '${neighbour.companyId}']) c, generate_series(1, ${rows}) i,
          lateral (select '10.16.0.0'::inet + 2 * i as a) x`,
    )
    // An index has as many blocks as its rows need, whatever it had before.
    await seeding`reindex table ip_addresses`
  })

  test('[RES-247] a page by address looks up what it shows', async () => {
    for (const path of ['/ips?sort=address', '/ips?sort=-address', '/ips?sort=address&page=200']) {
      const { statements, blocks } = await work(path)
      expect(statements).toBeLessThan(STATEMENTS_MAX)
      expect(blocks).toBeLessThan(rows / 4)
    }
  })

  test('[RES-038] a filter whose value most of them have, or none, is counted in an index', async () => {
    const heavy: Json[] = []
    for (const query of [
      'origin=manual',
      'status=active',
      'health=ok',
      'health=critical',
      'stale=0',
      'stale=1',
      'tag=a',
    ]) {
      const { blocks } = await work(`/ips?${query}`)
      // All rows are 170 blocks, and what belongs to those that are shown 90.
      if (blocks > 180) heavy.push({ query, blocks })
    }
    expect(heavy).toEqual([])
  })

  test('[RES-247] an allocation reads a bounded part of them, from either end', async () => {
    for (const from of ['first', 'last']) {
      const { statements, blocks } = await work('/ips/allocate', { subnet_id: subnet, from })
      expect(statements).toBeLessThan(STATEMENTS_MAX)
      // What belongs to a write takes about 150, by how other tables happen to lie; all addresses are 170 more.
      expect(blocks).toBeLessThan(220)
    }
  })
})

test('[RES-038] to count some hundred thousand rows starts no workers, which takes longer than to count them', async () => {
  const { client } = hub.hub.database
  await client`create unlogged table many as select i from generate_series(1, 400000) i`
  await client`analyze many`
  const plan = await client`explain select count(*) from many`
  await client`drop table many`
  expect(JSON.stringify(plan)).toContain('Seq Scan on many')
  expect(JSON.stringify(plan)).not.toContain('Gather')
})

test('[RES-283] a search looks up few documents, for exact, common, misspelled and unknown words', async () => {
  tenant = await hub.tenant()
  const rows = 6_000
  await seeded(
    'search_documents',
    `(company_id, kind, resource_id, name, text, exact)
      select '${tenant.companyId}', (array['server', 'ip_address', 'subnet'])[1 + i % 3], gen_random_uuid(),
        'server web-' || i, 'server web-' || i || ' rack ' || repeat(md5(i::text), 10),
        array[host('10.0.0.0'::inet + i)]
      from generate_series(1, ${rows}) i`,
  )
  for (const word of ['10.0.3.2', 'web-4234', 'server', 'servre web-4234', 'zzqqxxyy', 'rack web']) {
    const { statements, blocks } = await work(`/search?q=${encodeURIComponent(word)}`)
    expect(statements).toBeLessThan(STATEMENTS_MAX)
    expect(blocks).toBeLessThan(rows / 4)
  }
})
