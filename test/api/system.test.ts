// What operators set while hubs run, over two hubs on one database: pauses of queues, settings, plans, maintenance.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { changeRetention } from '../../core/retention/plan-change.ts'
import { Executable } from '../support/executable.ts'
import { until } from '../support/until.ts'
import { alertEvent } from './alert-event.ts'
import { type Call, caller, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let peer: TestHub
let own: Tenant
let root: Call
/** The super administrator at the other hub. */
let rootAtPeer: Call
let receiver: ReturnType<typeof Bun.serve>
const came: string[] = []
const folder = mkdtempSync(join(tmpdir(), 'hub-system-'))

const sql = (strings: TemplateStringsArray, ...values: string[]) => hub.hub.database.client(strings, ...values)
const signalHubs = () => sql`select pg_notify('hub_system', '')`

beforeAll(async () => {
  receiver = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      came.push(request.headers.get('x-hub-delivery') ?? '')
      return new Response()
    },
  })
  hub = await TestHub.start({ 'webhooks.allow_private': true })
  peer = await hub.peer({ 'webhooks.allow_private': true })
  own = await hub.tenant()
  const admin = await hub.user(own.companyId, ['*'], { superAdmin: true })
  root = admin.call
  rootAtPeer = caller(peer.url, admin.token)
})
afterAll(async () => {
  await receiver.stop(true)
  await peer.running.stop()
  await hub.stop()
  rmSync(folder, { recursive: true, force: true })
})

const newHook = async (): Promise<string> =>
  (await own.call('POST', '/webhooks', { name: 'hook', url: `http://127.0.0.1:${receiver.port}/` })).body.data.id

describe('pausing a queue', () => {
  const webhooks = '/queues/notifications.webhook'
  /** Tests of a webhook while the queue is paused. Resolves once a later job of another queue is done. */
  async function sendPaused(): Promise<string[]> {
    const hook = await newHook()
    const ids: string[] = []
    for (let count = 0; count < 3; count++)
      ids.push((await own.call('POST', `/webhooks/${hook}/test`)).body.data.delivery_id)
    await hub.hub.database
      .client`update system_settings set updated_at = now() - interval '1 day' where key = 'schedule.audit_counts'`
    await until('later jobs are done', async () => {
      const [row] =
        await sql`select 1 from system_settings where key = 'schedule.audit_counts' and updated_at > now() - interval '1 hour'`
      return row !== undefined
    })
    return ids
  }

  test('[RES-254] its jobs wait at every hub, and are done once each when it goes on', async () => {
    const paused = await root('POST', `${webhooks}/pause`, { confirm: true })
    expect([paused.status, paused.body.data.paused_by.name]).toEqual([200, 'Test user'])
    expect(Date.parse(paused.body.data.paused_until) - Date.now()).toBeGreaterThan(59 * 60_000)
    await until('the other hub knows', async () => (await rootAtPeer('GET', webhooks)).body.data.paused_until !== null)
    const ids = await sendPaused()
    const shown = (await root('GET', webhooks)).body.data
    expect([shown.waiting, shown.running, came.filter(id => ids.includes(id))]).toEqual([3, 0, []])
    const resumed = await rootAtPeer('POST', `${webhooks}/resume`)
    expect([resumed.status, resumed.body.data.paused_until, resumed.body.data.paused_by]).toEqual([200, null, null])
    await until('all have come', () => ids.every(id => came.includes(id)))
    expect(came.filter(id => ids.includes(id)).sort()).toEqual([...ids].sort())
    expect((await root('POST', `${webhooks}/resume`)).status).toBe(200)
    const { data } = (await root('GET', '/audit-log?action=queue.resume')).body
    expect(data).toHaveLength(1)
  })

  test('[check 16.36] [RES-254] a pause ends by itself, and what waited comes once', async () => {
    await root('POST', `${webhooks}/pause`, { minutes: 1, confirm: true })
    const ids = await sendPaused()
    expect(came.filter(id => ids.includes(id))).toEqual([])
    await sql`update queue_pauses set paused_until = now()`
    await signalHubs()
    await until('all have come', () => ids.every(id => came.includes(id)))
    const shown = (await root('GET', webhooks)).body.data
    expect([shown.paused_until, shown.waiting]).toEqual([null, 0])
    expect(came.filter(id => ids.includes(id)).sort()).toEqual([...ids].sort())
  })

  test('[RES-255] [RES-256] who may not, and what cannot be paused', async () => {
    const refused = await own.call('POST', '/queues/security.rate/pause', {})
    expect([refused.status, refused.body.reason]).toEqual([403, 'permission_denied'])
    expect((await own.call('POST', '/queues/security.rate/resume')).status).toBe(403)
    const unconfirmed = await root('POST', '/queues/notifications.dispatch/pause', { minutes: 5 })
    expect([unconfirmed.status, Object.keys(unconfirmed.body.errors)]).toEqual([422, ['confirm']])
    for (const queue of ['schedule', 'jobs.failed'])
      expect((await root('POST', `/queues/${queue}/pause`, { confirm: true })).body.errors.queue).toHaveLength(1)
    for (const minutes of [0, 1441]) {
      const outside = await root('POST', '/queues/security.rate/pause', { minutes })
      expect([outside.status, Object.keys(outside.body.errors)]).toEqual([422, ['minutes']])
    }
    expect((await root('POST', '/queues/nonsense/pause', {})).status).toBe(404)
    expect(await sql`select queue from queue_pauses where paused_until > now()`).toHaveLength(0)
  })
})

