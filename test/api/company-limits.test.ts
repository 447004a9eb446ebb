// What one company has is bounded, and whatever it has reaches the collectors in pages of a bounded size.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { bringUpToDate } from '../../apps/hub/hub.ts'
import { openDatabase } from '../../apps/hub/platform/db/connect.ts'
import { migrateDatabase, migrations } from '../../apps/hub/platform/db/migrate.ts'
import { installQueues } from '../../apps/hub/platform/jobs/job-store.ts'
import { limits } from '../../core/limits.ts'
import { newDatabase } from '../support/postgres.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
let collector: Awaited<ReturnType<TestHub['collector']>>

beforeAll(async () => {
  hub = await TestHub.start({
    'limits.servers_per_company': 6,
    // Nine come with the company.
    'limits.rules_per_company': 12,
    'limits.silences_per_company': 2,
    'limits.checks_per_company': 2,
    'limits.scope_ids_per_company': 8,
  })
  tenant = await hub.tenant()
  collector = await hub.collector()
})
afterAll(() => hub.stop())

const sql = (strings: TemplateStringsArray, ...values: (string | number | null)[]) =>
  hub.hub.database.client(strings, ...values)
const inOneHour = () => new Date(Date.now() + 3_600_000).toISOString()
const ruleOf = (scope: Json): Json => ({
  name: 'load',
  severity: 'warning',
  metric: 'cpu_load1',
  operator: '>',
  threshold: 1,
  scope,
})
const silenceOf = (scope: Json): Json => ({ scope, reason: 'work', ends_at: inOneHour() })
const checkOf = (port: number, scope: Json): Json => ({
  name: `port ${port}`,
  type: 'port',
  target: { port, proto: 'tcp' },
  scope,
})
const everywhere = { all: true }

async function expectRefused(answer: { status: number; body: Json }, field: string, text: string): Promise<void> {
  expect([answer.status, answer.body.reason, answer.body.errors?.[field]]).toEqual([422, 'company_quota', [text]])
}

