// What the page of a server is sent: to whom, of which company, and what it says where no collector is registered.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { watchDrift } from '../../apps/hub/iac/drift.ts'
import { type Tenant, TestHub } from '../api/hub-harness.ts'
import { acme, applied, manifest, submit } from '../api/iac-rig.ts'
import type { Json } from '../support/site.ts'
import { until } from '../support/until.ts'
import { askView, logIn, newPerson, type Session } from './visitor.ts'

const SEE = ['monitoring.view', 'servers.view']
const views = ['', '-charts', '-series', '-changes', '-alerts', '-decisions', '-checks', '-inventory', '-agents']

let hub: TestHub
let tenant: Tenant
let serverId: string
let foreignId: string
let viewer: Session
let admin: Session

const as = async (permissions: readonly string[]): Promise<Session> =>
  logIn(hub.url, (await newPerson(hub, tenant.companyId, permissions)).email)
const read = async (session: Session, view: string, id = serverId, more = ''): Promise<Json> =>
  (await ask(session, view, id, more)).json()
const ask = (session: Session, view: string, id = serverId, more = ''): Promise<Response> =>
  askView(hub.url, session, `server${view}`, `&server=${id}${more}`)

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000 })
  tenant = await hub.tenant()
  const other = await hub.tenant()
  const make = async ({ call }: Tenant, name: string): Promise<string> =>
    (await call('POST', '/servers', { name, tags: ['<b>'], notes: 'rack 7' })).body.data.id
  serverId = await make(tenant, 'web-01')
  foreignId = await make(other, 'web-01')
  viewer = await as(SEE)
  admin = await as(['*'])
}, 120_000)
afterAll(() => hub.stop(), 120_000)

test('every view of a server of the company is answered; one of another company, and one of nobody, are 404 alike', async () => {
  for (const view of views) {
    expect([view, (await ask(viewer, view)).status]).toEqual([view, 200])
    const texts: string[] = []
    for (const id of [foreignId, '00000000-0000-4000-8000-000000000000', 'nonsense', '']) {
      const answer = await ask(viewer, view, id)
      expect([view, id, answer.status]).toEqual([view, id, 404])
      texts.push(await answer.text())
    }
    expect(new Set(texts).size).toBe(1)
  }
})

test('without the keys to see servers and their values nothing is sent; the history needs its own', async () => {
  const half = await as(['servers.view'])
  for (const view of views) expect([view, (await ask(half, view)).status]).toEqual([view, 403])
  expect((await ask(viewer, '-history')).status).toBe(403)
  const { entries } = await read(admin, '-history')
  expect(entries).toMatchObject([{ action: 'server.create' }])
})

test('[R-041] the head of a server says that a manifest is behind it, and where it differs', async () => {
  const plain = await read(viewer, '')
  const own = await acme(hub)
  const run = await submit(hub, own, [manifest(own.slug, 'server', 'kept', { hostname: 'kept.test' })])
  await applied(own, run.id)
  const [kept] = (await own.call('GET', '/servers')).body.data
  const reader = await logIn(hub.url, (await newPerson(hub, own.companyId, SEE)).email)
  await watchDrift(hub.hub)
  const same = await read(reader, '', kept.id)
  expect((await own.call('PATCH', `/servers/${kept.id}`, { hostname: 'other.test' })).status).toBe(200)
  await watchDrift(hub.hub)
  expect([plain.drift, same.drift]).toEqual([null, []])
  const drift = await until('the page is made anew', async () => {
    const changed: Json = await read(reader, '', kept.id)
    return changed.drift.length > 0 && changed.drift
  })
  expect(drift).toEqual([{ field: 'hostname', intended: 'kept.test', actual: 'other.test' }])
})

test('where no collector answers, a comparison and the days of checks do not say that there is nothing', async () => {
  const target = { url: 'https://www.example.test/', expect_status: 200 }
  const about = { name: 'Front page', type: 'http', target, scope: { all: true } }
  const { id } = (await tenant.call('POST', '/monitoring/checks', about)).body.data
  const readOther = async (view: string, more = ''): Promise<Json> =>
    (await askView(hub.url, viewer, view, more)).json()
  expect(await readOther('compare')).toMatchObject({ servers: [], collector: 'not_configured' })
  expect(await readOther('compare', `&servers=${serverId}`)).toMatchObject({ collector: 'not_configured' })
  expect((await readOther('check-days'))[id]).toMatchObject({ isSilent: true, well: 0, failed: 0 })
  await tenant.call('DELETE', `/monitoring/checks/${id}`)
})

test('where no collector is registered the views say so, and what the hub itself knows is there', async () => {
  expect(await read(viewer, '')).toMatchObject({
    name: 'web-01',
    tags: ['<b>'],
    connectivity: 'unknown',
    uptimeSeconds: null,
    silence: null,
    isDeleted: false,
    collector: 'not_configured',
  })
  expect(await read(viewer, '-charts')).toEqual({
    charts: [],
    isTruncated: false,
    collector: 'not_configured',
  })
  const range = '&metrics=cpu_load1&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z'
  expect(await read(viewer, '-series', serverId, range)).toMatchObject({
    fromMs: Date.UTC(2026, 0, 1),
    toMs: Date.UTC(2026, 0, 2),
    metrics: [],
    collector: 'not_configured',
  })
})

test('a silence is told with its end to all, with its reason to who may change silences', async () => {
  const ends_at = new Date(Date.now() + 3_600_000).toISOString()
  await tenant.call('POST', '/monitoring/silences', {
    scope: { server_ids: [serverId] },
    ends_at,
    reason: 'secret move',
  })
  // An answer is shared for two seconds: one of before may come first.
  const silenceFor = async (permissions: readonly string[]) => {
    const session = await as(permissions)
    return until('the silence is told', async () => (await read(session, '')).silence)
  }
  expect(await silenceFor([...SEE, 'audit.view'])).toMatchObject({ untilMs: Date.parse(ends_at), reason: null })
  expect(await silenceFor([...SEE, 'monitoring.manage'])).toMatchObject({ reason: 'secret move' })
})

test('a deleted server is there for who may restore it, and for nobody else', async () => {
  const gone = (await tenant.call('POST', '/servers', { name: 'gone' })).body.data.id
  await tenant.call('DELETE', `/servers/${gone}`)
  expect((await ask(viewer, '', gone)).status).toBe(404)
  const restorer = await as([...SEE, 'servers.delete'])
  expect(await read(restorer, '', gone)).toMatchObject({ name: 'gone', isDeleted: true })
})
