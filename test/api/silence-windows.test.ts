// Silences of single rules and silences that recur: API, feed, clock.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { tellEndedSuppressions } from '../../apps/hub/notifications/suppression-end.ts'
import { keepWindowsAhead } from '../../apps/hub/silences/windows-ahead.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

let hub: TestHub
let tenant: Tenant
let collector: Awaited<ReturnType<TestHub['collector']>>

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  collector = await hub.collector()
})
afterAll(() => hub.stop())

const inHours = (hours: number) => new Date(Date.now() + hours * HOUR_MS).toISOString()
const rule = async (body: Json = {}, by: Tenant = tenant): Promise<string> => {
  const condition = { kind: 'threshold', metric: 'cpu_load1', operator: '>', threshold: 1, severity: 'warning' }
  const made = await by.call('POST', '/monitoring/rules', {
    name: crypto.randomUUID(),
    scope: { all: true },
    ...condition,
    ...body,
  })
  return made.body.data.id
}
const post = (more: Json, by: Tenant = tenant) =>
  by.call('POST', '/monitoring/silences', {
    scope: { all: true },
    ends_at: inHours(1),
    reason: 'backup',
    starts_at: inHours(-0.5),
    ...more,
  })
const patch = async (id: string, body: Json): Promise<Json> =>
  (await tenant.call('PATCH', `/monitoring/silences/${id}`, body)).body.data
const get = async (id: string): Promise<Json> => (await tenant.call('GET', `/monitoring/silences/${id}`)).body.data
/** The windows of a reason that collectors are given, in their order, and how many were taken back. */
async function inFeed(reason: string) {
  const { silences } = (await collector.call('GET', '/silences?limit=500')).body.data
  const live = silences.filter((item: Json) => item.reason === reason)
  return {
    live: live.sort((a: Json, b: Json) => (a.starts_at < b.starts_at ? -1 : 1)) as Json[],
    gone: silences.filter((item: Json) => item.deleted).length,
  }
}
const daily = { frequency: 'daily', time_zone: 'UTC' }

test('[G-178] a silence of rules names them in its answer and in the feed; none means all rules', async () => {
  const [cpu, disk] = [await rule(), await rule()]
  const { data } = (await post({ reason: 'of rules', rule_ids: [cpu.toUpperCase(), disk, cpu] })).body
  expect(data).toMatchObject({ rule_ids: [cpu, disk], recurrence: null })
  const [record] = (await inFeed('of rules')).live
  expect([record?.id, record?.rule_ids]).toEqual([data.id, [cpu, disk]])
  expect((await patch(data.id, { reason: 'of rules' })).rule_ids).toEqual([cpu, disk])
  expect((await patch(data.id, { rule_ids: null })).rule_ids).toEqual([])
  expect((await inFeed('of rules')).live[0]).not.toHaveProperty('rule_ids')
  const audit = (await tenant.call('GET', `/audit-log?action=silence.update`)).body.data
  expect(audit[0].changes.rule_ids).toEqual({ old: [cpu, disk], new: [] })
})

test('[G-178] rules of another company, deleted ones and more than 200 are refused; one deleted later stays', async () => {
  const other = await hub.tenant()
  const [own, foreign] = [await rule(), await rule({}, other)]
  for (const rule_ids of [[foreign], [own, crypto.randomUUID()], ['x'], Array(201).fill(own)]) {
    const { status, body } = await post({ rule_ids })
    expect([status, Object.keys(body.errors)[0]?.startsWith('rule_ids')]).toEqual([422, true])
  }
  const preview = { scope: { all: true }, rule_ids: [foreign] }
  expect((await tenant.call('POST', '/monitoring/silences/preview', preview)).body.errors.rule_ids).toHaveLength(1)
  const { id } = (await post({ rule_ids: [own] })).body.data
  await tenant.call('DELETE', `/monitoring/rules/${own}`)
  expect((await patch(id, { reason: 'later' })).rule_ids).toEqual([own])
  expect((await post({ rule_ids: [own] })).status).toBe(422)
})

test('[G-178] preview and the end of a suppression look at alerts of these rules alone', async () => {
  const own = await hub.tenant()
  const [quiet, loud] = [await rule({}, own), await rule({}, own)]
  const server = (await own.call('POST', '/servers', { name: 'web' })).body.data.id
  const events = [quiet, loud].map(rule_id => ({
    event_id: crypto.randomUUID(),
    type: 'alert.opened',
    seq: 1,
    occurred_at: new Date().toISOString(),
    company_id: own.companyId,
    server_id: server,
    rule_id,
    rule_version: 1,
    series_key: 'cpu_load1',
    severity: 'warning',
    value: 2,
    threshold: 1,
    suppressed: true,
    suppress_reason: 'silence',
    labels: {},
  }))
  await post({ rule_ids: [quiet] }, own)
  expect((await collector.call('POST', '/events', { events })).body.data.accepted).toHaveLength(2)
  const body = { scope: { all: true }, rule_ids: [quiet] }
  const preview = (await own.call('POST', '/monitoring/silences/preview', body)).body.data
  expect([preview.open_alerts.total, preview.alerts[0].rule.id]).toEqual([1, quiet])
  await tellEndedSuppressions(hub.hub)
  const alerts: Json[] = (await own.call('GET', '/monitoring/alerts')).body.data
  const suppressed = alerts.filter(alert => alert.suppressed).map(alert => alert.rule.id)
  expect(suppressed).toEqual([quiet])
})

