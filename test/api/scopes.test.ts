import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { resolveScope } from '../../apps/hub/scopes/scope.ts'
import type { RuleScope } from '../../core/alerting/rules/rule.ts'
import { Random, seedOf } from '../fuzz/seeded.ts'
import { countStatements } from '../support/count-statements.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

setDefaultTimeout(60_000)

const random = new Random(seedOf('scopes'))
const ROUNDS = 25
const words = { tags: ['a', 'b', 'c', 'd'], environments: ['p', 'q'], roles: ['web', 'db'], datacenters: ['x', 'y'] }
let hub: TestHub
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start({ 'webhooks.allow_private': true })
  tenant = await hub.tenant()
})
afterAll(() => hub.stop())

test('[R-076] a scope that names a server which is gone is no hindrance to changing the rest', async () => {
  const { call } = await hub.tenant()
  const post = async (path: string, body: Json): Promise<Json> => (await call('POST', path, body)).body.data
  const [gone, rule] = [await post('/servers', { name: 'gone' }), await post('/servers', { name: 'stays' })]
  const scope = { server_ids: [gone.id, rule.id] }
  const metric = { metric: 'cpu_usage_percent', operator: '>', threshold: 90, severity: 'info' }
  const muted = await post('/monitoring/rules', { name: 'muted', ...metric, scope: { all: true } })
  const ends_at = new Date(Date.now() + 3_600_000).toISOString()
  const made = [
    ['/monitoring/rules', { name: 'load', ...metric, scope }, { threshold: 95 }],
    ['/monitoring/silences', { reason: 'works', scope, ends_at, rule_ids: [muted.id] }, { reason: 'more' }],
    ['/monitoring/checks', { name: 'c', type: 'port', target: { port: 1, proto: 'tcp' }, scope }, { name: 'd' }],
    ['/webhooks', { name: 'w', url: 'https://192.0.2.1/', scope }, { min_severity: 'critical' }],
    ['/notifications/channels', { name: 'n', address: 'a@b.test', scope }, { min_severity: 'info' }],
  ] as const
  const paths = await Promise.all(made.map(async ([path, body]) => `${path}/${(await post(path, body)).id}`))
  await call('DELETE', `/servers/${gone.id}`)
  await call('DELETE', `/monitoring/rules/${muted.id}`)
  for (const [index, [, , patch]] of made.entries()) {
    const path = paths[index] ?? ''
    const { status, body } = await call('PATCH', path, patch)
    expect([path, status, body.data?.scope.server_ids.toSorted()]).toEqual([path, 200, [gone.id, rule.id].sort()])
    expect([path, (await call('PATCH', path, body.data)).status]).toEqual([path, 200])
    const more = await call('PATCH', path, { scope: { server_ids: [gone.id, crypto.randomUUID()] } })
    expect([path, more.status, Object.keys(more.body.errors)]).toEqual([path, 422, ['scope.server_ids']])
  }
})

const some = <T>(list: readonly T[]): T[] => list.filter(() => random.chance(0.35))

type Row = { name: string; id: string; scope: RuleScope; resolved: string[]; sync_version: string }

async function scopedRows(): Promise<Row[]> {
  const { db } = hub.hub.database
  const lists = await Promise.all(
    ['monitoring_rules', 'monitoring_silences', 'monitoring_checks'].map(table =>
      db.execute<Row>(sql`select ${table}::text as name, id, scope, resolved_server_ids::text[] as resolved, sync_version
        from ${sql.identifier(table)} where company_id = ${tenant.companyId} and deleted_at is null`),
    ),
  )
  return lists.flatMap(rows => [...rows])
}

/** Every set is what its scope covers now; of those that stayed the same, none has a new number. */
async function expectInStep(before: readonly Row[]): Promise<Row[]> {
  const now = await scopedRows()
  for (const row of now) {
    const wanted = row.scope.all ? [] : await resolveScope(hub.hub.database.db, tenant.companyId, row.scope)
    expect(row.resolved).toEqual(wanted)
    const old = before.find(each => each.id === row.id)
    const isSame = JSON.stringify(old?.resolved) === JSON.stringify(row.resolved)
    expect(row.sync_version === old?.sync_version).toBe(isSame)
  }
  return now
}

