// The data of pages over HTTP, against a real hub and database: what is shown of whom, to whom, what a stream sends of
// it, and when it ends.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import type { ServersView } from '../../apps/hub/web/views/servers.ts'
import { freePort } from '../../apps/standalone/ports.ts'
import { type Json, type Tenant, TestHub } from '../api/hub-harness.ts'
import { until } from '../support/until.ts'
import { askView, Live, logIn, newPerson, type Session, serversOf, slugOf } from './visitor.ts'

type Collector = Awaited<ReturnType<TestHub['collector']>>
let hub: TestHub
let collector: Collector
let tenant: Tenant
let session: Session

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'collector.timeout': '200ms' })
  tenant = await hub.tenant()
  session = await logIn(hub.url, (await newPerson(hub, tenant.companyId)).email)
}, 120_000)
afterAll(() => hub.stop(), 120_000)

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

const namesOf = async (search: string, of: Session = session) =>
  (await serversOf(hub.url, of, search)).rows.map(server => server.name)
const followed = (of: Session, search = '') => `servers?company=${slugOf(of)}${search}`
const openLive = (of: Session, search = '') => Live.open(hub.url, of.cookie, followed(of, search))

describe('who may look', () => {
  test('without a session, and with a bearer token, there is neither data nor a stream', async () => {
    for (const path of ['/web/live', '/web/view/servers', '/web/session']) {
      const status = async (headers: Record<string, string>) => (await fetch(hub.url + path, { headers })).status
      expect([path, await status({})]).toEqual([path, 401])
      expect([path, await status({ cookie: 'hub_session=ses_guessed' })]).toEqual([path, 401])
      expect([path, await status({ authorization: `Bearer ${tenant.token}` })]).toEqual([path, 401])
    }
  })

  test('[HUB-031] a company sees its own servers; another one only where it was granted, and else as if it were not there', async () => {
    const other = await hub.tenant()
    const child = await hub.tenant(undefined, { parentId: other.companyId })
    await newServer(other, 'own')
    await newServer(child, 'of the child')
    const person = await newPerson(hub, other.companyId)
    const theirs = await logIn(hub.url, person.email)
    expect(await namesOf('', theirs)).toEqual(['own'])
    const stranger = await logIn(hub.url, (await newPerson(hub, (await hub.tenant()).companyId)).email)
    expect((await serversOf(hub.url, stranger)).counts.all).toBe(0)

    const [row] = await hub.hub.database.db.execute<{ slug: string }>(
      sql`select slug from companies where id = ${child.companyId}`,
    )
    const ofChild = { ...theirs, base: `/c/${row?.slug}` }
    const pageOf = async (base: string) => {
      const answer = await fetch(`${hub.url}${base}/servers`, { headers: { cookie: theirs.cookie } })
      return [answer.status, await answer.text()]
    }
    expect((await askView(hub.url, ofChild, 'servers')).status).toBe(404)
    const nonsense = await pageOf('/c/no-such-company')
    expect(nonsense[0]).toBe(404)
    expect(await pageOf(ofChild.base)).toEqual(nonsense)
    await hub.hub.database.db.execute(
      sql`insert into user_company_grants (user_id, company_id) values (${person.userId}, ${child.companyId})`,
    )
    expect(await namesOf('', ofChild)).toEqual(['of the child'])
    expect((await logIn(hub.url, person.email)).page).toContain(`"slug":"${row?.slug}"`)
  })

  test('a stream ends when its session does, and tells of a permission that is lost', async () => {
    const toldOf = async (event: string, act: (userId: string) => Promise<unknown>): Promise<unknown> => {
      const person = await newPerson(hub, tenant.companyId)
      const live = await openLive(await logIn(hub.url, person.email))
      await live.view()
      await act(person.userId)
      const told = await live.next(event)
      live.close()
      return told
    }
    const { db } = hub.hub.database
    const [signedOut, refused] = await Promise.all([
      toldOf('end', userId => db.execute(sql`delete from sessions where user_id = ${userId}`)),
      toldOf('fault', userId => db.execute(sql`update users set permissions = '{servers.view}' where id = ${userId}`)),
    ])
    expect(signedOut).toEqual({ reason: 'signed_out' })
    expect(refused).toMatchObject({ status: 403 })
  }, 120_000)

  test('[HUB-049] pages have a limit of their own: the request over it is 429 with Retry-After, and the API goes on', async () => {
    const strict = await TestHub.start({ 'rate.web_per_minute': 3 })
    try {
      const person = await newPerson(strict, (await strict.tenant()).companyId)
      const theirs = await logIn(strict.url, person.email)
      for (let asked = 0; asked < 3; asked++) await serversOf(strict.url, theirs)
      const over = await askView(strict.url, theirs, 'servers')
      expect(over.status).toBe(429)
      expect(Number(over.headers.get('retry-after'))).toBeWithin(1, 61)
      expect((await Live.open(strict.url, theirs.cookie, 'servers?company=x')).response.status).toBe(429)
      expect((await fetch(`${strict.url}/api/v1/me`, { headers: { cookie: theirs.cookie } })).status).toBe(200)
    } finally {
      await strict.running.stop()
    }
  }, 120_000)
})