describe('workers', () => {
  test('[RES-257] hubs are alive; one that was killed is lost, and one that ended is gone', async () => {
    const workers = async (by: Call): Promise<Json[]> => (await by('GET', '/queues/workers')).body.data
    const ids = [hub.hub.processId, peer.hub.processId].sort()
    expect((await workers(root)).map(worker => worker.id).sort()).toEqual(ids)
    const words = ['serve', '--database-url', hub.databaseUrl]
    const third = new Executable('hub', [...words, '--listen', '127.0.0.1:0'], join(folder, 'ready.json'))
    await third.start()
    const killed = (await workers(root)).find(worker => !ids.includes(worker.id))
    expect(killed).toMatchObject({ state: 'alive' })
    expect(killed.host).not.toBeNull()
    process.kill(third.pid, 'SIGKILL')
    await third.stop()
    // Its row stays; what follows is that no heartbeat comes for half a minute.
    await hub.hub.database.client`
      update hub_processes set last_seen_at = last_seen_at - interval '31 seconds' where id = ${killed.id}`
    const after = await workers(root)
    expect(after.find(worker => worker.id === killed.id).state).toBe('lost')
    expect(
      after
        .filter(worker => worker.state === 'alive')
        .map(worker => worker.id)
        .sort(),
    ).toEqual(ids)
    expect(await workers(own.call)).toEqual(
      expect.arrayContaining([expect.objectContaining({ id: killed.id, host: null, version: null, state: 'lost' })]),
    )
    const ended = await hub.peer()
    await ended.running.stop()
    expect((await workers(root)).map(worker => worker.id)).not.toContain(ended.hub.processId)
  })
})

