import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { bringUpToDate } from '../../apps/hub/hub.ts'
import { HELD_BACK, tellEndedSuppressions } from '../../apps/hub/notifications/suppression-end.ts'
import { openDatabase } from '../../apps/hub/platform/db/connect.ts'
import { migrateDatabase, migrations } from '../../apps/hub/platform/db/migrate.ts'
import { installQueues } from '../../apps/hub/platform/jobs/job-store.ts'
import { newDatabase } from '../support/postgres.ts'
import { alertEvent as event, notificationsIdle } from './alert-event.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let collector: Awaited<ReturnType<TestHub['collector']>>

beforeAll(async () => {
  hub = await TestHub.start()
  collector = await hub.collector()
})
afterAll(async () => {
  await hub.stop()
})

let names = 0
const send = async (...events: Json[]) => (await collector.call('POST', '/events', { events })).body.data
const server = async (by: Tenant, body: Json = {}): Promise<string> =>
  (await by.call('POST', '/servers', { name: `held-${++names}`, ...body })).body.data.id
const alertsOf = async (by: Tenant): Promise<Json[]> => (await by.call('GET', '/monitoring/alerts')).body.data
/** What people were told until now, oldest first, after the task that tells what was held back ran twice. */
async function told(by: Tenant): Promise<Json[]> {
  await tellEndedSuppressions(hub.hub)
  await tellEndedSuppressions(hub.hub)
  await notificationsIdle(hub)
  return (await by.call('GET', '/notifications')).body.data.reverse()
}
const types = async (by: Tenant) => (await told(by)).map(item => item.type)
const silenced = { suppressed: true, suppress_reason: 'silence' }
const flapping = (reason: string) => ({ reason, transitions: 4 })

test('[HAL-036] [HAL-043] an alert that opened suppressed is told once when flapping is its first unsuppressed event, and why so late', async () => {
  const own = await hub.tenant()
  const id = await server(own)
  const silence = { scope: { all: true }, ends_at: new Date(Date.now() + 3_600_000).toISOString(), reason: 'x' }
  const { data } = (await own.call('POST', '/monitoring/silences', silence)).body
  await send(event(own, id, 'alert.opened', silenced))
  // Flapping never notifies, and the silence has not ended for the hub.
  await send(event(own, id, 'alert.flapping', flapping('entered')))
  expect(await types(own)).toEqual([])
  await own.call('POST', `/monitoring/silences/${data.id}/end`)
  const [one, ...others] = await told(own)
  expect(one).toMatchObject({
    type: 'alert.opened',
    body: expect.stringContaining('opened while notifications were suppressed'),
  })
  expect(others).toEqual([])
  expect((await alertsOf(own))[0]).toMatchObject({ state: 'open', suppressed: false, flapping: true })
  await send(event(own, id, 'alert.flapping', flapping('exited')), event(own, id, 'alert.resolved'))
  expect(await types(own)).toEqual(['alert.opened', 'alert.resolved'])
})

test('[HAL-030] [HAL-043] what flapping opened after a manual close is told when it exits and is still open, and not before', async () => {
  const own = await hub.tenant()
  const id = await server(own)
  await send(event(own, id, 'alert.opened'))
  const [first] = await alertsOf(own)
  await own.call('POST', `/monitoring/alerts/${first?.id}/close`)
  await send(event(own, id, 'alert.flapping', flapping('entered')))
  expect(await types(own)).toEqual(['alert.opened'])
  await send(event(own, id, 'alert.flapping', flapping('exited')))
  expect(await types(own)).toEqual(['alert.opened', 'alert.opened'])
  const [{ body }] = (await told(own)).slice(-1) as [Json]
  expect(body).not.toContain('suppressed')
})

test('[HAL-043] what flapping opened while it was suppressed is told when both have ended, and not before', async () => {
  const own = await hub.tenant()
  const id = await server(own, { status: 'maintenance' })
  const suppressed = { suppressed: true, suppress_reason: 'maintenance' }
  await send(event(own, id, 'alert.flapping', { ...flapping('entered'), ...suppressed }))
  await own.call('PUT', `/servers/${id}/status`, { status: 'active' })
  expect(await types(own)).toEqual([])
  await send(event(own, id, 'alert.flapping', flapping('exited')))
  expect(await types(own)).toEqual(['alert.opened'])
})

