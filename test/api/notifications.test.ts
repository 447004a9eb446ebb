import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { toAlert } from '../../apps/hub/alerts/alert-rows.ts'
import { purgeCompany } from '../../apps/hub/companies/companies.ts'
import { addBellRows, type BellRow } from '../../apps/hub/notifications/bell-rows.ts'
import { tellLeftOver } from '../../apps/hub/notifications/outbox.ts'
import { tellEndedSuppressions } from '../../apps/hub/notifications/suppression-end.ts'
import { alerts } from '../../apps/hub/platform/db/schema.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { alertEvent as event, notificationsIdle } from './alert-event.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

let hub: TestHub
let collector: Awaited<ReturnType<TestHub['collector']>>

beforeAll(async () => {
  hub = await TestHub.start({ public_url: 'https://hub.example.test' })
  collector = await hub.collector()
})
afterAll(async () => {
  await hub.stop()
})

let names = 0
const send = async (...events: Json[]) => (await collector.call('POST', '/events', { events })).body.data
const server = async (by: Tenant, body: Json = {}): Promise<string> =>
  (await by.call('POST', '/servers', { name: `web-${++names}`, ...body })).body.data.id
const bell = async (by: Omit<Tenant, 'companyId'>): Promise<Json[]> =>
  (await by.call('GET', '/notifications')).body.data
const types = async (by: Omit<Tenant, 'companyId'>) => (await bell(by)).map(item => item.type).reverse()
const idle = () => notificationsIdle(hub)

