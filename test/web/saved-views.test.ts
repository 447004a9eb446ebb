// Saved views over HTTP, against a real hub and database: whose they are, who sees them, what is refused.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import type { SavedView } from '../../apps/hub/web/saved-views/saved-views.ts'
import { type Json, type Tenant, TestHub } from '../api/hub-harness.ts'
import { logIn, newPerson, type Session, slugOf } from './visitor.ts'

let hub: TestHub
let tenant: Tenant
let ada: Session

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 })
  tenant = await hub.tenant()
  ada = await personOf(tenant.companyId, ['*'], 'Ada')
}, 120_000)
afterAll(() => hub?.stop(), 120_000)

const personOf = async (companyId: string, permissions: readonly string[], name: string): Promise<Session> =>
  logIn(hub.url, (await newPerson(hub, companyId, permissions, name)).email)

type Answered = { readonly status: number; readonly body: Json }

async function call(of: Session, method: string, path: string, body?: unknown, more: Json = {}): Promise<Answered> {
  const response = await fetch(`${hub.url}/web/saved-views${path}?company=${slugOf(of)}`, {
    method,
    headers: { cookie: of.cookie, 'X-CSRF-Token': of.csrfToken, 'Content-Type': 'application/json', ...more },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}

const view = (name: string, more: Partial<SavedView> = {}) => ({
  ...{ page: 'servers', name, query: 'q=tag:web&sort=-cpu', shared: false },
  ...more,
})
const put = (of: Session, body: Json, id: string = crypto.randomUUID()) => call(of, 'PUT', `/${id}`, body)
const listOf = async (of: Session): Promise<SavedView[]> => (await call(of, 'GET', '')).body.views
const namesOf = async (of: Session): Promise<string[]> => (await listOf(of)).map(({ name }) => name)

test('a view is kept, sent again it is still one, and it is changed and deleted under its id', async () => {
  const id = crypto.randomUUID()
  const body = view('  Web servers ', { query: 'offset=60&sort=-cpu&q=tag%3Aweb&x%3Cscript=1&view=' })
  const kept = await put(ada, body, id)
  // Where one stood in the list is no part of it, nor is what no address has; the rest stands in one order.
  const expected = { id, page: 'servers', name: 'Web servers', query: 'q=tag%3Aweb&sort=-cpu', own: true, by: 'Ada' }
  expect(kept).toMatchObject({ status: 200, body: { ...expected, shared: false } })
  expect((await put(ada, body, id)).body).toEqual(kept.body)
  expect(await listOf(ada)).toEqual([kept.body])
  expect((await put(ada, view('Webs', { page: 'agents', query: '' }), id)).body).toMatchObject({
    name: 'Webs',
    query: '',
  })
  expect(await namesOf(ada)).toEqual(['Webs'])
  expect((await call(ada, 'DELETE', `/${id}`)).status).toBe(204)
  expect((await call(ada, 'DELETE', `/${id}`)).status).toBe(404)
  expect(await listOf(ada)).toEqual([])
})

test('one’s own views are nobody else’s; shared ones are seen by all who may see the page, and say whose they are', async () => {
  const [mine, ours, rules] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
  await put(ada, view('Mine'), mine)
  await put(ada, view('Ours', { shared: true }), ours)
  await put(ada, view('Loud rules', { page: 'rules', shared: true }), rules)
  const bob = await personOf(tenant.companyId, ['monitoring.view', 'servers.view'], 'Bob')
  // The page of rules needs a key that Bob lacks.
  expect(await listOf(bob)).toMatchObject([{ id: ours, own: false, by: 'Ada', shared: true }])
  // What another has is not there to be changed, and what others share is not taken away without the key.
  expect((await put(bob, view('Stolen'), mine)).status).toBe(404)
  expect((await put(bob, view('Stolen'), ours)).status).toBe(404)
  expect((await call(bob, 'DELETE', `/${mine}`)).status).toBe(404)
  expect((await call(bob, 'DELETE', `/${rules}`)).status).toBe(404)
  const refused = await call(bob, 'DELETE', `/${ours}`)
  expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('monitoring.manage')])
  const carol = await personOf(tenant.companyId, ['*'], 'Carol')
  expect((await call(carol, 'DELETE', `/${ours}`)).status).toBe(204)
  expect(await namesOf(ada)).toEqual(['Loud rules', 'Mine'])
  for (const id of [mine, rules]) await call(ada, 'DELETE', `/${id}`)
})

test('[HUB-007] without the key of its page nothing is kept, and without monitoring.manage nothing is shared', async () => {
  const viewer = await personOf(tenant.companyId, ['monitoring.view', 'servers.view'], 'Viewer')
  for (const [body, key] of [
    [view('Rules', { page: 'rules' }), 'monitoring.manage'],
    [view('For all', { shared: true }), 'monitoring.manage'],
  ] as const) {
    const { status, body: said } = await put(viewer, body)
    expect([status, said.message]).toEqual([403, expect.stringContaining(key)])
  }
  expect((await put(viewer, view('Own'))).status).toBe(200)
  const nobody = await personOf(tenant.companyId, ['servers.view'], 'Nobody')
  expect((await call(nobody, 'GET', '')).status).toBe(403)
  expect((await put(nobody, view('Own'))).status).toBe(403)
})