describe('limits of a company', () => {
  test('servers: a further one, a file that brings it, one restored and one that enrolls are refused by the limit', async () => {
    const own = await hub.tenant()
    const ids: string[] = []
    for (let n = 0; n < 6; n++) ids.push((await own.call('POST', '/servers', { name: `s${n}` })).body.data.id)
    const text = 'a company has at most 6 servers; this one would have 7'
    await expectRefused(await own.call('POST', '/servers', { name: 's6' }), 'limit', text)
    expect((await own.call('GET', '/servers')).body.meta.total).toBe(6)
    await own.call('DELETE', `/servers/${ids[0]}`)
    const rows = (names: string[]) => own.call('POST', '/servers/import', { csv: `name\n${names.join('\n')}\n` })
    await expectRefused(await rows(['a', 'b']), 'limit', text)
    expect((await rows(['a'])).status).toBe(200)
    // What is there can be changed by a file.
    expect((await rows(['a', 's1'])).status).toBe(200)
    await expectRefused(await own.call('POST', `/servers/${ids[0]}/restore`), 'limit', text)
    await own.call('PATCH', '/monitoring/settings', { auto_create_server: true })
    const { token } = (await own.call('POST', '/monitoring/licenses', { name: 'l' })).body
    const enrollment = await collector.call('POST', '/enroll', { license: token, hostname: 'new', machine_id: 'new' })
    expect([enrollment.status, enrollment.body.error.code, enrollment.body.error.message]).toEqual([
      422,
      'binding_failed',
      `limit: ${text}`,
    ])
  })

  test('rules, silences and checks: what is over does not count, and every company has its own', async () => {
    const own = await hub.tenant()
    const some = (await own.call('GET', '/monitoring/rules')).body.meta.total
    for (let n = some; n < 12; n++)
      expect((await own.call('POST', '/monitoring/rules', ruleOf(everywhere))).status).toBe(201)
    const text = 'a company has at most 12 rules; this one would have 13'
    await expectRefused(await own.call('POST', '/monitoring/rules', ruleOf(everywhere)), 'limit', text)
    const { id } = (await own.call('GET', '/monitoring/rules')).body.data[0]
    await expectRefused(await own.call('POST', `/monitoring/rules/${id}/duplicate`), 'limit', text)
    // A check brings a rule.
    await expectRefused(await own.call('POST', '/monitoring/checks', checkOf(1, everywhere)), 'limit', text)
    expect((await own.call('GET', '/monitoring/checks')).body.meta.total).toBe(0)
    expect((await tenant.call('POST', '/monitoring/rules', ruleOf(everywhere))).status).toBe(201)
    await own.call('DELETE', `/monitoring/rules/${id}`)
    expect((await own.call('POST', '/monitoring/rules', ruleOf(everywhere))).status).toBe(201)

    const first = (await own.call('POST', '/monitoring/silences', silenceOf(everywhere))).body.data
    await own.call('POST', '/monitoring/silences', silenceOf(everywhere))
    await expectRefused(
      await own.call('POST', '/monitoring/silences', silenceOf(everywhere)),
      'limit',
      'a company has at most 2 silences that are not over; this one would have 3',
    )
    await own.call('POST', `/monitoring/silences/${first.id}/end`)
    expect((await own.call('POST', '/monitoring/silences', silenceOf(everywhere))).status).toBe(201)

    for (const port of [1, 2])
      expect((await tenant.call('POST', '/monitoring/checks', checkOf(port, everywhere))).status).toBe(201)
    await expectRefused(
      await tenant.call('POST', '/monitoring/checks', checkOf(3, everywhere)),
      'limit',
      'a company has at most 2 checks; this one would have 3',
    )
  })

  test('servers that scopes name count over all rules, silences and checks, those found by a tag too; nothing that is there is touched', async () => {
    const own = await hub.tenant()
    const ids: string[] = []
    for (let n = 0; n < 3; n++)
      ids.push((await own.call('POST', '/servers', { name: `s${n}`, tags: n === 0 ? ['web'] : [] })).body.data.id)
    const make = (path: string, body: Json) => own.call('POST', path, body)
    // Listed and resolved: two each.
    expect((await make('/monitoring/rules', ruleOf({ server_ids: [ids[0]] }))).status).toBe(201)
    expect((await make('/monitoring/silences', silenceOf({ server_ids: [ids[1]] }))).status).toBe(201)
    const tagged = (await make('/monitoring/rules', ruleOf({ tags: ['web'] }))).body.data
    const text = (count: number) =>
      `the rules, silences and checks of a company name at most 8 servers in total; those of this one would name ${count}: use all, or fewer servers`
    const tooMany = ruleOf({ server_ids: [ids[0], ids[1]] })
    await expectRefused(await make('/monitoring/rules', tooMany), 'scope', text(9))
    await expectRefused(await make('/monitoring/checks', checkOf(1, tooMany.scope)), 'scope', text(9))
    await expectRefused(
      await own.call('PATCH', `/monitoring/rules/${tagged.id}`, { scope: { server_ids: ids } }),
      'scope',
      text(10),
    )
    expect((await own.call('GET', `/monitoring/rules/${tagged.id}`)).body.data.scope.tags).toEqual(['web'])
    // Found by a tag as the servers change: 5 + 2 are fine, and two rules more are not.
    expect((await own.call('PUT', `/servers/${ids[1]}/tags`, { tags: ['web'] })).status).toBe(200)
    expect((await make('/monitoring/rules', ruleOf({ tags: ['web'] }))).status).toBe(201)
    await expectRefused(await own.call('PUT', `/servers/${ids[2]}/tags`, { tags: ['web'] }), 'scope', text(10))
    expect((await own.call('GET', `/servers/${ids[2]}`)).body.data.tags).toEqual([])
    // Taking away is always possible, and makes room.
    expect((await own.call('DELETE', `/servers/${ids[0]}`)).status).toBe(204)
    expect((await own.call('PUT', `/servers/${ids[2]}/tags`, { tags: ['web'] })).status).toBe(200)
  })
})

