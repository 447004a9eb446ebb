import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cleanUp } from '../../apps/hub/clean-up.ts'
import { changeParent, changePlan, deleteCompany, purgeCompany } from '../../apps/hub/companies/companies.ts'
import { endLicenseMigrations } from '../../apps/hub/licenses/license-migrations.ts'
import { inTransaction, type Tx } from '../../apps/hub/platform/db/transaction.ts'
import { applyExpiredPlans } from '../../apps/hub/schedule.ts'
import { AdminListener } from './admin-listener.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

let hub: TestHub
let admin: AdminListener
let collector: Awaited<ReturnType<TestHub['collector']>>

beforeAll(async () => {
  hub = await TestHub.start({ 'events.retention_days': undefined })
  admin = new AdminListener()
  collector = await hub.collector(admin.url)
})
afterAll(async () => {
  await admin.stop()
  await hub.stop()
})

const tx = <T>(work: (tx: Tx) => Promise<T>): Promise<T> => inTransaction(hub.hub.database.db, work)
const sql = (strings: TemplateStringsArray, ...values: string[]) => hub.hub.database.client(strings, ...values)
const settings = async (by: Tenant): Promise<Json> => (await by.call('GET', '/monitoring/settings')).body.data
const served = async (by: Tenant): Promise<Json> => (await collector.call('GET', `/settings/${by.companyId}`)).body.data
const limited = (days: number | null) => hub.tenant({ agent_quota: null, metrics_retention_days: days })
const setDays = (by: Tenant, days: number | null) =>
  tx(at => changePlan(hub.hub, at, by.companyId, { overrides: { metrics_retention_days: days } }))
const daysLeft = (text: string) => (Date.parse(text) - Date.now()) / 86_400_000

describe('settings', () => {
  test('[HST-001] [HST-002] [HST-003] [HST-007] [HST-008] one row a company, with its defaults', async () => {
    const own = await limited(30)
    expect(await settings(own)).toEqual({
      company_id: own.companyId,
      default_interval: 30,
      auto_create_server: false,
      group_down_min: null,
      group_down_ratio: null,
      group_down_window_seconds: null,
      retention_note: null,
      alert_event_retention_days: 90,
      metrics_retention_effective_days: 30,
      metrics_retention_previous_days: null,
      metrics_retention_grace_until: null,
      metrics_retention_changed_at: null,
    })
    expect(await sql`select company_id from monitoring_settings where company_id = ${own.companyId}`).toHaveLength(1)
  })

  test('[HST-004] [HST-018] a change is stored, audited and told to the collector; reading needs less than writing', async () => {
    const own = await hub.tenant()
    const told = admin.count('POST', '/reload/settings')
    const change = {
      default_interval: 60,
      auto_create_server: true,
      group_down_ratio: 1,
      retention_note: 'keep',
      alert_event_retention_days: 7,
    }
    const { status, body } = await own.call('PATCH', '/monitoring/settings', change)
    expect([status, body.data]).toEqual([200, { ...(await settings(own)), ...change }])
    await until('the reload is called', async () => admin.count('POST', '/reload/settings') > told)
    const [entry] = (await own.call('GET', '/audit-log?action=settings.update')).body.data
    for (const subject of [entry.subject.type, entry.subject.id])
      expect((await own.call('GET', `/audit-log?subject=${subject}`)).body.data).toContainEqual(entry)
    expect(entry.changes.default_interval).toEqual({ old: 30, new: 60 })
    const viewer = await hub.user(own.companyId, ['monitoring.view'])
    expect((await viewer.call('GET', '/monitoring/settings')).status).toBe(200)
    expect((await viewer.call('PATCH', '/monitoring/settings', {})).status).toBe(403)
    for (const bad of [
      { default_interval: 9 },
      { default_interval: 301 },
      { retention_note: 'x'.repeat(1001) },
      { alert_event_retention_days: 0 },
    ])
      expect((await own.call('PATCH', '/monitoring/settings', bad)).status).toBe(422)
  })

  test('[HAG-013] [COL-013] a change of default_interval makes the records of the agents newer', async () => {
    const own = await hub.tenant()
    const server = (await own.call('POST', '/servers', { name: 'x', hostname: 'x' })).body.data
    const { token } = (await own.call('POST', '/monitoring/licenses', { name: 'x' })).body
    const { data } = (await collector.call('POST', '/enroll', { license: token, hostname: 'x', machine_id: 'x' })).body
    const record = async () => (await collector.call('GET', `/agents/lookup?agent_id=${data.agent_id}`)).body.data.agent
    const before = await record()
    await own.call('PATCH', '/monitoring/settings', { default_interval: 120 })
    const after = await record()
    expect([after.server_id, after.interval_seconds, after.version]).toEqual([server.id, 120, before.version + 1])
    expect(after.sync_version).toBeGreaterThan(before.sync_version)
  })
})