test('[HUB-031] another company’s views are not there, under the same id or any other', async () => {
  const stranger = await personOf((await hub.tenant()).companyId, ['*'], 'Stranger')
  const id = crypto.randomUUID()
  await put(ada, view('Of Ada', { shared: true }), id)
  expect(await listOf(stranger)).toEqual([])
  expect((await call(stranger, 'DELETE', `/${id}`)).status).toBe(404)
  // The id is free there: whether it is taken elsewhere cannot be told.
  expect((await put(stranger, view('Of the stranger'), id)).status).toBe(200)
  expect(await namesOf(ada)).toEqual(['Of Ada'])
  expect((await call({ ...stranger, base: ada.base }, 'GET', '')).status).toBe(404)
  expect((await put({ ...stranger, base: ada.base }, view('In another company'))).status).toBe(404)
  await call(ada, 'DELETE', `/${id}`)
})

test('[HUB-013] it takes a session with its token; a bearer token and a form of elsewhere open nothing', async () => {
  const path = `${hub.url}/web/saved-views?company=${slugOf(ada)}`
  expect((await fetch(path)).status).toBe(401)
  expect((await fetch(path, { headers: { Authorization: `Bearer ${tenant.token}` } })).status).toBe(401)
  const id = crypto.randomUUID()
  expect((await call(ada, 'PUT', `/${id}`, view('x'), { 'X-CSRF-Token': 'x' })).status).toBe(403)
  expect((await call(ada, 'DELETE', `/${id}`, undefined, { 'X-CSRF-Token': '' })).status).toBe(403)
  expect(await listOf(ada)).toEqual([])
})

test('what is wrong is said at its field, in the language of the reader', async () => {
  const errorsOf = async (body: unknown, language = 'en') => {
    const more = { 'Accept-Language': language }
    const { status, body: said } = await call(ada, 'PUT', `/${crypto.randomUUID()}`, body, more)
    expect(status).toBe(422)
    return said.errors
  }
  expect(Object.keys(await errorsOf({})).sort()).toEqual(['name', 'page', 'query', 'shared'])
  expect(await errorsOf(view('x'.repeat(101)))).toEqual({ name: [expect.stringContaining('100')] })
  expect(await errorsOf(view('  '))).toHaveProperty('name')
  expect(await errorsOf(view('\0'))).toHaveProperty('name')
  expect(await errorsOf({ ...view('x'), page: 'server' })).toHaveProperty('page')
  expect(await errorsOf(view('x', { query: `q=${'ẋ'.repeat(1_000)}` }))).toHaveProperty('query')
  expect((await call(ada, 'PUT', '/no-uuid', view('x'))).status).toBe(404)
  await put(ada, view('Taken'))
  expect(await errorsOf(view('taken'))).toEqual({ name: ['is already taken'] })
  expect(await errorsOf(view('taken'), 'vi')).toEqual({ name: ['đã được sử dụng'] })
  // On another page the same name is another view.
  expect((await put(ada, view('taken', { page: 'alerts' }))).status).toBe(200)
})

test('one keeps a hundred and a company shares two hundred, and no more', async () => {
  const company = await hub.tenant()
  const [one, other, third] = await Promise.all(
    ['One', 'Other', 'Third'].map(name => personOf(company.companyId, ['*'], name)),
  )
  if (!one || !other || !third) throw new Error('three people')
  await hub.hub.database.db.execute(sql`
    insert into saved_views (company_id, id, user_id, page, name, query, is_shared)
    select ${company.companyId}, gen_random_uuid(), u.id, 'servers', 'View ' || n, '', true
    from users u, generate_series(1, 100) n where u.company_id = ${company.companyId} and u.name in ('One', 'Other')`)
  const tooMany = await put(one, view('One more'))
  expect([tooMany.status, tooMany.body.errors.limit]).toEqual([422, [expect.stringContaining('at most 100')]])
  const shared = await put(third, view('One more', { shared: true }))
  expect([shared.status, shared.body.errors.limit]).toEqual([422, [expect.stringContaining('at most 200')]])
  expect((await put(third, view('One more'))).status).toBe(200)
  // What is there can still be changed.
  const [first] = await listOf(one)
  expect((await put(one, { ...view('Renamed'), shared: true }, first?.id)).status).toBe(200)
  expect((await listOf(third)).length).toBe(201)
})

test('what others see is in the audit log with what differs, what one keeps for oneself is not', async () => {
  const id = crypto.randomUUID()
  await put(ada, view('Private', { page: 'checks' }))
  await put(ada, view('Public', { page: 'checks', shared: true }), id)
  await put(ada, view('More public', { page: 'checks', shared: true }), id)
  await call(ada, 'DELETE', `/${id}`)
  const { data } = (await tenant.call('GET', `/audit-log/subjects/saved_view/${id}`)).body
  expect(data.map((entry: Json) => entry.action).sort()).toEqual([
    ...['saved_view.create', 'saved_view.delete', 'saved_view.update'],
  ])
  const update = data.find((entry: Json) => entry.action === 'saved_view.update')
  expect(update.changes).toEqual({ name: { old: 'Public', new: 'More public' } })
  const all = (await tenant.call('GET', '/audit-log?action=saved_view.create')).body.data
  expect(all.map((entry: Json) => entry.subject?.name ?? entry.subject_name)).not.toContain('Private')
})