test('a session has ten streams at most, and one that is closed makes room', async () => {
  const person = await newPerson(hub, tenant.companyId)
  const theirs = await logIn(hub.url, person.email)
  const streams = await Promise.all(Array.from({ length: 10 }, () => openLive(theirs)))
  const refused = await openLive(theirs)
  expect(refused.response.status).toBe(429)
  streams[0]?.close()
  const last = await until('room for a stream', async () => {
    const live = await openLive(theirs)
    return live.response.status === 200 && live
  })
  for (const live of [...streams, last]) live.close()
}, 120_000)

describe('what is shown', () => {
  test('states, host names and times come from the records when no collector answers, and the page is told so', async () => {
    const fresh = await hub.tenant()
    const theirs = await logIn(hub.url, (await newPerson(hub, fresh.companyId)).email)
    const none = { all: 0, online: 0, down: 0, unknown: 0, maintenance: 0, draft: 0, alerts: 0 }
    expect((await serversOf(hub.url, theirs)).counts).toEqual(none)
    const live = await openLive(theirs)
    const before = await live.view<ServersView>()
    await newSeenServer(fresh, 'a-reports', 5)
    await newSeenServer(fresh, 'b-silent', 3_600)
    await newServer(fresh, 'c-new')
    const shown = await until('a change with all three', async () => {
      const now = await serversOf(hub.url, theirs)
      return now.counts.all === 3 && now.collector === 'unavailable' && now
    })
    expect(shown.rows.map(({ name, connectivity }) => [name, connectivity])).toEqual([
      ['a-reports', 'online'],
      ['b-silent', 'down'],
      ['c-new', 'unknown'],
    ])
    expect(shown.counts).toEqual({ ...none, all: 3, online: 1, down: 1, unknown: 1 })
    expect(shown.rows[0]?.hostname).toBe('a-reports.example.test')
    expect(Math.abs(Date.now() - (shown.rows[0]?.lastSeenAtMs ?? 0))).toBeLessThan(60_000)
    expect(shown.rows[2]?.lastSeenAtMs).toBeNull()
    let followed = before
    await until('the stream has brought what the view says', async () => {
      followed = await live.changed(followed)
      return followed.counts.all === 3
    })
    live.close()
  }, 120_000)

  test('of many servers a window is shown, sorted as asked; the filter chooses, counts stay of all', async () => {
    for (let number = 0; number < 70; number++) await newServer(tenant, `node-${String(number).padStart(2, '0')}`)
    const tagged = await tenant.call('POST', '/servers', { name: 'tagged', tags: ['web', 'eu'], datacenter: 'fra' })
    expect(tagged.status).toBe(201)
    await newSeenServer(tenant, 'alpha', 5)
    await newSeenServer(tenant, 'BETA_1%', 5)
    await hub.hub.database.db.execute(sql`insert into servers (id, company_id, name)
      select gen_random_uuid(), ${tenant.companyId}, 'more-' || number from generate_series(10, 69) number`)
    const first = await until('all are there', async () => {
      const now = await serversOf(hub.url, session)
      return now.counts.all === 133 && now
    })
    expect([first.rows.length, first.matching, first.offset]).toEqual([120, 133, 0])
    expect(first.rows.slice(0, 3).map(server => server.name)).toEqual(['alpha', 'BETA_1%', 'more-10'])
    expect(await namesOf('&offset=131')).toEqual(['node-69', 'tagged'])
    expect((await serversOf(hub.url, session, '&offset=9999')).offset).toBe(132)
    expect((await namesOf('&sort=-name')).slice(0, 2)).toEqual(['tagged', 'node-69'])
    expect(await namesOf('&q=beta')).toEqual(['BETA_1%'])
    expect(await namesOf('&q=_1%25')).toEqual(['BETA_1%'])
    expect(await namesOf('&q=node-07.example')).toEqual(['node-07'])
    expect(await namesOf('&q=tag:WEB+dc:fra')).toEqual(['tagged'])
    expect(await namesOf('&q=tag:web+-tag:eu')).toEqual([])
    expect(await namesOf('&q=state:online')).toEqual(['alpha', 'BETA_1%'])
    expect(await namesOf('&q=alerts:>0')).toEqual([])
    const online = await serversOf(hub.url, session, '&q=state:online')
    expect([online.matching, online.counts.all, online.counts.unknown]).toEqual([2, 133, 131])
    expect(first.facets).toMatchObject({
      dc: [['fra', 1]],
      tag: [
        ['eu', 1],
        ['web', 1],
      ],
    })
    for (const odd of ['&offset=x', '&offset=-5', '&sort=constructor', '&q=%22', '&q=state:'])
      expect([odd, (await serversOf(hub.url, session, odd)).rows.length]).toEqual([odd, 120])
    expect(await namesOf('&q=constructor:x')).toEqual([])
    expect((await askView(hub.url, session, 'constructor')).status).toBe(404)
    expect((await askView(hub.url, session, 'servers', '&q=%00')).status).toBe(404)
  }, 120_000)

  test('open alerts count at their server, the worst by name', async () => {
    const own = await hub.tenant()
    const theirs = await logIn(hub.url, (await newPerson(hub, own.companyId)).email)
    const server = await newSeenServer(own, 'troubled', 5)
    for (const severity of ['info', 'critical', 'warning']) await newAlert(own, server, severity)
    const shown = await until('the alerts are counted', async () => {
      const now = await serversOf(hub.url, theirs)
      return now.rows[0]?.openAlerts === 3 && now
    })
    expect(shown.rows[0]).toMatchObject({ name: 'troubled', worst: 'critical' })
    expect(shown.counts.alerts).toBe(1)
  }, 120_000)

  test('what a page has changed itself it sees at once, and everybody else with it', async () => {
    const own = await hub.tenant()
    const server = await newServer(own, 'before')
    const theirs = await logIn(hub.url, (await newPerson(hub, own.companyId)).email)
    expect(await namesOf('', theirs)).toEqual(['before'])
    expect((await own.call('PATCH', `/servers/${server}`, { name: 'after' })).status).toBe(200)
    const fresh = await fetch(`${hub.url}/web/view/servers?company=${slugOf(theirs)}`, {
      headers: { cookie: theirs.cookie, 'X-View-Fresh': '1' },
    })
    expect(((await fresh.json()) as ServersView).rows.map(({ name }) => name)).toEqual(['after'])
    const next = await askView(hub.url, theirs, 'servers')
    expect(next.headers.get('x-view-version')).toBe(fresh.headers.get('x-view-version'))
  }, 120_000)

  test('many viewers cost as one: what one sees is made once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => askView(hub.url, session, 'servers', '&q=node-1')),
    )
    expect(new Set(answers.map(answer => answer.headers.get('x-view-made-at'))).size).toBe(1)
  }, 120_000)

  test('a hub that stops ends its streams', async () => {
    const short = await TestHub.start()
    const person = await newPerson(short, (await short.tenant()).companyId)
    const theirs = await logIn(short.url, person.email)
    const live = await Live.open(short.url, theirs.cookie, followed(theirs))
    await live.view()
    await short.running.stop()
    await live.ended()
  }, 120_000)
})