describe('who is told of what', () => {
  test('[NTF-001] [NTF-002] [NTF-003] [NTF-007] [HAL-036] opened, reminder and resolved ring the bell', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    await send(event(own, id, 'alert.opened'))
    await send(event(own, id, 'alert.reminder'))
    await send(event(own, id, 'alert.resolved'))
    await idle()
    expect(await types(own)).toEqual(['alert.opened', 'alert.reminder', 'alert.resolved'])
    const [last] = await bell(own)
    expect(last).toMatchObject({ title: expect.stringContaining('Resolved'), read_at: null })
    expect((await own.call('GET', '/notifications/unread-count')).body.data.unread).toBe(3)
    await own.call('POST', `/notifications/${last.id}/read`)
    expect((await own.call('GET', '/notifications/unread-count')).body.data.unread).toBe(2)
  })

  test('[RES-244] [RES-245] an incident of a subnet that the company keeps is told by its name and block', async () => {
    const own = await hub.tenant()
    const { data: lan } = (await own.call('POST', '/subnets', { name: 'Office LAN', cidr: '10.7.0.0/24' })).body
    const [a, b] = [await server(own, { subnet_id: lan.id }), await server(own, { subnet_id: lan.id })]
    const group = (type: string, key: string, members: string[]) => ({
      ...event(own, a, type, { rule_id: 'group_down', series_key: key, group_key: key, severity: 'critical' }),
      member_server_ids: members,
      group_total: 2,
    })
    await send(group('group_down', `subnet:${lan.id}`, [a, b]), group('group_down', 'subnet:unknown', [a, b]))
    await send(group('group_resolved', `subnet:${lan.id}`, []))
    await idle()
    const texts = (await bell(own)).map(item => item.body.split(',')[0]).sort()
    expect(texts).toEqual(['Group Office LAN (10.7.0.0/24)', 'Group Office LAN (10.7.0.0/24)', 'Group subnet:unknown'])
    // The alert has the key as the event brought it.
    const alerts = (await own.call('GET', '/monitoring/alerts')).body.data
    expect(alerts.map((alert: Json) => alert.series_key)).toContain('subnet:unknown')
  })

  test('[NTF-004] [NTF-008] group_down rings, its children and group_update do not', async () => {
    const own = await hub.tenant()
    const [a, b] = [await server(own), await server(own)]
    const group = (type: string) =>
      event(own, a, type, {
        rule_id: 'group_down',
        series_key: 'subnet:n',
        group_key: 'subnet:n',
        severity: 'critical',
        member_server_ids: [a, b],
        group_total: 2,
      })
    const down = (id: string) =>
      event(own, id, 'agent.down', {
        rule_id: 'agent_down',
        series_key: `agent:${crypto.randomUUID()}`,
        severity: 'critical',
      })
    await send(group('group_down'), down(a), down(b), group('group_update'))
    await idle()
    expect(await types(own)).toEqual(['group_down'])
  })

  test('[NTF-005] [NTF-009] suppressed, repeated and old events ring nobody', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    const opened = event(own, id, 'alert.opened')
    await send(
      event(own, id, 'alert.opened', { series_key: 'cpu_load1', suppressed: true, suppress_reason: 'silence' }),
    )
    await send(opened)
    await send(opened)
    await send({ ...opened, event_id: crypto.randomUUID() })
    await send(event(own, id, 'alert.opened'))
    await idle()
    expect(await types(own)).toEqual(['alert.opened'])
  })

  test('[NTF-010] an acknowledged alert still reminds', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    await send(event(own, id, 'alert.opened'))
    const [alert] = (await own.call('GET', '/monitoring/alerts')).body.data
    await own.call('POST', `/monitoring/alerts/${alert.id}/acknowledge`)
    await send(event(own, id, 'alert.reminder'))
    await idle()
    expect(await types(own)).toEqual(['alert.opened', 'alert.reminder'])
  })

  test('[NTF-006] preferences and permissions decide who is told, in their language', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    const quiet = await hub.user(own.companyId, ['monitoring.view'])
    const blind = await hub.user(own.companyId, ['servers.view'])
    const vietnamese = await hub.user(own.companyId, ['monitoring.view'])
    await quiet.call('PUT', '/notifications/preferences', { bell: { min_severity: 'critical' } })
    await vietnamese.call('PATCH', '/me', { language: 'vi' })
    await send(event(own, id, 'alert.opened'))
    await send(event(own, id, 'alert.opened', { series_key: 'cpu_load1', severity: 'critical' }))
    await idle()
    expect(await types(own)).toHaveLength(2)
    expect(await types(quiet)).toHaveLength(1)
    expect(await types(blind)).toEqual([])
    expect((await bell(vietnamese))[0].title).toContain('trên')
    expect((await quiet.call('GET', '/notifications/preferences')).body.data).toEqual({
      bell: { min_severity: 'critical' },
      email: { min_severity: 'warning' },
      push: { min_severity: 'critical' },
    })
  })

  test('[NTF-006] a company changes its texts and gets the defaults back', async () => {
    const own = await hub.tenant()
    const id = await server(own, { name: 'named-server' })
    const text = { language: 'en', title: 'Look at {server}!', body: '{value} over {threshold} {link}' }
    await own.call('PUT', '/notifications/templates/alert.opened', text)
    await send(event(own, id, 'alert.opened'))
    await idle()
    const [first] = await bell(own)
    expect(first.title).toBe('Look at named-server!')
    expect(first.body).toMatch(/^95 over 90 https:\/\/hub\.example\.test\/alerts\//)
    await own.call('DELETE', '/notifications/templates/alert.opened')
    const list = (await own.call('GET', '/notifications/templates')).body.data
    expect(list.every((item: Json) => item.is_default)).toBe(true)
  })

  test('[NTF-007] the stream tells of a notification as it comes', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    const leave = new AbortController()
    const response = await fetch(`${hub.url}/api/v1/notifications/stream`, {
      headers: { Authorization: `Bearer ${own.token}` },
      signal: leave.signal,
    })
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    const reader = response.body!.getReader()
    let text = new TextDecoder().decode((await reader.read()).value)
    await send(event(own, id, 'alert.opened'))
    while (!text.includes('event: notification')) text += new TextDecoder().decode((await reader.read()).value)
    expect(JSON.parse(/data: (.*)/.exec(text)![1]!)).toMatchObject({ type: 'alert.opened', read_at: null })
    leave.abort()
  })
})

describe('a hub that was lost', () => {
  test('what it left untold is told once, in its order', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    await send(event(own, id, 'alert.opened'))
    await idle()
    const { db, client } = hub.hub.database
    const [row] = await db.select().from(alerts).where(eq(alerts.companyId, own.companyId))
    const alert = toAlert(row!)
    // Its commit is there, its jobs are not.
    for (const type of ['alert.reminder', 'alert.resolved'])
      await client`insert into notification_outbox (company_id, told, created_at)
        values (${own.companyId}, ${JSON.stringify([{ type, alert }])}, now() - interval '1 minute')`
    await Promise.all([tellLeftOver(hub.hub), tellLeftOver(hub.hub)])
    await idle()
    expect(await types(own)).toEqual(['alert.opened', 'alert.reminder', 'alert.resolved'])
    expect(await client`select position from notification_outbox where company_id = ${own.companyId}`).toHaveLength(0)
  })
})

