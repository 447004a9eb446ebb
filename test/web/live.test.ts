// The live stream over HTTP, against a real hub and database: what it shows of whom, to whom, and when it ends.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { freePort } from '../../apps/standalone/ports.ts'
import { caller, type Json, type Tenant, TestHub } from '../api/hub-harness.ts'
import { until } from '../support/until.ts'
import { Live, logIn, newPerson, onePicture, type Session } from './visitor.ts'

type Collector = Awaited<ReturnType<TestHub['collector']>>
let hub: TestHub
let collector: Collector
let tenant: Tenant
let session: Session

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'collector.timeout': '200ms' })
  tenant = await hub.tenant()
  session = await logIn(hub.url, (await newPerson(hub, tenant.companyId)).email)
}, 60_000)
afterAll(() => hub.stop(), 30_000)

const theCollector = async (): Promise<Collector> => {
  // Nothing listens there: a collector that is down.
  collector ??= await hub.collector(`http://127.0.0.1:${freePort()}`)
  return collector
}

async function newServer(by: Tenant, name: string, hostname = `${name}.example.test`): Promise<string> {
  const { status, body } = await by.call('POST', '/servers', { name, hostname })
  expect(status).toBe(201)
  return body.data.id
}

/** A server whose agent was seen `secondsAgo`. */
async function newSeenServer(by: Tenant, name: string, secondsAgo: number): Promise<string> {
  const serverId = await newServer(by, name)
  const { call } = await theCollector()
  const { token } = (await by.call('POST', '/monitoring/licenses', { name, server_id: serverId })).body
  const enrolled = await call('POST', '/enroll', { license: token, hostname: name, machine_id: serverId })
  const last_seen_at = new Date(Date.now() - secondsAgo * 1000).toISOString()
  await call('POST', '/agents/seen', { agents: [{ agent_id: enrolled.body.data.agent_id, last_seen_at }] })
  return serverId
}

let seq = 0
async function newAlert(by: Tenant, serverId: string, severity: string, more: Json = {}): Promise<void> {
  const { call } = await theCollector()
  const event = {
    event_id: crypto.randomUUID(),
    type: 'alert.opened',
    seq: ++seq,
    occurred_at: new Date().toISOString(),
    company_id: by.companyId,
    server_id: serverId,
    rule_id: crypto.randomUUID(),
    rule_version: 1,
    series_key: 'disk_used_percent{device="sda1",fstype="ext4",mount="/"}',
    severity,
    value: 97.25,
    threshold: 90,
    suppressed: false,
    suppress_reason: null,
    group_key: null,
    labels: { mount: '/' },
    ...more,
  }
  expect((await call('POST', '/events', { events: [event] })).body.data.accepted).toHaveLength(1)
}

const snapshotOf = (search = '', of: Session = session) => onePicture(hub.url, of.cookie, search)
const namesOf = async (search: string) => (await snapshotOf(search)).servers.map(server => server.name)

