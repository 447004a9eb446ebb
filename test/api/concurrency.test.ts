// What happens at the same moment: writers whose transactions overlap, enrollments at the edge of a quota, people and
// events at one alert, two collectors with the same events.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { Random, seedOf } from '../fuzz/seeded.ts'
import { type Answer, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
let first: Awaited<ReturnType<TestHub['collector']>>
let second: Awaited<ReturnType<TestHub['collector']>>
const random = new Random(seedOf('concurrency'))

beforeAll(async () => {
  hub = await TestHub.start({ 'database.connections': 30, 'outbound.allowed_ranges': ['127.0.0.0/8'] })
  tenant = await hub.tenant()
  first = await hub.collector()
  second = await hub.collector()
})
afterAll(() => hub.stop())

describe('feeds', () => {
  test('[COL-089] [COL-020] a reader misses nothing and meets nothing twice, however long transactions take and in whichever order they end', async () => {
    const { db } = hub.hub.database
    const { companyId } = tenant
    const rows = await db.execute<{ id: string }>(sql`
      insert into servers (id, company_id, name) select gen_random_uuid(), ${companyId}, 's-' || n from generate_series(1, 60) n returning id`)
    const ids = rows.map(row => row.id)
    const counter = async () =>
      Number(
        (await db.execute<{ value: string }>(sql`select value from monitoring_feed_counters where feed = 'servers'`))[0]
          ?.value,
      )
    const start = await counter()
    let isWriting = true
    /**
     * Rows or a tombstone, in a transaction that is over at once or stays open for a while before and after its writes.
     */
    const write = (isSlow: boolean) =>
      inTransaction(db, async tx => {
        const wait = () => tx.db.execute(sql`select pg_sleep(${random.float() * 0.03})`)
        if (isSlow) await wait()
        if (random.chance(0.5)) tx.leaveTombstones('servers', companyId, [randomUUID()])
        else tx.touch('servers', [random.pick(ids), random.pick(ids)])
        if (isSlow) await wait()
      })
    const writers = Promise.all(
      Array.from({ length: 12 }, async (_, writer) => {
        const isSlow = writer < 6
        for (let round = 0; round < (isSlow ? 12 : 100); round++) await write(isSlow)
      }),
    ).then(() => {
      isWriting = false
    })
    /** Reads on from its number, as collectors do; what it holds in the end must be what is there. */
    const read = async (limit: number) => {
      const held = new Map<string, number>()
      let since = start
      for (let isLast = false; ; ) {
        const { data } = (await first.call('GET', `/servers/attributes?since=${since}&limit=${limit}`)).body
        for (const { server_id, sync_version } of data.servers) {
          expect(sync_version).toBeGreaterThan(since)
          since = sync_version
          held.set(server_id, sync_version)
        }
        expect(data.next_since).toBe(since)
        if (isLast && !data.more) return held
        isLast = !isWriting
      }
    }
    const readers = await Promise.all([read(1), read(3), read(500), writers])
    const there = await db.execute<{ id: string; sync_version: string }>(sql`
      select id, sync_version from servers where sync_version > ${start}
      union all select id, sync_version from monitoring_feed_tombstones where feed = 'servers' and sync_version > ${start}`)
    const expected = there.map(row => `${row.id} ${row.sync_version}`).sort()
    for (const held of readers.slice(0, 3) as Map<string, number>[])
      expect([...held].map(([id, version]) => `${id} ${version}`).sort()).toEqual(expected)
    // Numbers are given out without gaps.
    expect(Math.max(...there.map(row => Number(row.sync_version)))).toBe(await counter())
  })
})

describe('enrollment', () => {
  test('[ENR-018] 50 servers at once through two collectors and two licences: the quota is met and not passed', async () => {
    const own = await hub.tenant({ agent_quota: 10, metrics_retention_days: null })
    const tokens: string[] = []
    for (const name of ['a', 'b'])
      tokens.push((await own.call('POST', '/monitoring/licenses', { name, max_uses: 5 })).body.token)
    await hub.hub.database.client`update monitoring_licenses set max_uses = 1000 where company_id = ${own.companyId}`
    await own.call('PATCH', '/monitoring/settings', { auto_create_server: true })
    const enroll = (index: number): Promise<Answer> =>
      (index % 2 ? first : second).call('POST', '/enroll', {
        license: tokens[(index >> 1) % 2],
        hostname: `crowd-${index}`,
        machine_id: randomUUID(),
      })
    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => enroll(index)))
    expect(answers.filter(answer => answer.status === 201)).toHaveLength(10)
    const refused = answers.filter(answer => answer.status !== 201)
    expect(new Set(refused.map(answer => `${answer.status} ${answer.body.error.code}`))).toEqual(
      new Set(['422 quota_exceeded']),
    )
    const { data } = (await own.call('GET', '/monitoring/licenses')).body
    expect(data.reduce((sum: number, row: Json) => sum + row.used_count, 0)).toBe(10)
    expect((await own.call('GET', '/monitoring/agents')).body.meta.total).toBe(10)
    // A refused enrollment leaves no draft behind.
    expect((await own.call('GET', '/servers')).body.meta.total).toBe(10)
  })

  test('[LIC-016] licences made at once keep their sum within the quota', async () => {
    const own = await hub.tenant({ agent_quota: 20, metrics_retention_days: null })
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) => own.call('POST', '/monitoring/licenses', { name: `l${n}`, max_uses: 3 })),
    )
    expect(answers.filter(answer => answer.status === 201)).toHaveLength(6)
    expect((await own.call('GET', '/monitoring/licenses/quota')).body.data).toMatchObject({
      licensed_uses: 18,
      remaining: 2,
    })
  })
})

