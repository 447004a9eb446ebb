// Exports: exactly what the lists give, once or on a schedule, for whoever may see it.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { parse } from 'csv-parse/sync'
import { cellOf } from '../../apps/hub/exports/export-format.ts'
import { nextRunAfter } from '../../apps/hub/exports/next-run.ts'
import { runSchedules } from '../../apps/hub/exports/schedules.ts'
import { keepExports } from '../../apps/hub/exports/write-export.ts'
import { until } from '../support/until.ts'
import { type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let own: Tenant
let root: Call

beforeAll(async () => {
  hub = await TestHub.start()
  own = await hub.tenant()
  root = (await hub.user(own.companyId, ['*'], { superAdmin: true })).call
})
afterAll(() => hub.stop())

const sql = (strings: TemplateStringsArray, ...values: (string | number)[]) =>
  hub.hub.database.client(strings, ...values)
const start = (body: Json, by: Call = own.call) => by('POST', '/exports', body)
const ended = (id: string, by: Call = own.call): Promise<Json> =>
  until('the export has ended', async () => {
    const { data } = (await by('GET', `/exports/${id}`)).body
    return ['queued', 'running'].includes(data.state) ? null : data
  })
const get = (path: string, headers: Record<string, string> = {}) => fetch(`${hub.url}${path}`, { headers })
const download = (id: string, token = own.token) =>
  get(`/api/v1/exports/${id}/download`, { Authorization: `Bearer ${token}` })
async function exported(body: Json, by: Tenant = own): Promise<{ shown: Json; text: string }> {
  const { status, body: made } = await start(body, by.call)
  expect(status).toBe(202)
  const shown = await ended(made.data.id, by.call)
  expect([shown.state, shown.error]).toEqual(['ready', null])
  const bytes = Buffer.from(await (await download(shown.id, by.token)).arrayBuffer())
  expect([shown.bytes, shown.sha256]).toEqual([bytes.byteLength, createHash('sha256').update(bytes).digest('hex')])
  return { shown, text: bytes.toString() }
}

const daily = { name: 'Night', resource: 'servers', every: 'day', at: '02:30', time_zone: 'Europe/Berlin' }

describe('exports', () => {
  test('[RES-271] [RES-274] an export holds exactly the rows that the list gives, and none of another company', async () => {
    const tenant = await hub.tenant()
    const other = await hub.tenant()
    await other.call('POST', '/servers', { name: 'foreign', environment: 'prod' })
    for (let index = 0; index < 20; index++)
      await tenant.call('POST', '/servers', {
        name: `web-${index}`,
        environment: index % 2 ? 'prod' : 'test',
        tags: ['a', 'b'],
      })
    const listed: Json[] = []
    for (const page of [1, 2])
      listed.push(...(await tenant.call('GET', `/servers?environment=prod&page=${page}`)).body.data)
    const sorted = (rows: Json[]) => rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const what = { resource: 'servers', filters: { environment: 'prod' } }
    const json = await exported({ ...what, format: 'json' }, tenant)
    expect(JSON.parse(json.text)).toEqual(sorted(listed))
    expect(json.shown).toMatchObject({
      rows: 10,
      filters: { environment: 'prod' },
      requested_by: { id: tenant.userId },
    })
    const lines = (await exported({ ...what, format: 'jsonl', columns: ['id', 'name'] }, tenant)).text
      .trimEnd()
      .split('\n')
    expect(lines.map(line => JSON.parse(line))).toEqual(sorted(listed).map(({ id, name }) => ({ id, name })))
    const csv = await exported({ ...what, columns: ['name', 'tags'], delimiter: ';', bom: true }, tenant)
    expect(csv.text.startsWith('\ufeffname;tags\r\n')).toBe(true)
    expect(parse(csv.text, { bom: true, delimiter: ';', columns: true }).map((row: Json) => row.tags)).toEqual(
      Array(10).fill('a;b'),
    )
    const none = await exported({ resource: 'servers', format: 'json', filters: { environment: 'none' } }, tenant)
    expect(JSON.parse(none.text)).toEqual([])
  })

  test('[R-069] every resource can be exported by who may see it, kinds of the registry too', async () => {
    const { data } = (await own.call('GET', '/exports/resources')).body
    expect(data.map((each: Json) => each.resource)).toContain('subnets')
    for (const { resource, columns } of data) {
      const { text } = await exported({ resource })
      expect([resource, text.split('\r\n')[0]?.split(',')]).toEqual([resource, columns])
      for (const column of columns) expect(column).not.toMatch(/secret$|password|token_hash|_sealed/)
    }
    const audit = await exported({ resource: 'audit-log', format: 'jsonl', filters: { action: 'export.create' } })
    const wanted = (await own.call('GET', '/audit-log?action=export.create')).body.meta.total
    // The entry of the export itself is written with it.
    expect(audit.text.trimEnd().split('\n')).toHaveLength(wanted)
  })

  test('[R-069] [G-110] the health of servers is written where its columns are, for who may see it, and left out for others', async () => {
    const tenant = await hub.tenant()
    const [reader, blind] = await Promise.all(
      [['monitoring.view'], []].map(more =>
        hub.user(tenant.companyId, ['export.run', 'servers.view', ...more]).then(user => ({ ...tenant, ...user })),
      ),
    )
    if (!reader || !blind) throw new Error('unreachable')
    await tenant.call('POST', '/servers', { name: 'web-1' })
    const { health } = (await tenant.call('GET', '/servers?include=health')).body.data[0]
    expect(health).toEqual({ connectivity: 'unknown', last_seen_at: null, open_alerts: 0 })
    const cells = { 'health.connectivity': 'unknown', 'health.last_seen_at': '', 'health.open_alerts': '0' }
    const rows = async (body: Json, by: Tenant): Promise<Json[]> =>
      parse((await exported({ resource: 'servers', ...body }, by)).text, { columns: true })
    const json = async (body: Json, by: Tenant) =>
      JSON.parse((await exported({ resource: 'servers', format: 'json', ...body }, by)).text)
    expect(await rows({}, reader)).toEqual([expect.objectContaining({ name: 'web-1', ...cells })])
    const columns = ['name', ...Object.keys(cells)]
    expect(await rows({ columns }, reader)).toEqual([{ name: 'web-1', ...cells }])
    expect(await json({ columns }, reader)).toEqual([{ name: 'web-1', health }])
    expect(await rows({ columns }, blind)).toEqual([{ name: 'web-1' }])
    expect(await json({ columns }, blind)).toEqual([{ name: 'web-1' }])
    const of = async ({ call }: Tenant): Promise<string[]> =>
      (await call('GET', '/exports/resources')).body.data[0].columns
    expect(await of(reader)).toContain('health.open_alerts')
    for (const name of [...(await of(blind)), ...Object.keys((await rows({}, blind))[0])])
      expect(name).not.toStartWith('health')
    // Whole rows are those of the list, which asks for it by its filter.
    expect((await json({}, reader))[0]).not.toHaveProperty('health')
  })

  test('[R-069] items of option lists are exported with their list and their uses, files with what refers to them', async () => {
    const tenant = await hub.tenant()
    const made = async (list: string, body: Json) =>
      expect((await tenant.call('POST', `/options/${list}/items`, body)).status).toBe(201)
    await made('roles', { value: 'db' })
    await made('environments', { value: 'prod', enabled: false })
    await tenant.call('POST', '/servers', { name: 'a', role: 'db' })
    const rows = async (body: Json) => JSON.parse((await exported({ format: 'json', ...body }, tenant)).text)
    const of = (list: string, more: Json) => ({ resource: 'option-items', filters: { list, ...more } })
    expect(await rows(of('roles', {}))).toEqual([expect.objectContaining({ list: 'roles', value: 'db', uses: 1 })])
    const environments = (await rows(of('environments', { enabled: '0' }))).map(({ value }: Json) => value)
    expect(environments).toContain('prod')
    expect((await rows(of('environments', { enabled: '1' }))).map(({ value }: Json) => value)).not.toContain('prod')
    expect((await rows({ resource: 'option_item' })).length).toBeGreaterThanOrEqual(2)
    const content = Buffer.from('a text').toString('base64')
    expect((await tenant.call('POST', '/files', { name: 'a.txt', content_base64: content })).status).toBe(201)
    expect(await rows({ resource: 'files' })).toEqual([expect.objectContaining({ name: 'a.txt', attached_to: [] })])
    const { shown } = await exported({ resource: 'files' }, tenant)
    const typed = (accept: string) =>
      get(`/api/v1/exports/${shown.id}/download`, { Authorization: `Bearer ${tenant.token}`, Accept: accept })
    expect((await typed('text/csv')).headers.get('content-type')).toStartWith('text/csv')
    expect((await typed('image/png')).status).toBe(406)
    const another = await hub.tenant()
    expect(JSON.parse((await exported({ resource: 'files', format: 'json' }, another)).text)).toEqual([])
  })

  test('[RES-270] what cannot be exported, and by whom', async () => {
    const viewer = await hub.user(own.companyId, ['export.run', 'servers.view'])
    expect((await start({ resource: 'users' }, viewer.call)).status).toBe(403)
    expect((await viewer.call('GET', '/exports/resources')).body.data.map((each: Json) => each.resource)).toEqual([
      'servers',
    ])
    // What a list shows to who may change it is exported by them alone.
    const watcher = await hub.user(own.companyId, ['export.run', 'monitoring.view'])
    for (const resource of ['rules', 'silences']) {
      expect([resource, (await watcher.call('GET', `/monitoring/${resource}`)).status]).toEqual([resource, 403])
      expect([resource, (await start({ resource }, watcher.call)).status]).toEqual([resource, 403])
    }
    for (const [body, field] of [
      [{ resource: 'nonsense' }, 'resource'],
      [{ resource: 'servers', format: 'xlsx' }, 'format'],
      [{ resource: 'servers', filters: { nonsense: 1 } }, 'filters.nonsense'],
      [{ resource: 'servers', filters: { status: 'gone' } }, 'filters.status'],
      [{ resource: 'servers', columns: ['name', 'password'] }, 'columns.1'],
    ] as const) {
      const refused = await start(body)
      expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, [field]])
    }
    expect((await own.call('GET', '/exports?resource=nonsense')).body.errors).toHaveProperty('resource')
    // A kind by its own name is the resource of its list.
    const named = await start({ resource: 'subnet' })
    expect([named.status, named.body.data.resource]).toEqual([202, 'subnets'])
  })

  test('[check 16.38] [RES-272] no text of a row becomes a formula, unless it is asked for as it is', async () => {
    const tenant = await hub.tenant()
    await tenant.call('POST', '/servers', { name: '=cmd()', notes: '=1+1' })
    const columns = ['name', 'notes']
    expect((await exported({ resource: 'servers', columns }, tenant)).text).toBe("name,notes\r\n'=cmd(),'=1+1\r\n")
    expect((await exported({ resource: 'servers', columns, raw: true }, tenant)).text).toBe(
      'name,notes\r\n=cmd(),=1+1\r\n',
    )
    const options = { delimiter: ',', bom: false, raw: false }
    for (const text of ['=1', '+1', '-1', '@a', '\ta', '\ra', ' =1', '＝1'])
      expect(cellOf(text, options)).toContain("'")
    for (const plain of [-1, true, 'a-b', '1=1']) expect(cellOf(plain, options)).toBe(String(plain))
    expect(cellOf('a,"b"\r\n', options)).toBe('"a,""b""\r\n"')
    expect(cellOf([{ a: 1 }], options)).toBe('"[{""a"":1}]"')
  })

  test('[check 16.37] [RES-275] [RES-277] a link works without a header, for its export and its time; who may not know of one gets 404', async () => {
    const { shown } = await exported({ resource: 'servers' })
    const another = (await exported({ resource: 'servers' })).shown
    const link = new URL(shown.download_url, hub.url)
    expect((await get(`${link.pathname}${link.search}`)).status).toBe(200)
    const wrong = await get(`/api/v1/exports/${another.id}/download${link.search}`)
    const told: Json = await wrong.json()
    expect([wrong.status, told.reason]).toEqual([401, 'token_expired'])
    expect((await get(`${link.pathname}?token=nonsense`)).status).toBe(401)
    const opened = JSON.parse(hub.hub.sealer.open(link.searchParams.get('token') ?? '') ?? '{}')
    expect(opened.until - Date.now()).toBeLessThanOrEqual(15 * 60_000)
    const late = hub.hub.sealer.seal(JSON.stringify({ ...opened, until: Date.now() - 1 }))
    expect((await get(`${link.pathname}?token=${late}`)).status).toBe(401)
    const person = await hub.user(own.companyId, ['export.run', 'servers.view'])
    expect((await person.call('GET', `/exports/${shown.id}`)).status).toBe(404)
    expect((await person.call('GET', '/exports')).body.data).toEqual([])
    const auditor = await hub.user(own.companyId, ['export.run', 'audit.view'])
    expect((await auditor.call('GET', `/exports/${shown.id}`)).body.data).toMatchObject({
      id: shown.id,
      download_url: null,
    })
    expect((await download(shown.id, auditor.token)).status).toBe(403)
  })

  test('those of schedules leave room for exports by hand, of which a company keeps a hundred', async () => {
    const tenant = await hub.tenant()
    const { shown } = await exported({ resource: 'servers' }, tenant)
    const insert = (count: number, scheduleId: string) => sql`
      insert into exports (id, company_id, resource, format, filters, options, requested_by, permissions, recipients,
        schedule_id, state, created_at, expires_at)
      select gen_random_uuid(), company_id, resource, format, filters, options, requested_by, permissions, recipients,
        nullif(${scheduleId}, '')::uuid, 'ready', created_at, expires_at from exports, generate_series(1, ${count}::int)
      where id = ${shown.id}`
    await insert(150, (await tenant.call('POST', '/exports/schedules', daily)).body.data.id)
    expect((await tenant.call('POST', '/exports', { resource: 'servers', format: 'csv' })).status).toBe(202)
    await insert(98, '')
    const refused = await tenant.call('POST', '/exports', { resource: 'servers', format: 'csv' })
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['limit']])
  })

  test('[RES-276] after its time an export is over, and its content gone', async () => {
    const { shown } = await exported({ resource: 'servers' })
    expect(Date.parse(shown.expires_at) - Date.now()).toBeGreaterThan(6.9 * 86_400_000)
    const [before] = await sql`select object_id as id from exports where id = ${shown.id}`
    await sql`update exports set expires_at = now() where id = ${shown.id}`
    expect((await download(shown.id)).status).toBe(404)
    await keepExports(hub.hub)
    expect((await own.call('GET', `/exports/${shown.id}`)).body.data).toMatchObject({
      state: 'expired',
      download_url: null,
    })
    expect(await sql`select id from stored_objects where id = ${before?.id}`).toHaveLength(0)
  })

  test('[RES-273] one row too many ends it as failed, and nothing of it is kept', async () => {
    const tenant = await hub.tenant()
    for (const name of ['a', 'b', 'c']) await tenant.call('POST', '/servers', { name })
    await root('PUT', '/system/settings/exports.max_rows', { value: 2 })
    const { body } = await start({ resource: 'servers' }, tenant.call)
    expect(await ended(body.data.id, tenant.call)).toMatchObject({
      state: 'failed',
      error: 'too_many_rows',
      sha256: null,
    })
    await root('DELETE', '/system/settings/exports.max_rows')
    expect(await sql`select id from stored_objects where company_id = ${tenant.companyId}`).toHaveLength(0)
    expect((await download(body.data.id, tenant.token)).status).toBe(409)
  })

  test('[RES-274] one whose hub is gone is written anew, and given up after three tries', async () => {
    await root('POST', '/queues/exports/pause', {})
    const [first, second] = [
      (await start({ resource: 'servers' })).body.data.id,
      (await start({ resource: 'agents' })).body.data.id,
    ]
    await sql`update exports set state = 'running', hub_id = gen_random_uuid(), tries = 1 where id = ${first}`
    await sql`update exports set state = 'running', hub_id = gen_random_uuid(), tries = 3 where id = ${second}`
    await keepExports(hub.hub)
    await root('POST', '/queues/exports/resume')
    expect((await ended(first)).state).toBe('ready')
    expect(await ended(second)).toMatchObject({ state: 'failed', error: 'gave_up' })
  })

  test('what is written of one is never there without its export naming it, so that a killed hub leaves nothing behind', async () => {
    await sql`create table lone_objects (id uuid)`
    await sql`
      create function note_lone_object() returns trigger language plpgsql as $$ begin
        insert into lone_objects select new.id where not exists (select 1 from exports where object_id = new.id);
        return null;
      end $$`
    // Deferred: it looks as the transaction commits, which is all that a kill leaves of it.
    await sql`
      create constraint trigger lone_object after insert on stored_objects deferrable initially deferred
      for each row execute function note_lone_object()`
    try {
      await exported({ resource: 'servers' })
      expect(await sql`select id from lone_objects`).toHaveLength(0)
    } finally {
      await sql`drop trigger lone_object on stored_objects`
    }
  })

  test('[R-070] somebody who lost the permission meanwhile gets nothing', async () => {
    await root('POST', '/queues/exports/pause', {})
    const person = await hub.user(own.companyId, ['export.run', 'servers.view'])
    const { body } = await start({ resource: 'servers' }, person.call)
    await sql`update users set permissions = '{export.run}' where id = ${person.userId}`
    await root('POST', '/queues/exports/resume')
    expect(await ended(body.data.id, person.call)).toMatchObject({ state: 'failed', error: 'permission_lost' })
  })
})