describe('suppression that ends', () => {
  test('an alert that opened suppressed and is still active is told once, when the suppression ends', async () => {
    const own = await hub.tenant()
    const id = await server(own, { status: 'maintenance' })
    await send(event(own, id, 'alert.opened', { suppressed: true, suppress_reason: 'maintenance' }))
    await tellEndedSuppressions(hub.hub)
    await idle()
    expect(await types(own)).toEqual([])
    await own.call('PUT', `/servers/${id}/status`, { status: 'active' })
    await tellEndedSuppressions(hub.hub)
    await tellEndedSuppressions(hub.hub)
    await idle()
    expect(await types(own)).toEqual(['alert.opened'])
    expect((await own.call('GET', '/monitoring/alerts')).body.data[0].suppressed).toBe(false)
  })

  test('a recovery inside a silence is told when the silence ends, if the alert was told', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    await send(event(own, id, 'alert.opened'))
    const silence = { scope: { all: true }, ends_at: new Date(Date.now() + 3_600_000).toISOString(), reason: 'x' }
    const { data } = (await own.call('POST', '/monitoring/silences', silence)).body
    await send(event(own, id, 'alert.resolved', { suppressed: true, suppress_reason: 'silence' }))
    await tellEndedSuppressions(hub.hub)
    await idle()
    expect(await types(own)).toEqual(['alert.opened'])
    await own.call('POST', `/monitoring/silences/${data.id}/end`)
    await tellEndedSuppressions(hub.hub)
    await idle()
    expect(await types(own)).toEqual(['alert.opened', 'alert.resolved'])
  })
})

describe('a person who is deleted while they are told', () => {
  const rowFor = (companyId: string, userId: string): BellRow => ({
    id: crypto.randomUUID(),
    user_id: userId,
    company_id: companyId,
    type: 'alert.opened',
    title: 'x',
    body: 'x',
    link: '/alerts',
    created_at: new Date().toISOString(),
  })
  const isWaiting = (statement: string) =>
    until(`${statement} waits`, async () => {
      const rows = await hub.hub.database.client`
        select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
          and query like ${`%${statement}%`} and pid <> pg_backend_pid()`
      return rows.length > 0
    })
  const toldOf = async (companyId: string): Promise<string[]> =>
    (await hub.hub.database.client`select user_id from notifications where company_id = ${companyId}`).map(
      row => row.user_id,
    )

  test('[NTF-001] is waited for by the deletion, which takes the new rows along', async () => {
    const own = await hub.tenant()
    const other = await hub.user(own.companyId, [])
    let deleted: Promise<{ status: number }> | undefined
    await inTransaction(hub.hub.database.db, async tx => {
      await addBellRows(tx, [rowFor(own.companyId, other.userId), rowFor(own.companyId, own.userId)])
      deleted = own.call('DELETE', `/users/${other.userId}`)
      await isWaiting('delete from "users"')
    })
    expect((await deleted)?.status).toBe(204)
    expect(await toldOf(own.companyId)).toEqual([own.userId])
  })

  test('[NTF-001] is left out when the deletion was first, and the others are told', async () => {
    const own = await hub.tenant()
    const other = await hub.user(own.companyId, [])
    let told: Promise<void> | undefined
    await hub.hub.database.client.begin(async client => {
      await client`delete from users where id = ${other.userId}`
      const rows = [rowFor(own.companyId, other.userId), rowFor(own.companyId, own.userId)]
      told = inTransaction(hub.hub.database.db, tx => addBellRows(tx, rows))
      await isWaiting('for key share')
    })
    await told
    expect(await toldOf(own.companyId)).toEqual([own.userId])
  })

  test('[NTF-001] a company that goes takes along what people of its parent were told of it', async () => {
    const parent = await hub.tenant()
    const own = await hub.tenant(undefined, { parentId: parent.companyId })
    const rows = [rowFor(own.companyId, parent.userId), rowFor(parent.companyId, parent.userId)]
    await inTransaction(hub.hub.database.db, tx => addBellRows(tx, rows))
    await inTransaction(hub.hub.database.db, tx => purgeCompany(hub.hub, tx, own.companyId))
    expect([await toldOf(own.companyId), await toldOf(parent.companyId)]).toEqual([[], [parent.userId]])
  })
})