test('[HAL-043] what flapping opened and ended in one breath is told to nobody', async () => {
  const own = await hub.tenant()
  const id = await server(own)
  await send(event(own, id, 'alert.flapping', flapping('entered')))
  await send(event(own, id, 'alert.flapping', flapping('exited')), event(own, id, 'alert.resolved'))
  expect(await types(own)).toEqual([])
})

test('[HAL-031] [NTF-004] what a closed incident gave back is not held back: the incident had told of it', async () => {
  const own = await hub.tenant()
  const [a, b] = [await server(own), await server(own)]
  const down = { rule_id: 'agent_down', series_key: `agent:${crypto.randomUUID()}`, severity: 'critical' }
  await send(
    event(own, a, 'group_down', {
      rule_id: 'group_down',
      series_key: 'subnet:n',
      group_key: 'subnet:n',
      member_server_ids: [a, b],
      group_total: 2,
    }),
    event(own, b, 'agent.down', down),
  )
  const group = (await alertsOf(own)).find(alert => alert.type === 'group_down')
  await own.call('POST', `/monitoring/alerts/${group?.id}/close`)
  expect((await alertsOf(own)).find(alert => alert.type === 'agent_down')).toMatchObject({ state: 'open' })
  expect(await types(own)).toEqual(['group_down'])
})

test('[HAL-036] alerts of before an upgrade: rules that nobody was told of are held back, what an incident told is not', async () => {
  const database = openDatabase(await newDatabase(), 2)
  try {
    const { client } = database
    const before = migrations.findIndex(({ name }) => name === 'alerts_held_back')
    await migrateDatabase(client, () => installQueues(database), migrations.slice(0, before))
    const company = crypto.randomUUID()
    await client`insert into companies (id, name, slug) values (${company}, 'x', 'x')`
    const add = (
      key: string,
      more: { type?: string; suppressed?: boolean; state?: string; notified?: boolean },
    ) => client`
      insert into monitoring_alerts (id, company_id, type, server_id, rule_key, series_key, severity, state, opened_at,
        suppressed, suppress_reason, notified_at)
      values (${crypto.randomUUID()}, ${company}, ${more.type ?? 'threshold'}, ${crypto.randomUUID()}, 'rule', ${key},
        'warning', ${more.state ?? 'open'}, now(), ${more.suppressed ?? false},
        ${more.suppressed ? 'silence' : null}, ${more.notified ? new Date().toISOString() : null})`
    await add('silenced', { suppressed: true })
    await add('silenced and told', { suppressed: true, notified: true })
    await add('lost', {})
    await add('told', { notified: true })
    await add('over', { state: 'resolved' })
    await add('given back', { type: 'agent_down' })
    await bringUpToDate(database)
    const rows =
      await client`select series_key, held_back from monitoring_alerts where held_back is not null order by 1`
    expect(rows.map(row => [row.series_key, row.held_back])).toEqual([
      ['lost', 'flapping'],
      ['silenced', 'silence'],
    ])
  } finally {
    await database.close()
  }
})

test('what is held back is found by indexes alone, however many alerts there are', async () => {
  const { db, client } = hub.hub.database
  const { companyId } = await hub.tenant()
  await client`
    insert into monitoring_alerts (id, company_id, type, server_id, rule_key, series_key, severity, state, opened_at, notified_at)
    select gen_random_uuid(), ${companyId}, 'threshold', gen_random_uuid(), 'rule', 'cpu', 'warning',
      (array['open', 'resolved'])[1 + n % 2], now(), now() from generate_series(1, 5000) n`
  await client`analyze monitoring_alerts`
  const plan = await db.execute<{ 'QUERY PLAN': string }>(sql`explain select 1 from ${HELD_BACK}`)
  const text = plan.map(row => row['QUERY PLAN']).join('\n')
  expect(text).toContain('monitoring_alerts_held_back')
  expect(text).not.toContain('Seq Scan')
})