describe('retention', () => {
  test('[HST-009] [HST-012] [HST-017] [HST-019] [HST-023] [COL-071] [COL-072] a smaller plan starts a grace of 30 days', async () => {
    const own = await limited(90)
    const told = admin.count('POST', '/reload/settings')
    await setDays(own, 30)
    const after = await served(own)
    expect(after).toMatchObject({ metrics_retention_days: 30, metrics_retention_previous_days: 90 })
    expect(daysLeft(after.metrics_retention_grace_until)).toBeWithin(29.9, 30.01)
    expect(Math.abs(Date.parse((await settings(own)).metrics_retention_changed_at) - Date.now())).toBeLessThan(60_000)
    await until('the reload is called', async () => admin.count('POST', '/reload/settings') > told)
  })

  test('[HST-010] [HST-014] [COL-070] from unlimited the earlier value is null with a grace; back to unlimited ends it', async () => {
    const own = await limited(null)
    await setDays(own, 30)
    expect(await served(own)).toMatchObject({
      metrics_retention_days: 30,
      metrics_retention_previous_days: null,
      metrics_retention_grace_until: expect.any(String),
    })
    await setDays(own, null)
    expect(await served(own)).toMatchObject({ metrics_retention_days: null, metrics_retention_grace_until: null })
  })

  test('[HST-020] the end of a plan counts as a change', async () => {
    const own = await hub.tenant({}, { planCode: 'team' })
    expect((await served(own)).metrics_retention_days).toBe(180)
    await sql`update companies set plan_expires_at = now() - interval '1 minute' where id = ${own.companyId}`
    await applyExpiredPlans(hub.hub)
    expect(await served(own)).toMatchObject({ metrics_retention_days: 7, metrics_retention_previous_days: 180 })
  })

  test("[HST-021] [HST-008] a company without a plan has its parent's, and another parent counts as a change", async () => {
    const [rich, poor] = [await hub.tenant({}, { planCode: 'business' }), await hub.tenant({}, { planCode: 'pro' })]
    const child = await hub.tenant({}, { parentId: rich.companyId })
    expect((await served(child)).metrics_retention_days).toBe(365)
    await tx(at => changeParent(hub.hub, at, child.companyId, poor.companyId))
    expect(await served(child)).toMatchObject({ metrics_retention_days: 30, metrics_retention_previous_days: 365 })
    await tx(at => changePlan(hub.hub, at, poor.companyId, { planCode: 'expert' }))
    expect((await served(child)).metrics_retention_days).toBe(90)
  })

  test('[HST-022] a change of plan that leaves the retention equal changes nothing', async () => {
    const own = await limited(30)
    await tx(at => changePlan(hub.hub, at, own.companyId, { planCode: 'pro' }))
    expect(await settings(own)).toMatchObject({
      metrics_retention_effective_days: 30,
      metrics_retention_changed_at: null,
    })
  })

  test('[COL-071] a grace that is over is not served, and cleaned away', async () => {
    const own = await limited(90)
    await setDays(own, 30)
    await sql`update monitoring_settings set metrics_retention_grace_until = now() - interval '1 second' where company_id = ${own.companyId}`
    expect(await served(own)).toMatchObject({
      metrics_retention_previous_days: null,
      metrics_retention_grace_until: null,
    })
    await cleanUp(hub.hub)
    const [row] =
      await sql`select metrics_retention_previous_days as days from monitoring_settings where company_id = ${own.companyId}`
    expect(row?.days).toBeNull()
  })
})