const ruleId = randomUUID()
/** Recent: events past their retention are cleaned up. */
const FIRST_EVENT_AT_MS = Date.now() - 60_000

const eventOf = (companyId: string, serverId: string, series: string, seq: number, type: string): Json => ({
  event_id: randomUUID(),
  type,
  seq,
  occurred_at: new Date(FIRST_EVENT_AT_MS + seq * 1000).toISOString(),
  company_id: companyId,
  server_id: serverId,
  rule_id: ruleId,
  rule_version: 1,
  series_key: series,
  severity: 'warning',
  value: seq,
  threshold: 1,
  suppressed: false,
  labels: {},
  ...(type === 'alert.resolved' ? { reason: 'recovered' } : {}),
})

async function companyWithServer(): Promise<{ own: Tenant; serverId: string }> {
  const own = await hub.tenant()
  return { own, serverId: (await own.call('POST', '/servers', { name: 'one' })).body.data.id }
}

/** The kept counts of alerts are what counting gives. */
async function expectTrueCounts(companyId: string): Promise<void> {
  const [row] = await hub.hub.database.client`
    select (select coalesce(jsonb_object_agg(state || ' ' || severity, count), '{}') from monitoring_alert_counts
        where company_id = ${companyId} and count > 0) as kept,
      (select coalesce(jsonb_object_agg(key, n), '{}') from (select state || ' ' || severity as key, count(*) as n
        from monitoring_alerts where company_id = ${companyId} group by 1) x) as counted`
  expect(row?.kept).toEqual(row?.counted)
}