describe('schedules', () => {
  test('[RES-278] the local time comes once a day, also when clocks change', async () => {
    const { db } = hub.hub.database
    const runs = async (when: Parameters<typeof nextRunAfter>[1], from: string, count: number) => {
      const found: string[] = []
      for (let atMs = Date.parse(from); found.length < count; ) {
        const next = await nextRunAfter(db, when, atMs)
        found.push(next.toISOString().slice(0, 16))
        atMs = next.getTime()
      }
      return found
    }
    const berlin = { every: 'day', at: '02:30', weekday: null, day: null, timeZone: 'Europe/Berlin' } as const
    // 02:30 does not exist on 29 March 2026, and comes twice on 25 October.
    expect(await runs(berlin, '2026-03-28T00:00:00Z', 3)).toEqual([
      '2026-03-28T01:30',
      '2026-03-29T01:30',
      '2026-03-30T00:30',
    ])
    expect(await runs(berlin, '2026-10-24T00:00:00Z', 3)).toEqual([
      '2026-10-24T00:30',
      '2026-10-25T01:30',
      '2026-10-26T01:30',
    ])
    const weekly = { ...berlin, every: 'week', weekday: 1, timeZone: 'Asia/Ho_Chi_Minh' } as const
    expect(await runs(weekly, '2026-03-01T00:00:00Z', 2)).toEqual(['2026-03-01T19:30', '2026-03-08T19:30'])
    const monthly = { ...berlin, every: 'month', day: 28, timeZone: 'UTC' } as const
    expect(await runs(monthly, '2026-01-28T02:30:00Z', 2)).toEqual(['2026-02-28T02:30', '2026-03-28T02:30'])
  })

  test('[RES-278] it runs once when it is due, and its link reaches the recipients', async () => {
    const reader = await hub.user(own.companyId, ['export.run', 'servers.view'])
    const { body } = await own.call('POST', '/exports/schedules', { ...daily, recipients: [reader.userId] })
    const { id } = body.data
    expect(body.data).toMatchObject({ at: '02:30', enabled: true, owner: { id: own.userId }, format: 'csv' })
    await sql`update export_schedules set next_run_at = now() - interval '1 second' where id = ${id}`
    await Promise.all([runSchedules(hub.hub), runSchedules(hub.hub)])
    const told = await until('the recipient is told', async () =>
      (await reader.call('GET', '/notifications')).body.data.find((each: Json) => each.type === 'export.ready'),
    )
    expect(told.title).toContain('Night')
    const exportId = told.link.replace('/exports/', '')
    expect((await reader.call('GET', `/exports/${exportId}`)).body.data).toMatchObject({
      state: 'ready',
      schedule_id: id,
    })
    expect((await download(exportId, reader.token)).status).toBe(200)
    expect(await sql`select id from exports where schedule_id = ${id}`).toHaveLength(1)
    const [row] = await sql`select next_run_at > now() as later from export_schedules where id = ${id}`
    expect(row?.later).toBe(true)
    expect((await own.call('DELETE', `/exports/schedules/${id}`)).status).toBe(204)
  })

  test('[R-072] [G-110] the health of servers is in the export of a schedule too', async () => {
    const tenant = await hub.tenant()
    await tenant.call('POST', '/servers', { name: 'web-1' })
    const { id } = (await tenant.call('POST', '/exports/schedules', daily)).body.data
    await sql`update export_schedules set next_run_at = now() - interval '1 minute' where id = ${id}`
    await runSchedules(hub.hub)
    const [made] = (await tenant.call('GET', '/exports')).body.data
    await ended(made.id, tenant.call)
    const rows = parse(await (await download(made.id, tenant.token)).text(), { columns: true })
    expect(rows).toEqual([expect.objectContaining({ 'health.connectivity': 'unknown', 'health.open_alerts': '0' })])
  })

  test('[R-072] it is disabled after three failures in a row, and when its owner is gone', async () => {
    const owner = await hub.user(own.companyId, ['export.run', 'servers.view'])
    const { id } = (await owner.call('POST', '/exports/schedules', daily)).body.data
    const fire = async () => {
      // A millisecond that is rounded up is not there yet.
      await sql`update export_schedules set next_run_at = now() - interval '1 second' where id = ${id}`
      await runSchedules(hub.hub)
    }
    await root('PUT', '/system/settings/exports.max_rows', { value: 1 })
    for (const name of ['x-1', 'x-2']) await own.call('POST', '/servers', { name })
    for (let count = 1; count <= 3; count++) {
      await fire()
      await until('it failed', async () => {
        const [row] = await sql`select failures_in_a_row as n from export_schedules where id = ${id}`
        return row?.n === count
      })
    }
    await root('DELETE', '/system/settings/exports.max_rows')
    const shown = async () =>
      (await own.call('GET', '/exports/schedules')).body.data.find((each: Json) => each.id === id)
    expect(await shown()).toMatchObject({ enabled: false, disabled_reason: 'failures' })
    expect((await owner.call('PATCH', `/exports/schedules/${id}`, { enabled: true })).body.data).toMatchObject({
      enabled: true,
      disabled_reason: null,
    })
    await sql`update users set disabled_at = now() where id = ${owner.userId}`
    await fire()
    expect(await shown()).toMatchObject({ enabled: false, disabled_reason: 'owner_gone' })
  })

  test('[R-072] what a schedule cannot be', async () => {
    const foreign = (await hub.tenant()).userId
    for (const [body, field] of [
      [{ ...daily, every: 'week' }, 'weekday'],
      [{ ...daily, every: 'month' }, 'day'],
      [{ ...daily, at: '24:00' }, 'at'],
      [{ ...daily, time_zone: 'Mars/Olympus' }, 'time_zone'],
      [{ ...daily, recipients: [foreign] }, 'recipients.0'],
      [{ ...daily, resource: 'nonsense' }, 'resource'],
    ] as const) {
      const refused = await own.call('POST', '/exports/schedules', body)
      expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, [field]])
    }
    const wrong = { ...daily, at: '9 am', time_zone: 'Mars/Olympus' }
    expect((await own.call('POST', '/exports/schedules', wrong)).body.errors).toEqual({
      at: ['must be a time as HH:MM, such as 07:30'],
      time_zone: ['must be a time zone such as Europe/Berlin'],
    })
    expect((await own.call('POST', '/exports/schedules', wrong, { 'accept-language': 'vi' })).body.errors).toEqual({
      at: ['phải là giờ dạng HH:MM, ví dụ 07:30'],
      time_zone: ['phải là múi giờ, ví dụ Asia/Ho_Chi_Minh'],
    })
    const mine = (await own.call('POST', '/exports/schedules', daily)).body.data.id
    const person = await hub.user(own.companyId, ['export.run', 'servers.view'])
    expect((await person.call('DELETE', `/exports/schedules/${mine}`)).status).toBe(404)
    expect((await person.call('GET', '/exports/schedules')).body.data).toEqual([])
  })
})