/** Every page of a feed with its bytes. */
async function pages(feed: string, since: number, limit = 500): Promise<{ records: Json[]; bytes: number }[]> {
  const all: { records: Json[]; bytes: number }[] = []
  for (let at = since; ; ) {
    const response = await fetch(`${hub.url}/api/v1/monitoring/collector/${feed}?since=${at}&limit=${limit}`, {
      headers: { authorization: `Bearer ${collector.token}`, accept: 'application/json' },
    })
    const text = await response.text()
    const { data } = JSON.parse(text)
    all.push({ records: data[feed], bytes: Buffer.byteLength(text) })
    expect(data.next_since).toBe(data[feed].at(-1)?.sync_version ?? at)
    at = data.next_since
    if (!data.more) return all
  }
}

/**
 * A company with servers and rules, silences and checks that name all of them, as a database of before the limits may
 * have.
 */
async function crowd(serverCount: number, recordCount: number): Promise<{ own: Tenant; start: number }> {
  const own = await hub.tenant()
  const [counter] = await sql`select max(value)::int as value from monitoring_feed_counters`
  const start = Number(counter?.value)
  await sql`insert into servers (id, company_id, name)
    select gen_random_uuid(), ${own.companyId}, 's' || n from generate_series(1, ${serverCount}::int) n`
  const scope = sql`(select jsonb_build_object('all', false, 'server_ids', jsonb_agg(id order by id), 'tags', '[]'::jsonb,
    'environments', '[]'::jsonb, 'roles', '[]'::jsonb, 'datacenters', '[]'::jsonb) from servers where company_id = ${own.companyId})`
  const ids = sql`array(select id from servers where company_id = ${own.companyId} order by id)`
  await hub.hub.database
    .client`insert into monitoring_rules (id, company_id, name, kind, scope, resolved_server_ids, metric, matchers, operator,
      threshold, for_seconds, severity, no_data, renotify_seconds, sync_version)
    select gen_random_uuid(), ${own.companyId}, 'r' || n, 'threshold', ${scope}, ${ids}, 'cpu_load1', '{}', '>', 1, 0, 'info',
      'ignore', 0, ${start}::int + n from generate_series(1, ${recordCount}::int) n`
  await hub.hub.database
    .client`insert into monitoring_silences (id, company_id, scope, resolved_server_ids, starts_at, ends_at, reason, sync_version)
    select gen_random_uuid(), ${own.companyId}, ${scope}, ${ids}, now(), now() + interval '1 hour', 'x', ${start}::int + n
    from generate_series(1, ${recordCount}::int) n`
  await hub.hub.database
    .client`insert into monitoring_checks (id, company_id, name, scope, resolved_server_ids, type, target, sync_version)
    select gen_random_uuid(), ${own.companyId}, 'c' || n, ${scope}, ${ids}, 'port',
      jsonb_build_object('port', ${start}::int + n, 'proto', 'tcp'), ${start}::int + n from generate_series(1, ${recordCount}::int) n`
  await sql`update monitoring_feed_counters set value = ${start + recordCount}`
  return { own, start }
}