describe('settings', () => {
  const one = async (key: string, by: Call = own.call): Promise<Json> =>
    (await by('GET', `/system/settings/${key}`)).body.data
  const set = (key: string, value: Json, by: Call, level?: string) =>
    by('PUT', `/system/settings/${key}${level ? `?level=${level}` : ''}`, { value })

  test('[RES-264] every setting is listed with its default; wrong keys and values are refused', async () => {
    const { data } = (await own.call('GET', '/system/settings')).body
    const byKey = new Map<string, Json>(data.map((setting: Json) => [setting.key, setting]))
    expect(byKey.get('certificates.warn_days')).toMatchObject({
      value: [30, 14, 7, 3, 1],
      level: 'company',
      is_set: false,
    })
    expect(byKey.get('events.retention_days')).toMatchObject({ value: 3650, default: 90, source: 'configuration' })
    const ofCompany = (await own.call('GET', '/system/settings?level=company')).body.data
    expect(new Set(ofCompany.map((setting: Json) => setting.level))).toEqual(new Set(['company']))
    for (const [key, value] of [
      ['events.retention_days', 0],
      ['events.retention_days', 'many'],
      ['exports.max_rows', 10_000_001],
      ['dns.resolvers', ['192.0.2.1', 'nonsense']],
      ['public_url', 'ftp://hub.example.net'],
      ['smtp.url', 'http://mail.example.net'],
      ['push.subject', 'somebody'],
      ['audit.retention_days', null],
    ]) {
      const { status, body } = await set(String(key), value, root)
      expect([key, status, Object.keys(body.errors ?? {})]).toEqual([key, 422, ['value']])
    }
    expect((await set('nonsense', 1, root)).status).toBe(404)
    expect((await own.call('GET', '/system/settings/nonsense')).status).toBe(404)
    expect(Object.keys((await set('trusted_proxies', [], root)).body.errors)).toEqual(['key'])
    // Both levels would be plausible.
    expect(Object.keys((await set('ips.stale_days', 5, root)).body.errors)).toEqual(['level'])
    expect(Object.keys((await set('trash.days', 5, root, 'company')).body.errors)).toEqual(['level'])
  })

  test('[RES-263] a company has a value of its own, which another has not; taking it back brings what was', async () => {
    const other = await hub.tenant()
    const key = 'iac.yaml_upload_enabled'
    expect((await set(key, false, own.call, 'company')).body.data).toMatchObject({ value: false, source: 'company' })
    expect(await one(key, other.call)).toMatchObject({ value: true, source: 'default' })
    const valueIn = (of: TestHub, { companyId }: Tenant) => of.hub.state.valueIn(of.hub.database.db, companyId, key)
    for (const each of [hub, peer])
      expect([await valueIn(each, own), await valueIn(each, other)]).toEqual([false, true])
    expect((await own.call('DELETE', `/system/settings/${key}`)).status).toBe(204)
    expect(await one(key)).toMatchObject({ value: true, source: 'default', updated_by: null })
    const actions = (await own.call('GET', '/audit-log?subject=setting')).body.data.map((entry: Json) => entry.action)
    expect(actions.slice(0, 2)).toEqual(['setting.reset', 'setting.update'])
  })

  test('[RES-266] a value for all is set by super administrators only, and works at every hub without a restart', async () => {
    for (const level of [undefined, 'system'])
      expect((await set('mail.from', 'x@example.net', own.call, level)).status).toBe(403)
    expect((await set('ips.stale_days', 9, own.call, 'system')).status).toBe(403)
    expect((await own.call('DELETE', '/system/settings/mail.from')).status).toBe(403)
    expect(hub.hub.config['mail.from']).toBeNull()
    expect((await set('mail.from', 'hub@example.net', root)).body.data).toMatchObject({
      source: 'system',
      level: 'system',
    })
    expect(hub.hub.config['mail.from']).toBe('hub@example.net')
    await until('the other hub follows', () => peer.hub.config['mail.from'] === 'hub@example.net')
    await rootAtPeer('DELETE', '/system/settings/mail.from')
    await until('this hub follows', () => hub.hub.config['mail.from'] === null)
    await set('rate.default_per_minute', 100_000, root)
    const limits = (await own.call('GET', '/me')).headers
    expect(limits.get('x-ratelimit-limit')).toBe('100000')
    // What file and environment say is not forgotten.
    await root('DELETE', '/system/settings/rate.default_per_minute')
    expect((await own.call('GET', '/me')).headers.get('x-ratelimit-limit')).toBe('1000000')
  })

  test('[RES-265] a secret is sealed, and neither answered nor logged', async () => {
    const url = 'smtp://postman:s3cretive@127.0.0.1:9'
    const { body } = await set('smtp.url', url, root)
    expect(body.data).toMatchObject({ value: null, is_set: true, secret: true, source: 'system' })
    expect(hub.hub.config['smtp.url']).toBe(url)
    await until('the other hub follows', () => peer.hub.config['smtp.url'] === url)
    expect(JSON.stringify([body, await one('smtp.url', root), (await root('GET', '/audit-log')).body])).not.toContain(
      's3cretive',
    )
    const [row] = await sql`select value, value_sealed from setting_values where key = 'smtp.url'`
    expect(row?.value).toBeNull()
    expect(row?.value_sealed).not.toContain('s3cretive')
    const queued = await own.call('POST', '/system/settings/mail/test', {})
    expect(queued.status).toBe(202)
    const delivery = (await own.call('GET', `/notifications/deliveries`)).body.data.find(
      (each: Json) => each.id === queued.body.data.delivery_id,
    )
    expect([delivery.channel, delivery.target]).toEqual(['email', own.email])
    await root('DELETE', '/system/settings/smtp.url')
    expect(Object.keys((await own.call('POST', '/system/settings/mail/test', {})).body.errors)).toEqual(['smtp'])
  })

  test('[R-066] where the hub listens is shown to super administrators only', async () => {
    expect((await one('listen', root)).value).toBe('127.0.0.1:0')
    expect(await one('listen')).toMatchObject({ value: null, settable: false })
  })
})