test('[G-179] a silence that recurs is one to people and single windows of the next 8 days to collectors', async () => {
  const { data } = (await post({ reason: 'daily', recurrence: daily })).body
  expect(data.recurrence).toEqual({ frequency: 'daily', weekdays: [], until: null, time_zone: 'UTC' })
  expect([data.status, data.current_window.ends_at]).toEqual(['active', data.ends_at])
  const { live } = await inFeed('daily')
  expect(live.map(record => Date.parse(record.starts_at) - Date.parse(data.starts_at))).toEqual(
    Array.from({ length: 9 }, (_, day) => day * DAY_MS),
  )
  expect(live[0]?.id).toBe(data.id)
  for (const record of live) expect(record).not.toHaveProperty('recurrence')
  const listed: Json[] = (await tenant.call('GET', '/monitoring/silences?status=active&per_page=100')).body.data
  expect(listed.filter(item => item.reason === 'daily').map(item => item.id)).toEqual([data.id])
  // A window is no silence of its own.
  expect((await tenant.call('GET', `/monitoring/silences/${live[1]?.id}`)).status).toBe(404)
})

test('[G-179] [HSI-005] [HSI-008] edits reach every window; ending takes all of them back', async () => {
  const { id } = (await post({ reason: 'edited', recurrence: daily })).body.data
  const before = (await inFeed('edited')).live
  await patch(id, { scope: { tags: ['db'] } })
  const { data: server } = (await tenant.call('POST', '/servers', { name: crypto.randomUUID(), tags: ['db'] })).body
  const after = (await inFeed('edited')).live
  expect(after.map(record => record.id)).toEqual(before.map(record => record.id))
  for (const [index, record] of after.entries()) {
    expect(record.scope).toEqual({ all: false, server_ids: [], resolved_server_ids: [server.id] })
    expect(record.sync_version).toBeGreaterThan(before[index]?.sync_version)
  }
  await patch(id, { recurrence: { ...daily, frequency: 'weekly' } })
  const weekly = await inFeed('edited')
  expect(weekly.live.map(record => record.id)).toEqual([before[0]?.id, before[7]?.id])
  expect((await tenant.call('POST', `/monitoring/silences/${id}/end`)).body.data.status).toBe('cancelled')
  const ended = await inFeed('edited')
  expect([ended.live.length, ended.gone - weekly.gone]).toEqual([0, 2])
})

test('[G-179] between windows it is scheduled, after the last one expired', async () => {
  const first = { starts_at: inHours(-30), ends_at: inHours(-29) }
  const { data } = (await post({ ...first, recurrence: { ...daily, until: inHours(30) } })).body
  const next = Date.parse(first.starts_at) + 2 * DAY_MS
  expect([data.status, data.current_window.starts_at]).toEqual(['scheduled', new Date(next).toISOString()])
  const statuses = async (status: string) =>
    ((await tenant.call('GET', `/monitoring/silences?status=${status}&per_page=100`)).body.data as Json[]).map(
      item => item.id,
    )
  expect(await statuses('scheduled')).toContain(data.id)
  await patch(data.id, { recurrence: { ...daily, until: inHours(10) } }).then(answer => expect(answer).toBeUndefined())
  await hub.hub.database.client`update monitoring_silences
    set recurrence = jsonb_set(recurrence, '{until}', to_jsonb(${inHours(-2)}::text)) where id = ${data.id}`
  await hub.hub.database.client`delete from monitoring_silences where recurrence_of = ${data.id}`
  expect((await get(data.id)).status).toBe('expired')
  expect(await statuses('expired')).toContain(data.id)
})

test.each([
  ['a window over 7 days', { ends_at: inHours(24 * 7 + 1), recurrence: daily }, 'ends_at'],
  ['no such zone', { recurrence: { ...daily, time_zone: 'Mars/Base' } }, 'recurrence.time_zone'],
  ['no such day', { recurrence: { ...daily, weekdays: [0] } }, 'recurrence.weekdays.0'],
  ['no such frequency', { recurrence: { ...daily, frequency: 'hourly' } }, 'recurrence.frequency'],
  ['an end before the first window', { recurrence: { ...daily, until: inHours(-1) } }, 'recurrence.until'],
  [
    'no window to come',
    { starts_at: inHours(-50), ends_at: inHours(-49), recurrence: { ...daily, until: inHours(-3) } },
    'recurrence.until',
  ],
])('[G-179] %s is refused', async (_name, more, field) => {
  const { status, body } = await post(more)
  expect([status, Object.keys(body.errors)]).toEqual([422, [field]])
})

test('[G-179] [HSI-010] each day brings the windows that came into sight; those that ended go without a tombstone', async () => {
  const { data } = (await post({ reason: 'kept', recurrence: daily })).body
  const later = (days: number) => ({ ...hub.hub, now: () => Date.now() + days * DAY_MS })
  await keepWindowsAhead(later(0))
  const before = (await inFeed('kept')).live
  expect(before).toHaveLength(9)
  await keepWindowsAhead(later(4))
  const { live } = await inFeed('kept')
  expect(live.map(record => Math.round((Date.parse(record.starts_at) - Date.parse(data.starts_at)) / DAY_MS))).toEqual([
    0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
  ])
  const { silences } = (await collector.call('GET', '/silences?limit=500')).body.data
  expect(silences.some((item: Json) => item.id === before[1]?.id)).toBe(false)
})