describe('pages of the feeds', () => {
  test('[COL-022] [COL-031] [COL-036] a page ends with the record that makes it large enough; every record is in one page, in order', async () => {
    const { own, start } = await crowd(20_000, 8)
    for (const feed of ['rules', 'silences', 'checks']) {
      const all = await pages(feed, start)
      const records = all.flatMap(page => page.records)
      expect(records.map(record => record.sync_version)).toEqual(Array.from({ length: 8 }, (_, n) => start + 1 + n))
      expect(records.every(record => record.company_id === own.companyId)).toBe(true)
      const idsOf = (record: Json) => record.resolved_server_ids ?? record.scope.resolved_server_ids
      expect(records.map(record => idsOf(record).length)).toEqual(Array.from({ length: 8 }, () => 20_000))
      const largest = Math.max(...records.map(record => Buffer.byteLength(JSON.stringify(record))))
      expect(all.length).toBeGreaterThan(2)
      for (const page of all) expect(page.bytes).toBeLessThan(limits.feedPageBytes + largest + 1000)
      // Pages are also bounded by the number of records, and go on where they ended.
      expect((await pages(feed, start, 1)).map(page => page.records.length)).toEqual(Array.from({ length: 8 }, () => 1))
    }
  }, 120_000)

  test('[COL-025] [COL-089] tombstones that lie behind the end of a page are of the next one', async () => {
    const { start } = await crowd(20_000, 6)
    // Between the rules, and behind them.
    await sql`update monitoring_rules set sync_version = sync_version * 10 where sync_version > ${start}`
    const gone = [5, 25, 55, 65].map(more => start * 10 + more)
    for (const number of gone)
      await sql`insert into monitoring_feed_tombstones (feed, id, company_id, sync_version)
        values ('rules', ${randomUUID()}, ${tenant.companyId}, ${number})`
    const all = await pages('rules', start * 10)
    const numbers = all.flatMap(page => page.records.map(record => record.sync_version))
    const rules = Array.from({ length: 6 }, (_, n) => (start + 1 + n) * 10)
    expect(numbers).toEqual([...rules, ...gone].sort((a, b) => a - b))
    expect(all.length).toBeGreaterThan(1)
    await sql`delete from monitoring_rules where sync_version > ${start}`
    await sql`delete from monitoring_feed_tombstones where sync_version > ${start}`
  }, 120_000)

  test('[COL-028] [COL-033] [COL-036] a tombstone says which record is gone and nothing of what it was, and nothing more is kept', async () => {
    const own = await hub.tenant()
    const server = (await own.call('POST', '/servers', { name: 'secret' })).body.data.id
    const since: Record<string, number> = {}
    for (const { feed, value } of await sql`select feed, value::int as value from monitoring_feed_counters`)
      since[feed] = value
    const scope = { server_ids: [server], tags: ['secret'] }
    const rule = (await own.call('POST', '/monitoring/rules', { ...ruleOf(scope), name: 'secret' })).body.data
    const silences: Json[] = []
    for (let n = 0; n < 2; n++)
      silences.push(
        (await own.call('POST', '/monitoring/silences', { ...silenceOf(scope), reason: 'secret' })).body.data,
      )
    await own.call('DELETE', `/monitoring/rules/${rule.id}`)
    await own.call('POST', `/monitoring/silences/${silences[0].id}/end`)
    await own.call('DELETE', `/monitoring/silences/${silences[1].id}`)
    const check = (await own.call('POST', '/monitoring/checks', { ...checkOf(9, scope), name: 'secret' })).body.data
    await own.call('DELETE', `/monitoring/checks/${check.id}`)
    const tombstones: Json[] = []
    for (const feed of ['rules', 'silences', 'checks'])
      tombstones.push(...(await pages(feed, since[feed] ?? 0)).flatMap(page => page.records))
    const ids = [rule.id, check.rule_ids[0], silences[0].id, silences[1].id, check.id]
    expect(tombstones.map(record => record.id).sort()).toEqual(ids.sort())
    expect(tombstones.every(record => record.deleted)).toBe(true)
    expect(JSON.stringify(tombstones)).not.toContain('secret')
    expect(JSON.stringify(tombstones)).not.toContain(server)
    expect(tombstones.find(record => record.id === rule.id)).toEqual({
      id: rule.id,
      company_id: own.companyId,
      sync_version: expect.any(Number),
      deleted: true,
      version: 2,
      enabled: false,
    })
    for (const table of ['monitoring_rules', 'monitoring_silences', 'monitoring_checks']) {
      const kept = await hub.hub.database.client`
        select scope::text || resolved_server_ids::text as text from ${hub.hub.database.client(table)} where deleted_at is not null`
      expect(kept.some(row => String(row.text).includes(server))).toBe(false)
    }
  })

  test('a record that is larger than is delivered is withheld and told of, and the rest of the feed goes on', async () => {
    const { own, start } = await crowd(1, 1)
    for (const table of ['monitoring_rules', 'monitoring_silences', 'monitoring_checks'])
      await hub.hub.database.client`update ${hub.hub.database.client(table)}
        set scope = jsonb_set(scope, '{tags}', jsonb_build_array(repeat('x', ${limits.feedRecordBytesMax}::int)))
        where company_id = ${own.companyId} and sync_version > ${start}`
    const rule = (await tenant.call('POST', '/monitoring/rules', ruleOf(everywhere))).body.data
    const all = await pages('rules', start)
    const records = all.flatMap(page => page.records)
    expect(records.map(record => record.company_id)).toEqual([own.companyId, tenant.companyId])
    for (const record of records.slice(0, 1)) {
      expect([record.deleted, record.enabled, record.scope]).toEqual([false, true, undefined])
      expect(record.too_large).toBeGreaterThan(limits.feedRecordBytesMax)
    }
    expect(records[1].id).toBe(rule.id)
    for (const feed of ['silences', 'checks'])
      for (const record of (await pages(feed, start)).flatMap(page => page.records))
        expect([record.deleted, record.too_large > limits.feedRecordBytesMax, record.scope.server_ids]).toEqual([
          false,
          true,
          [],
        ])
    for (const page of all) expect(page.bytes).toBeLessThan(10_000)
  })
})