describe('alerts', () => {
  test('[HAL-025] [HAL-027] [HAL-028] [HAL-038] people acknowledge and close while the events of the same alerts arrive: every answer is what then stands', async () => {
    const { own, serverId } = await companyWithServer()
    const series = Array.from({ length: 40 }, (_, n) => `cpu_core_usage_percent{core="${n}"}`)
    await first.call('POST', '/events', {
      events: series.map(key => eventOf(own.companyId, serverId, key, 1, 'alert.opened')),
    })
    const alerts: Json[] = []
    for (let page = 1; page <= 3; page++)
      alerts.push(...(await own.call('GET', `/monitoring/alerts?page=${page}`)).body.data)
    expect(alerts).toHaveLength(40)
    const act = (alert: Json, verb: string) => own.call('POST', `/monitoring/alerts/${alert.id}/${verb}`)
    const resolved = series.map(key => eventOf(own.companyId, serverId, key, 2, 'alert.resolved'))
    const batches = Array.from({ length: 10 }, (_, n) => resolved.slice(n * 4, n * 4 + 4))
    const [acknowledged, closed] = await Promise.all([
      Promise.all(
        random.shuffle(alerts).map(async alert => [alert.id, (await act(alert, 'acknowledge')).status] as const),
      ),
      Promise.all(random.shuffle(alerts).map(async alert => [alert.id, (await act(alert, 'close')).status] as const)),
      Promise.all(batches.map(events => second.call('POST', '/events', { events }))),
    ])
    const acknowledgedOf = new Map(acknowledged)
    const closedOf = new Map(closed)
    for (const { id } of alerts) {
      const alert = (await own.call('GET', `/monitoring/alerts/${id}`)).body.data
      const what = JSON.stringify([alert.state, acknowledgedOf.get(id), closedOf.get(id)])
      expect(alert.state, what).toBe(closedOf.get(id) === 200 ? 'closed' : 'resolved')
      expect(alert.acknowledged_by !== null, what).toBe(acknowledgedOf.get(id) === 200)
      expect((await own.call('GET', `/monitoring/alerts/${id}/events`)).body.meta.total, what).toBe(2)
    }
    await expectTrueCounts(own.companyId)
  })

  test('[HAL-032] [HAL-034] [COL-040] two collectors send the same events at the same time, in other orders: each is applied once', async () => {
    const { own, serverId } = await companyWithServer()
    const events = Array.from({ length: 120 }, (_, n) =>
      eventOf(
        own.companyId,
        serverId,
        `disk_used_percent{mount="/${n % 40}"}`,
        Math.floor(n / 40) + 1,
        n < 40 || n >= 80 ? 'alert.opened' : 'alert.resolved',
      ),
    )
    // Of one key the order stays; between keys it does not matter.
    const byKey = (keys: readonly number[]) => keys.flatMap(key => events.filter((_, n) => n % 40 === key))
    const keys = Array.from({ length: 40 }, (_, n) => n)
    const answers = await Promise.all(
      [first, second, first, second].map(collector =>
        collector.call('POST', '/events', { events: byKey(random.shuffle(keys)) }),
      ),
    )
    const all = events.map(event => event.event_id).sort()
    for (const { status, body } of answers)
      expect([status, [...body.data.accepted].sort(), body.data.rejected]).toEqual([200, all, []])
    const { data, meta } = (await own.call('GET', '/monitoring/alerts?state=open')).body
    // Opened, resolved and opened again within the time that re-opens, or as an alert of its own: one is open a key.
    expect(meta.total).toBe(40)
    expect(data[0].last_event_seq).toBe(3)
    const [log] = await hub.hub.database.client`
      select count(*)::int as n, count(distinct event_id)::int as ids from monitoring_alert_events where company_id = ${own.companyId}`
    expect({ ...log }).toEqual({ n: 120, ids: 120 })
    await expectTrueCounts(own.companyId)
  })

  test('[HAL-033] events of one key that two collectors send in turns end in the state of the newest, whoever comes first', async () => {
    const { own, serverId } = await companyWithServer()
    const keys = Array.from({ length: 30 }, (_, n) => `cpu_load1{n="${n}"}`)
    const events = keys.flatMap(key =>
      Array.from({ length: 6 }, (_, n) =>
        eventOf(own.companyId, serverId, key, n + 1, n % 2 ? 'alert.resolved' : 'alert.opened'),
      ),
    )
    const half = (odd: number) => events.filter(event => event.seq % 2 === odd)
    const chunks = (list: Json[]) => Array.from({ length: 6 }, (_, n) => list.filter((_, index) => index % 6 === n))
    const post = async (collector: typeof first, list: Json[]) => {
      for (const some of chunks(list))
        expect((await collector.call('POST', '/events', { events: some })).status).toBe(200)
    }
    await Promise.all([post(first, half(1)), post(second, half(0))])
    expect((await own.call('GET', '/monitoring/alerts?state=active')).body.meta.total).toBe(0)
    const [row] = await hub.hub.database.client`
      select min(seq)::int as least, max(seq)::int as most, count(*)::int as n from monitoring_event_seqs where server_id = ${serverId}`
    expect({ ...row }).toEqual({ least: 6, most: 6, n: 30 })
    await expectTrueCounts(own.companyId)
  })

  test('[COL-042] [COL-043] servers are deleted for good while two collectors send their events: nothing of them stays, and no two wait for each other', async () => {
    const own = await hub.tenant()
    const { client } = hub.hub.database
    const deadlocks = async () =>
      (await client`select deadlocks::int as n from pg_stat_database where datname = current_database()`)[0]?.n
    const before = await deadlocks()
    const ids: string[] = []
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
      ids.push((await own.call('POST', '/servers', { name })).body.data.id)
    const [kept = '', ...gone] = ids
    let deleting = true
    const post = async (collector: typeof first, who: number) => {
      for (let seq = 1; deleting || seq <= 2; seq++) {
        // A series of each batch's own is a new alert and a new mark; one of an old series changes what stands.
        const events = random
          .shuffle(ids)
          .flatMap(id => [
            eventOf(own.companyId, id, `new{n="${who} ${seq}"}`, seq, 'alert.opened'),
            eventOf(own.companyId, id, `old{n="${who}"}`, seq, seq % 2 ? 'alert.opened' : 'alert.resolved'),
            eventOf(own.companyId, id, `lone{n="${who}"}`, seq, 'alert.reminder'),
          ])
        expect((await collector.call('POST', '/events', { events })).status).toBe(200)
      }
    }
    const remove = async () => {
      try {
        // Not put into the trash before: until the moment of the deletion its events are taken.
        for (const id of random.shuffle(gone))
          expect((await own.call('DELETE', `/servers/${id}/permanent`)).status).toBe(204)
      } finally {
        deleting = false
      }
    }
    await Promise.all([post(first, 1), post(second, 2), remove()])
    const rowsOf = async (serverIds: readonly string[]) => {
      const [row] = await client`
        select (select count(*)::int from monitoring_alerts where server_id = any(${serverIds}::uuid[])) as alerts,
          (select count(*)::int from monitoring_alert_events where server_id = any(${serverIds}::uuid[])) as events,
          (select count(*)::int from monitoring_event_seqs where server_id = any(${serverIds}::uuid[])) as marks`
      return [row?.alerts, row?.events, row?.marks]
    }
    expect(await rowsOf(gone)).toEqual([0, 0, 0])
    for (const count of await rowsOf([kept])) expect(count).toBeGreaterThan(0)
    await expectTrueCounts(own.companyId)
    expect(await deadlocks()).toBe(before)
  })
})