describe('plans', () => {
  test('[RES-266] [RES-267] a plan with fewer days leaves a grace, and a smaller quota refuses nothing that exists', async () => {
    const tenant = await hub.tenant({}, { planCode: 'pro' })
    const retention = async () => (await tenant.call('GET', '/monitoring/settings')).body.data
    expect((await retention()).metrics_retention_effective_days).toBe(30)
    const { body } = await tenant.call('POST', '/monitoring/licenses', { name: 'key', max_uses: 20 })
    expect(body.data.status).toBe('active')
    const path = `/system/companies/${tenant.companyId}/plan`
    for (const [method, at] of [
      ['PUT', path],
      ['POST', '/system/plans'],
      ['PATCH', '/system/plans/pro'],
    ] as const)
      expect((await tenant.call(method, at, {})).status).toBe(403)
    const assigned = await root('PUT', path, { plan: 'free', expires_at: '2100-01-01T00:00:00Z' })
    expect(assigned.body.data).toMatchObject({
      company: { id: tenant.companyId, plan_code: 'free' },
      effective_plan: { code: 'free', agent_quota: 3, metrics_retention_days: 7 },
    })
    const after = await retention()
    const wanted = changeRetention(
      { effectiveDays: 30, previousDays: null, graceUntilMs: null, changedAtMs: null },
      7,
      Date.parse(after.metrics_retention_changed_at),
    )
    expect(after).toMatchObject({ metrics_retention_effective_days: 7, metrics_retention_previous_days: 30 })
    expect(Date.parse(after.metrics_retention_grace_until)).toBe(wanted.graceUntilMs ?? 0)
    const license = (await tenant.call('GET', `/monitoring/licenses/${body.data.id}`)).body.data
    expect([license.status, license.max_uses]).toEqual(['active', 20])
    const entry = (await tenant.call('GET', '/audit-log?action=company.plan')).body.data[0]
    expect(entry.changes.plan).toEqual({ old: 'pro', new: 'free' })
    expect(Object.keys((await root('PUT', path, { plan: 'none-such' })).body.errors)).toEqual(['plan'])
  })

  test('[RES-267] a change of a plan reaches the companies on it; its code stays', async () => {
    const made = await root('POST', '/system/plans', { code: 'trial', name: 'Trial', metrics_retention_days: 60 })
    expect([made.status, made.body.data.agent_quota]).toEqual([201, null])
    expect(Object.keys((await root('POST', '/system/plans', { code: 'trial', name: 'x' })).body.errors)).toEqual([
      'code',
    ])
    const tenant = await hub.tenant({}, { planCode: 'trial' })
    const changed = await root('PATCH', '/system/plans/trial', { metrics_retention_days: 10 })
    expect(changed.body.data).toMatchObject({ code: 'trial', name: 'Trial', metrics_retention_days: 10 })
    expect((await tenant.call('GET', '/monitoring/settings')).body.data).toMatchObject({
      metrics_retention_effective_days: 10,
      metrics_retention_previous_days: 60,
    })
    expect(Object.keys((await root('PATCH', '/system/plans/trial', { code: 'other' })).body.errors)).toEqual(['code'])
    expect((await root('PATCH', '/system/plans/nonsense', {})).status).toBe(404)
    const { data } = (await tenant.call('GET', '/system/plans')).body
    expect(data.map((plan: Json) => plan.code)).toContain('trial')
  })
})