test('[COL-028] a database of before keeps its rules, and loses what its tombstones held', async () => {
  const database = openDatabase(await newDatabase(), 2)
  try {
    const { client } = database
    const before = migrations.findIndex(({ name }) => name === 'feed_bytes')
    await migrateDatabase(client, () => installQueues(database), migrations.slice(0, before))
    const [company, server] = [randomUUID(), randomUUID()]
    await client`insert into companies (id, name, slug) values (${company}, 'x', 'x')`
    const scope = JSON.stringify({
      all: false,
      server_ids: [server],
      tags: ['t'],
      environments: [],
      roles: [],
      datacenters: [],
    })
    const rule = (name: string, deletedAt: string | null, given = scope) => client`
      insert into monitoring_rules (id, company_id, name, kind, scope, resolved_server_ids, metric, matchers, operator, threshold,
        severity, sync_version, deleted_at)
      values (${randomUUID()}, ${company}, ${name}, 'threshold', ${given}::text::jsonb, ${`{${server}}`}::text::uuid[], 'cpu_load1', '{}',
        '>', 1, 'info', 1, ${deletedAt})`
    await rule('kept', null)
    await rule('gone', new Date().toISOString())
    // As small a scope as any version wrote.
    await rule('small', null, '{"all":true}')
    await client`insert into monitoring_silences (id, company_id, scope, resolved_server_ids, starts_at, ends_at, reason, deleted_at)
      values (${randomUUID()}, ${company}, ${scope}::text::jsonb, ${`{${server}}`}::text::uuid[], now(), now(), 'x', now())`
    await bringUpToDate(database)
    const rows =
      await client`select name, scope->'server_ids' as listed, resolved_server_ids::text[] as resolved, server_id_count as count,
      feed_bytes::int as bytes from monitoring_rules order by name`
    expect(rows.map(row => [row.name, row.listed, row.resolved, row.count])).toEqual([
      ['gone', [], [], 0],
      ['kept', [server], [server], 2],
      ['small', null, [server], 1],
    ])
    expect(rows.every(row => row.bytes > 4096 && row.bytes < 4500)).toBe(true)
    const [silence] = await client`select scope::text || resolved_server_ids::text as text from monitoring_silences`
    expect(String(silence?.text)).not.toContain(server)
  } finally {
    await database.close()
  }
})