describe('what others name', () => {
  const idOf = async (path: string, body: Json): Promise<string> => {
    const made = await tenant.call('POST', path, body)
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    return made.body.data.id
  }
  let names = 0
  const name = (): string => `n${++names}`
  const device = () => idOf('/load-balancers', { name: name(), vendor: 'f5' })
  const pool = (of: string) => idOf(`/load-balancers/${of}/pools`, { name: name() })

  /** What is deleted, and what is made that names it: each has a path, the latter a body. */
  type Pair = { readonly gone: string; readonly path: string; readonly body: Json }
  const pairs: Readonly<Record<string, () => Promise<Pair>>> = {
    'a pool and a virtual server': async () => {
      const of = await device()
      const poolId = await pool(of)
      const body = { name: name(), address: '192.0.2.1', port: 80, pool_id: poolId }
      return { gone: `/load-balancers/${of}/pools/${poolId}`, path: `/load-balancers/${of}/virtual-servers`, body }
    },
    'a name server and a zone': async () => {
      const serverId = await idOf('/dns/servers', { name: name(), host: '127.0.0.1', port: 9 })
      return {
        gone: `/dns/servers/${serverId}`,
        path: '/dns/zones',
        body: { name: `${name()}.example`, server_ids: [serverId] },
      }
    },
    'a device and a connection': async () => {
      const of = await device()
      const body = { source: { kind: 'service', name: name() }, target: { kind: 'load_balancer', id: of } }
      return { gone: `/load-balancers/${of}`, path: '/connections', body }
    },
    'a device and a site of its pool': async () => {
      const of = await device()
      const body = { hostnames: [`${name()}.example.com`], upstream: { kind: 'lb_pool', id: await pool(of) } }
      const proxyId = await idOf('/proxies', { name: name(), mode: 'reverse' })
      return { gone: `/load-balancers/${of}`, path: `/proxies/${proxyId}/sites`, body }
    },
  }
  test.each(Object.keys(pairs))('[RES-015] a resource is deleted or named by another, never both: %s', async which => {
    for (let round = 0; round < 20; round++) {
      const { gone, path, body } = (await pairs[which]?.()) ?? expect.unreachable()
      const [deleted, made] = await Promise.all([tenant.call('DELETE', gone), tenant.call('POST', path, body)])
      if (made.status !== 201) expect([deleted.status, made.status]).toEqual([204, 422])
      else {
        expect(deleted.status).toBe(409)
        expect((await tenant.call('DELETE', `${path}/${made.body.data.id}`)).status).toBe(204)
        expect((await tenant.call('DELETE', gone)).status).toBe(204)
      }
    }
  })
})