describe('maintenance', () => {
  test('[check 16.35] [RES-266] [RES-268] nothing is changed by people; reading goes on, and collectors report', async () => {
    const collector = await hub.collector()
    expect((await own.call('PUT', '/system/maintenance', { mode: 'read_only' })).status).toBe(403)
    const until_ = new Date(Date.now() + 1_800_000).toISOString()
    const message = { en: 'Back at noon.', vi: 'Trở lại lúc trưa.' }
    const begun = await root('PUT', '/system/maintenance', { mode: 'read_only', message, until: until_ })
    expect(begun.body.data).toMatchObject({ mode: 'read_only', message, until: until_ })
    // Whose company it is may know who it was.
    const by = async (reader: Pick<Tenant, 'call'>) =>
      (await reader.call('GET', '/system/maintenance')).body.data.updated_by?.name ?? null
    expect([await by(own), await by(await hub.tenant())]).toEqual([begun.body.data.updated_by.name, null])
    try {
      const refused = await own.call('POST', '/servers', { name: 'web-1' }, { 'Accept-Language': 'vi' })
      expect([refused.status, refused.body.reason]).toEqual([503, 'maintenance_mode'])
      expect(refused.body.message).toContain('Trở lại lúc trưa.')
      const seconds = Number(refused.headers.get('retry-after'))
      expect(seconds).toBeGreaterThan(1700)
      expect(seconds).toBeLessThanOrEqual(1800)
      expect((await own.call('GET', '/servers')).body.data).toEqual([])
      const server = await root('POST', '/servers', { name: 'by-root' })
      expect(server.status).toBe(201)
      const atPeer = caller(peer.url, own.token)
      await until(
        'the other hub refuses too',
        async () => (await atPeer('POST', '/teams', { name: 'x' })).status === 503,
      )
      for (const form of ['/invitation', '/address']) {
        const posted = await fetch(`${hub.url}${form}`, { method: 'POST', body: new URLSearchParams({ token: 'x' }) })
        expect([form, posted.status]).toEqual([form, 503])
        expect(await posted.text()).toContain('Back at noon.')
      }
      const event = alertEvent(own, server.body.data.id, 'alert.opened')
      expect((await collector.call('POST', '/events', { events: [event] })).status).toBe(200)
      const alerts = (await own.call('GET', '/monitoring/alerts')).body.data
      expect(alerts.map((each: Json) => [each.server_id, each.state])).toEqual([[server.body.data.id, 'open']])
      expect((await collector.call('POST', '/heartbeat', { collector_id: collector.id })).status).toBe(200)
    } finally {
      await root('PUT', '/system/maintenance', { mode: 'off' })
    }
    expect((await own.call('POST', '/servers', { name: 'web-1' })).status).toBe(201)
    expect((await own.call('GET', '/system/maintenance')).body.data.mode).toBe('off')
    const past = await root('PUT', '/system/maintenance', { mode: 'read_only', until: '2020-01-01T00:00:00Z' })
    expect(Object.keys(past.body.errors)).toEqual(['until'])
  })

  test('[R-068] it ends by itself, and without an end a client comes again in a minute', async () => {
    await root('PUT', '/system/maintenance', { mode: 'read_only' })
    const refused = await own.call('POST', '/teams', { name: 'night' })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '60'])
    await sql`update maintenance set until = now() - interval '1 second'`
    await hub.hub.state.refresh()
    expect((await own.call('POST', '/teams', { name: 'night' })).status).toBe(201)
    expect((await own.call('GET', '/system/maintenance')).body.data.mode).toBe('off')
  })
})

test('[RES-269] how the hub is, is told to super administrators only', async () => {
  const { data } = (await own.call('GET', '/system/info')).body
  expect(data).toMatchObject({
    api: 'v1',
    database: null,
    migrations: null,
    collectors: null,
    queues: null,
    disk: null,
    clock: null,
    started_at: null,
  })
  const all = (await root('GET', '/system/info')).body.data
  expect(all.migrations.applied).toBe(all.migrations.known)
  expect(all.database.bytes).toBeGreaterThan(0)
  expect(Math.abs(all.clock.ahead_ms)).toBeLessThan(60_000)
  const { id } = await hub.collector()
  const heardOf = async (seconds: number): Promise<number> => {
    await sql`update monitoring_collectors set last_heartbeat_at = now() - ${`${seconds} s`}::interval where id = ${id}`
    return (await root('GET', '/system/info')).body.data.collectors.online
  }
  // As everywhere: 180 seconds (decision G-31).
  expect((await heardOf(175)) - (await heardOf(185))).toBe(1)
})