describe('who may look', () => {
  test('without a session, and with a bearer token, there is no stream', async () => {
    const status = async (headers: Record<string, string>) => (await fetch(`${hub.url}/web/live`, { headers })).status
    expect(await status({})).toBe(401)
    expect(await status({ cookie: 'hub_session=ses_guessed' })).toBe(401)
    expect(await status({ authorization: `Bearer ${tenant.token}` })).toBe(401)
  })

  test('[HUB-031] a company sees its own servers and alerts; another one only where it was granted', async () => {
    const other = await hub.tenant()
    const child = await hub.tenant(undefined, { parentId: other.companyId })
    const own = await newServer(other, 'own')
    await newServer(child, 'of the child')
    await newAlert(other, own, 'warning')
    const person = await newPerson(hub, other.companyId)
    const theirs = await logIn(hub.url, person.email)
    const snapshot = await snapshotOf('', theirs)
    expect(snapshot.servers.map(server => server.name)).toEqual(['own'])
    expect(snapshot.alertsTotal).toBe(1)
    const stranger = await logIn(hub.url, (await newPerson(hub, (await hub.tenant()).companyId)).email)
    const empty = await snapshotOf('', stranger)
    expect([empty.counts.all, empty.servers.length, empty.alertsTotal]).toEqual([0, 0, 0])

    const status = async () =>
      (await fetch(`${hub.url}/web/live?company=${child.companyId}`, { headers: { cookie: theirs.cookie } })).status
    expect(await status()).toBe(403)
    await hub.hub.database.db.execute(
      sql`insert into user_company_grants (user_id, company_id) values (${person.userId}, ${child.companyId})`,
    )
    const granted = await snapshotOf(`?company=${child.companyId}`, theirs)
    expect(granted.servers.map(server => server.name)).toEqual(['of the child'])
    const { page } = await logIn(hub.url, person.email)
    expect(page).toContain(`<option value="${child.companyId}">`)
  })

  test('a stream ends when its session does, and when a permission is lost', async () => {
    const endOf = async (act: (userId: string) => Promise<unknown>): Promise<unknown> => {
      const person = await newPerson(hub, tenant.companyId)
      const live = await Live.open(hub.url, (await logIn(hub.url, person.email)).cookie)
      await live.snapshot()
      await act(person.userId)
      const end = await live.next('end')
      await live.ended()
      return end
    }
    const { db } = hub.hub.database
    const [signedOut, refused] = await Promise.all([
      endOf(userId => db.execute(sql`delete from sessions where user_id = ${userId}`)),
      endOf(userId => db.execute(sql`update users set permissions = '{servers.view}' where id = ${userId}`)),
    ])
    expect(signedOut).toEqual({ reason: 'signed_out' })
    expect(refused).toEqual({ reason: 'refused' })
  }, 30_000)

  test('[HUB-049] opening streams counts as requests of the session: the one over the limit is 429 with Retry-After', async () => {
    const strict = await TestHub.start({ 'rate.session_per_minute': 3 })
    try {
      const person = await newPerson(strict, (await strict.tenant()).companyId)
      const { cookie } = await logIn(strict.url, person.email)
      for (let opened = 0; opened < 3; opened++) await onePicture(strict.url, cookie)
      const over = await fetch(`${strict.url}/web/live`, { headers: { cookie } })
      expect(over.status).toBe(429)
      expect(Number(over.headers.get('retry-after'))).toBeWithin(1, 61)
    } finally {
      await strict.running.stop()
    }
  }, 30_000)
})

test('a session has ten streams at most, and one that is closed makes room', async () => {
  const person = await newPerson(hub, tenant.companyId)
  const { cookie } = await logIn(hub.url, person.email)
  const streams = await Promise.all(Array.from({ length: 10 }, () => Live.open(hub.url, cookie)))
  const next = () => Live.open(hub.url, cookie)
  const refused = await next()
  expect(refused.response.status).toBe(429)
  streams[0]?.close()
  const last = await until('room for a stream', async () => {
    const live = await next()
    return live.response.status === 200 && live
  })
  for (const live of [...streams, last]) live.close()
}, 30_000)