describe('people and roles that go', () => {
  test('a user or role that is deleted while a team, a grant or a user takes it is deleted or not found, or stays', async () => {
    const { data: team } = (await tenant.call('POST', '/teams', { name: 'takers' })).body
    const { data: child } = (await tenant.call('POST', '/companies', { name: 'Below', slug: 'below-takers' })).body
    const { data: keeper } = (await tenant.call('POST', '/users', { name: 'K', email: 'keeper@example.test' })).body
    const person = async (round: string): Promise<string> =>
      (await tenant.call('POST', '/users', { name: 'P', email: `p-${round}@example.test` })).body.data.id
    for (let round = 0; round < 10; round++) {
      for (const path of [`/teams/${team.id}/members`, `/companies/${child.id}/grants`]) {
        const id = await person(`${path.split('/')[1]}-${round}`)
        const take = () => tenant.call('POST', path, { user_id: id })
        const [gone, ...taken] = await Promise.all([tenant.call('DELETE', `/users/${id}`), take(), take()])
        expect(gone.status).toBe(204)
        for (const { status, body } of taken)
          if (status !== 201) expect([status, Object.keys(body.errors)]).toEqual([422, ['user_id']])
      }
      const role = (await tenant.call('POST', '/roles', { name: `r${round}`, permissions: ['servers.view'] })).body.data
      const roles = `/users/${keeper.id}/roles`
      const [given, gone] = await Promise.all([
        tenant.call('PUT', roles, { role_ids: [role.id] }),
        tenant.call('DELETE', `/roles/${role.id}`),
      ])
      expect([given.status, gone.status]).toEqual(given.status === 200 ? [200, 422] : [422, 204])
      expect((await tenant.call('PUT', roles, { role_ids: [] })).status).toBe(200)
    }
  })
})

describe('the same thing made by several at once', () => {
  const SIDE_BY_SIDE = 6
  const all = (path: string, body: (at: number) => Json, count = SIDE_BY_SIDE): Promise<Answer[]> =>
    Promise.all(Array.from({ length: count }, (_, at) => tenant.call('POST', path, body(at))))
  const statuses = (answers: readonly Answer[]): number[] => answers.map(({ status }) => status).sort()

  test('[HUB-045] [HUB-043] a user and an invitation of one address are made once, the others are told which field is taken', async () => {
    for (let round = 0; round < 4; round++) {
      const email = `race-${round}@example.test`
      const made = await all('/users', () => ({ name: 'Race', email, password: 'a password of the test' }))
      expect(statuses(made)).toEqual([201, 422, 422, 422, 422, 422])
      for (const { status, body } of made) if (status === 422) expect(Object.keys(body.errors)).toEqual(['email'])
      // A later invitation of an address replaces the one before.
      const asked = await all('/invitations', () => ({ email: `invited-${round}@example.test` }), 4)
      expect(statuses(asked)).toEqual([201, 201, 201, 201])
    }
  })

  test('[R-015] name servers that are made at once stay within their limit', async () => {
    const own = await hub.tenant()
    const made = await Promise.all(
      Array.from({ length: 60 }, (_, at) => own.call('POST', '/dns/servers', { name: `n${at}`, host: '127.0.0.1' })),
    )
    expect(made.filter(({ status }) => status === 201)).toHaveLength(50)
    expect(new Set(made.map(({ body }) => body.reason))).toEqual(new Set([undefined, 'company_quota']))
  })

  test('items of a list that are added at once, or made the default: one is, and each has a place', async () => {
    const items = '/options/environments/items'
    const added = await all(items, at => ({ value: `race-${at}`, is_default: true }))
    expect(statuses(added)).toEqual(Array.from({ length: SIDE_BY_SIDE }, () => 201))
    const shown = async (): Promise<Json[]> => (await tenant.call('GET', '/options/environments')).body.data
    const isDefault = ({ is_default }: Json): boolean => is_default
    expect((await shown()).filter(isDefault)).toHaveLength(1)
    expect(new Set((await shown()).map(({ position }) => position)).size).toBe((await shown()).length)
    const change = ({ body }: Answer) => tenant.call('PATCH', `${items}/${body.data.id}`, { is_default: true })
    for (const { status } of await Promise.all(added.map(change))) expect(status).toBe(200)
    expect((await shown()).filter(isDefault)).toHaveLength(1)
  })

  test('steps that are added to a workflow at once are all there', async () => {
    const team = (await tenant.call('POST', '/teams', { name: 'racers' })).body.data
    const steps = [{ team_id: team.id }]
    const { body } = await tenant.call('POST', '/approvals/workflows', { name: 'race', kinds: ['server'], steps })
    const added = await all(`/approvals/workflows/${body.data.id}/steps`, at => ({ name: `s${at}`, team_id: team.id }))
    expect(statuses(added)).toEqual(Array.from({ length: SIDE_BY_SIDE }, () => 201))
    const shown = (await tenant.call('GET', `/approvals/workflows/${body.data.id}`)).body.data
    expect(new Set(shown.steps.map(({ position }: Json) => position)).size).toBe(SIDE_BY_SIDE + 1)
  })
})