test('[HRL-028 HRL-030 HRL-031 HRL-032] after any change of servers, by one or by many, every scope holds what it covers, and only changed ones have a new number', async () => {
  const ids: string[] = []
  for (let made = 0; made < 12; made++) {
    const answer = await tenant.call('POST', '/servers', {
      name: `s ${made}`,
      tags: some(words.tags),
      environment: random.pick(words.environments),
      role: random.pick(words.roles),
      datacenter: random.pick(words.datacenters),
    })
    ids.push(answer.body.data.id)
  }
  const scope = () => {
    const made = {
      server_ids: some(ids).slice(0, 3),
      tags: some(words.tags),
      environments: some(words.environments).slice(0, 1),
      roles: some(words.roles).slice(0, 1),
      datacenters: some(words.datacenters).slice(0, 1),
    }
    return Object.values(made).some(list => list.length > 0) ? made : { tags: ['a'] }
  }
  const threshold = { kind: 'threshold', metric: 'cpu_usage_percent', operator: '>', threshold: 1, severity: 'info' }
  const until = new Date(Date.now() + 3_600_000).toISOString()
  const shared = scope()
  for (let made = 0; made < 8; made++) {
    const own = made < 4 ? shared : scope()
    const created = [
      await tenant.call('POST', '/monitoring/rules', { name: `r ${made}`, ...threshold, scope: own }),
      await tenant.call('POST', '/monitoring/silences', { scope: own, ends_at: until, reason: 'x' }),
      await tenant.call('POST', '/monitoring/checks', {
        name: `c ${made}`,
        type: 'tcp',
        target: { target: `h:${made + 1}` },
        scope: own,
      }),
    ]
    expect(created.map(answer => answer.status)).toEqual([201, 201, 201])
  }
  let rows = await scopedRows()
  const gone = new Set<string>()
  for (let round = 0; round < ROUNDS; round++) {
    const living = ids.filter(id => !gone.has(id))
    const one = random.pick(living)
    const act = random.pick(['many', 'many', 'tags', 'fields', 'delete', 'restore'] as const)
    if (act === 'many') {
      const body = { server_ids: [...new Set([one, ...some(living)])], add: some(words.tags), remove: some(words.tags) }
      expect((await tenant.call('POST', '/servers/bulk/tags', body)).status).toBe(200)
    } else if (act === 'tags') await tenant.call('PUT', `/servers/${one}/tags`, { tags: some(words.tags) })
    else if (act === 'fields')
      await tenant.call('PATCH', `/servers/${one}`, {
        role: random.pick([null, ...words.roles]),
        datacenter: random.pick(words.datacenters),
      })
    else if (act === 'delete' && living.length > 4) {
      await tenant.call('DELETE', `/servers/${one}`)
      gone.add(one)
    } else if (act === 'restore' && gone.size > 0) {
      const back = random.pick([...gone])
      await tenant.call('POST', `/servers/${back}/restore`)
      gone.delete(back)
    }
    rows = await expectInStep(rows)
  }
})

test('a thousand servers get a tag by one request: all are answered in order, each is audited once', async () => {
  const { db } = hub.hub.database
  const own = await hub.tenant()
  await db.execute(sql`insert into servers (id, company_id, name)
    select gen_random_uuid(), ${own.companyId}, 'many ' || i from generate_series(1, 1000) i`)
  const rows = await db.execute<{ id: string }>(
    sql`select id from servers where company_id = ${own.companyId} order by name`,
  )
  const ids = rows.map(row => row.id)
  const rule = await own.call('POST', '/monitoring/rules', {
    name: 'r',
    kind: 'threshold',
    metric: 'cpu_usage_percent',
    operator: '>',
    threshold: 1,
    severity: 'info',
    scope: { tags: ['new'] },
  })
  let answer = { status: 0, body: {} as Json }
  const statements = await countStatements(hub.hub.database.client, async () => {
    answer = await own.call('POST', '/servers/bulk/tags', { server_ids: ids, add: ['new'] })
  })
  // Some dozens, and none a server; the clock of the hub may send some beside them.
  expect(statements).toBeLessThan(200)
  expect(answer.status).toBe(200)
  expect(answer.body.data.map((server: { id: string }) => server.id)).toEqual(ids)
  expect(answer.body.refused).toEqual([])
  expect((await own.call('GET', `/monitoring/rules/${rule.body.data.id}`)).body.data.resolved_server_count).toBe(1000)
  expect((await own.call('GET', '/audit-log?action=server.update')).body.meta.total).toBe(1000)
  await own.call('POST', '/servers/bulk/tags', { server_ids: ids, add: ['new'] })
  expect((await own.call('GET', '/audit-log?action=server.update')).body.meta.total).toBe(1000)
})