describe('what is shown', () => {
  test('states, host names and times come from the records when no collector answers, and the page is told so', async () => {
    const fresh = await hub.tenant()
    const theirs = await logIn(hub.url, (await newPerson(hub, fresh.companyId)).email)
    expect((await snapshotOf('', theirs)).counts).toEqual({ all: 0, online: 0, down: 0, unknown: 0, alerts: 0 })
    await newSeenServer(fresh, 'a-reports', 5)
    await newSeenServer(fresh, 'b-silent', 3_600)
    await newServer(fresh, 'c-new')
    const snapshot = await until('a snapshot with all three', async () => {
      const now = await snapshotOf('', theirs)
      return now.counts.all === 3 && now
    })
    expect(snapshot.servers.map(({ name, connectivity }) => [name, connectivity])).toEqual([
      ['a-reports', 'online'],
      ['b-silent', 'down'],
      ['c-new', 'unknown'],
    ])
    expect(snapshot.counts).toEqual({ all: 3, online: 1, down: 1, unknown: 1, alerts: 0 })
    expect(snapshot.servers[0]?.hostname).toBe('a-reports.example.test')
    expect(Math.abs(Date.now() - (snapshot.servers[0]?.lastSeenAtMs ?? 0))).toBeLessThan(60_000)
    expect(snapshot.servers[2]?.lastSeenAtMs).toBeNull()
    expect(snapshot.collector).toBe('unavailable')
  })

  test('of many servers one page is shown, by name; search and state choose, counts stay of all', async () => {
    for (let number = 0; number < 32; number++) await newServer(tenant, `node-${String(number).padStart(2, '0')}`)
    await newSeenServer(tenant, 'alpha', 5)
    await newSeenServer(tenant, 'BETA_1%', 5)
    const first = await snapshotOf()
    expect([first.servers.length, first.matching, first.counts.all]).toEqual([15, 34, 34])
    expect(first.servers.slice(0, 3).map(server => server.name)).toEqual(['alpha', 'BETA_1%', 'node-00'])
    expect(await namesOf('?page=3')).toEqual(['node-28', 'node-29', 'node-30', 'node-31'])
    expect((await snapshotOf('?page=99')).page).toBe(3)
    expect(await namesOf('?search=beta')).toEqual(['BETA_1%'])
    expect(await namesOf('?search=_1%25')).toEqual(['BETA_1%'])
    expect(await namesOf('?search=node-07.example')).toEqual(['node-07'])
    const online = await snapshotOf('?state=online')
    expect([online.matching, online.counts.all, online.counts.unknown]).toEqual([2, 34, 32])
    expect(online.servers.map(server => server.name)).toEqual(['alpha', 'BETA_1%'])
  }, 30_000)

  test('what an address asks for wrongly is the first page of all', async () => {
    const all = await snapshotOf()
    for (const search of ['?page=0', '?page=x', '?page=1e9', '?state=odd', '?page=-1&alerts_page=2.5'])
      expect((await snapshotOf(search)).servers.map(server => server.id)).toEqual(all.servers.map(server => server.id))
  })

  test('open alerts stand the worst first, six a page; acknowledged ones after the others, closed ones not at all', async () => {
    const own = await hub.tenant()
    const person = await newPerson(hub, own.companyId, ['monitoring.view', 'monitoring.manage', 'servers.view'])
    const theirs = await logIn(hub.url, person.email)
    const server = await newSeenServer(own, 'troubled', 5)
    for (const severity of ['info', 'warning', 'critical', 'warning', 'critical', 'info', 'warning'])
      await newAlert(own, server, severity)
    const before = await snapshotOf('', theirs)
    const severities = before.alerts.map(alert => alert.severity)
    expect(severities).toEqual(['critical', 'critical', 'warning', 'warning', 'warning', 'info'])
    expect([before.alertsTotal, before.severities]).toEqual([7, { critical: 2, warning: 3, info: 2 }])
    expect((await snapshotOf('?alerts_page=2', theirs)).alerts.map(alert => alert.severity)).toEqual(['info'])
    expect(before.servers[0]?.openAlerts).toBe(7)
    expect(before.counts.alerts).toBe(1)
    expect(before.alerts[0]).toMatchObject({
      serverName: 'troubled',
      metric: 'disk_used_percent',
      series: 'mount=/',
      lastValue: 97.25,
      threshold: 90,
      state: 'open',
    })

    const act = (id: string, action: string) =>
      caller(hub.url, null)(
        'POST',
        `/monitoring/alerts/${id}/${action}`,
        {},
        {
          cookie: theirs.cookie,
          'x-csrf-token': theirs.csrfToken,
        },
      )
    const [first, second] = before.alerts.map(alert => alert.id)
    expect((await act(first ?? '', 'acknowledge')).status).toBe(200)
    expect((await act(second ?? '', 'close')).status).toBe(200)
    await newAlert(own, server, 'critical')
    const after = await snapshotOf('?alerts_page=1&search=troubled', theirs)
    expect(after.alerts.map(alert => alert.id)).not.toContain(second)
    expect(after.alerts[1]).toMatchObject({ id: first, state: 'acknowledged', acknowledgedBy: 'Test person' })
  }, 30_000)

  test('a hub that stops ends its streams', async () => {
    const short = await TestHub.start()
    const person = await newPerson(short, (await short.tenant()).companyId)
    const live = await Live.open(short.url, (await logIn(short.url, person.email)).cookie)
    await live.snapshot()
    await short.running.stop()
    await live.ended()
  }, 30_000)
})