describe('by the clock', () => {
  const event = (by: Tenant, server_id: string, type: string, seq: number, daysAgo: number): Json => ({
    event_id: crypto.randomUUID(),
    type,
    seq,
    occurred_at: new Date(Date.now() - daysAgo * 86_400_000).toISOString(),
    company_id: by.companyId,
    server_id,
    rule_id: '11111111-1111-4111-8111-111111111111',
    rule_version: 1,
    series_key: `disk_used_percent{mount="/${seq % 2}"}`,
    severity: 'info',
    value: 1,
    threshold: 0,
    suppressed: false,
    labels: {},
    reason: 'recovered',
  })

  test('[HAL-007] old events of alerts that are over are deleted, those of active alerts stay', async () => {
    const own = await hub.tenant()
    await own.call('PATCH', '/monitoring/settings', { alert_event_retention_days: 10 })
    const server = (await own.call('POST', '/servers', { name: 'x' })).body.data.id
    await collector.call('POST', '/events', {
      events: [
        event(own, server, 'alert.opened', 2, 30),
        event(own, server, 'alert.resolved', 4, 5),
        event(own, server, 'alert.opened', 3, 30),
      ],
    })
    await cleanUp(hub.hub)
    const [over, active] = await Promise.all(
      ['resolved', 'open'].map(async state => {
        const [alert] = (await own.call('GET', `/monitoring/alerts?state=${state}`)).body.data
        return (await own.call('GET', `/monitoring/alerts/${alert.id}/events`)).body.data.map((item: Json) => item.type)
      }),
    )
    expect([over, active]).toEqual([['alert.resolved'], ['alert.opened']])
  })

  test('[LIC-048] [LIC-049] agents on a regenerated license are revoked after migrate_until, and their data purged', async () => {
    const own = await hub.tenant()
    const { token, data } = (await own.call('POST', '/monitoring/licenses', { name: 'x', max_uses: 5 })).body
    const enroll = async (name: string) => {
      await own.call('POST', '/servers', { name, hostname: name })
      return (await collector.call('POST', '/enroll', { license: token, hostname: name, machine_id: name })).body.data
    }
    const [moved, left, spared] = [await enroll('moved'), await enroll('left'), await enroll('spared')]
    await own.call('POST', `/monitoring/licenses/${data.id}/regenerate`)
    const hash = (await sql`select token_hash from monitoring_agents where id = ${moved.agent_id}`)[0]?.token_hash
    await collector.call('POST', `/agents/${moved.agent_id}/renew`, { token_hash: hash })
    const state = async (id: string) => (await own.call('GET', `/monitoring/agents/${id}`)).body.data
    await endLicenseMigrations(hub.hub)
    expect((await state(left.agent_id)).state).toBe('active')
    await sql`update monitoring_agents set rotation_failed_at = now() where id = ${spared.agent_id}`
    await sql`update monitoring_licenses set migrate_until = now() - interval '1 second' where id = ${data.id}`
    await endLicenseMigrations(hub.hub)
    expect(await state(left.agent_id)).toMatchObject({ state: 'revoked', revoked_reason: 'license_superseded' })
    expect([(await state(moved.agent_id)).state, (await state(spared.agent_id)).state]).toEqual(['active', 'active'])
    await until('the data are purged', async () => admin.count('DELETE', `/servers/${left.server_id}/data`) > 0)
    expect(admin.count('DELETE', `/servers/${moved.server_id}/data`)).toBe(0)
  })
})

describe('the end of a company', () => {
  test('[PUR-016] [COL-028] [COL-042] a purge deletes the records of it and its children and purges each once at the collector', async () => {
    const parent = await hub.tenant()
    const child = await hub.tenant(undefined, { parentId: parent.companyId })
    const server = (await child.call('POST', '/servers', { name: 'x' })).body.data.id
    const feed = async (since: number) => (await collector.call('GET', `/rules?since=${since}&limit=500`)).body.data
    let since = 0
    for (let page = await feed(0); ; page = await feed(since)) {
      since = page.next_since
      if (!page.more) break
    }
    await tx(at => purgeCompany(hub.hub, at, parent.companyId))
    expect((await parent.call('GET', '/me')).status).toBe(401)
    const gone = (await feed(since)).rules
    expect(new Set(gone.map((item: Json) => item.company_id))).toEqual(new Set([parent.companyId, child.companyId]))
    expect(gone.every((item: Json) => item.deleted && !item.enabled)).toBe(true)
    for (const { companyId } of [parent, child])
      await until('the purge is called', async () => admin.count('DELETE', `/companies/${companyId}/data`) === 1)
    const { rejected } = (
      await collector.call('POST', '/events', {
        events: [
          {
            event_id: crypto.randomUUID(),
            type: 'alert.opened',
            seq: 1,
            occurred_at: new Date().toISOString(),
            company_id: child.companyId,
            server_id: server,
            rule_id: crypto.randomUUID(),
            rule_version: 1,
            series_key: 'x',
            severity: 'info',
            value: 1,
            threshold: 1,
            labels: {},
          },
        ],
      })
    ).body.data
    expect(rejected[0].reason).toBe('unknown_server')
  })

  test('a soft delete stops tokens and agents and calls no purge', async () => {
    const own = await hub.tenant()
    await own.call('POST', '/servers', { name: 'x', hostname: 'soft' })
    const { token } = (await own.call('POST', '/monitoring/licenses', { name: 'x', max_uses: 9 })).body
    const { data } = (await collector.call('POST', '/enroll', { license: token, hostname: 'soft', machine_id: 'soft' }))
      .body
    await tx(at => deleteCompany(hub.hub, at, own.companyId))
    expect((await own.call('GET', '/me')).status).toBe(401)
    expect((await collector.call('GET', `/agents/lookup?agent_id=${data.agent_id}`)).body.data.agent.state).toBe(
      'revoked',
    )
    const again = await collector.call('POST', '/enroll', { license: token, hostname: 'soft', machine_id: 'soft' })
    expect(again.body.error.code).toBe('invalid_token')
    await until('the agent is revoked there', async () => admin.count('DELETE', `/agents/${data.agent_id}`) > 0)
    expect(admin.count('DELETE', `/companies/${own.companyId}/data`)).toBe(0)
  })
})
