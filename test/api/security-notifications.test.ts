// What people and webhooks are told of security, and when.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { endExceptions } from '../../apps/hub/security/exceptions/exceptions.ts'
import { forgetOldFindings } from '../../apps/hub/security/finding-retention.ts'
import { noteDigests } from '../../apps/hub/security/notices/digest.ts'
import { watchSecurity } from '../../apps/hub/security/notices/due-notices.ts'
import { tellSecurityNotices } from '../../apps/hub/security/notices/tell-notices.ts'
import { securityEventTypes } from '../../core/lifecycle/security-event-severity.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'
import { finding, seedFindings, seedHost } from './security-rig.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const hooks: Json[] = []
const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    hooks.push(await request.json())
    return new Response()
  },
})
let hub: TestHub
let owner: Tenant
let hostId: string
let serverId: string

beforeAll(async () => {
  hub = await TestHub.start({ 'webhooks.allow_private': true, public_url: 'https://hub.example.test' })
  await hub.holdTask('security_watch')
})
afterAll(async () => {
  await receiver.stop(true)
  await hub.stop()
})
beforeEach(async () => {
  hooks.length = 0
  owner = await hub.tenant()
  serverId = (await owner.call('POST', '/servers', { name: 'web-1' })).body.data.id
  hostId = await seedHost(hub, owner.companyId, serverId, { lastReportAt: new Date() })
})

const webhook = (more: Json = {}) =>
  owner.call('POST', '/webhooks', { name: 'hook', url: `http://127.0.0.1:${receiver.port}/`, ...more })
const seed = async (more: Json = {}) => {
  const row = finding(owner.companyId, hostId, { server_id: serverId, priority: 'p1', risk: 95, ...more })
  await seedFindings(hub, [row])
  return row
}
const tell = async () => {
  // Clock and test may both tell: whoever is first takes a notice.
  await tellSecurityNotices(hub.hub)
  await until('no notice waits', async () => {
    const rows = await client()`select 1 from security_notices where company_id = ${owner.companyId}`
    return rows.length === 0
  })
}
const bells = async (by: Pick<Tenant, 'call'> = owner): Promise<Json[]> =>
  (await by.call('GET', '/notifications')).body.data.toReversed()
const told = async (by: Pick<Tenant, 'call'> = owner): Promise<string[]> => (await bells(by)).map(bell => bell.type)
const hooked = (count: number): Promise<Json[]> =>
  until(`${count} webhooks came`, async () => (hooks.length >= count ? [...hooks] : null))
const client = () => hub.hub.database.client
const at = (nowMs: number) => ({ ...hub.hub, now: () => nowMs })

describe('what is told', () => {
  test('[NTF-011] [NTF-025] [NTF-026] a finding that is p1 is told once, with what names it and nothing else', async () => {
    await webhook({ events: ['security.finding.p1_opened'] })
    const row = await seed({ vuln_id: 'CVE-2024-7', fixed_version: '3.1' })
    await seed({ priority: 'p2', vuln_id: 'CVE-2024-8' })
    await tell()
    expect(await bells()).toMatchObject([
      {
        type: 'security.finding.p1_opened',
        title: '[P1] CVE-2024-7 on web-1',
        link: `/security/findings/${row.id}`,
      },
    ])
    const [sent] = await hooked(1)
    expect(sent).toMatchObject({ type: 'security.finding.p1_opened', company_id: owner.companyId })
    expect(sent.data).toEqual({
      finding: {
        id: row.id,
        server: { id: serverId, name: 'web-1' },
        vuln_id: 'CVE-2024-7',
        priority: 'p1',
        risk: 95,
        fixed_version: '3.1',
        link: `https://hub.example.test/security/findings/${row.id}`,
      },
    })
    await tell()
    expect(await told()).toHaveLength(1)
  })

  test('[NTF-011] it is told again when it reopens or becomes p1, and not when it changes otherwise', async () => {
    const row = await seed()
    await tell()
    await client()`update security_findings set last_seen_at = now(), fixed_version = '9' where id = ${row.id}`
    await tell()
    expect(await told()).toHaveLength(1)
    await client()`update security_findings set status = 'resolved' where id = ${row.id}`
    await client()`update security_findings set status = 'open' where id = ${row.id}`
    await tell()
    expect(await told()).toHaveLength(2)
    await client()`update security_findings set priority = 'p2' where id = ${row.id}`
    await client()`update security_findings set priority = 'p1' where id = ${row.id}`
    await tell()
    expect(await told()).toHaveLength(3)
  })

  test('[NTF-011] a fleet that is scanned for the first time is one message, not a flood', async () => {
    await webhook()
    const rows = Array.from({ length: 140 }, (_, index) =>
      finding(owner.companyId, hostId, {
        server_id: serverId,
        priority: 'p1',
        risk: 91,
        vuln_id: `CVE-2024-${String(index).padStart(4, '0')}`,
      }),
    )
    await seedFindings(hub, rows)
    await tell()
    const [bell, ...more] = await bells()
    expect(more).toEqual([])
    expect(bell.title).toBe('[P1] CVE-2024-0000, CVE-2024-0001, CVE-2024-0002 +137 on web-1')
    const sent = await hooked(101)
    expect(sent.filter(({ data }) => data.finding).length).toBe(100)
    expect(sent.filter(({ data }) => data.further_findings === 40)).toHaveLength(1)
  })

  test('[NTF-021] [NTF-022] [NTF-026] found secrets and personal data are told to those only who may see them, without a value', async () => {
    await webhook()
    const viewer = await hub.user(owner.companyId, ['security.view', 'notifications.view'])
    const secrets = await hub.user(owner.companyId, ['security.secrets.view'])
    const personal = await hub.user(owner.companyId, ['security.pii.view'])
    await seed({ kind: 'secret', vuln_id: 'aws-key', package_key: '/srv/app/.env', fixed_version: 'AKIA-SECRET' })
    await seed({ kind: 'sensitive_data', vuln_id: 'iban', package_key: '/srv/customers.csv', fixed_version: 'DE89' })
    await tell()
    expect(await told(viewer)).toEqual([])
    expect(await told(secrets)).toEqual(['security.secret.high_opened'])
    expect(await told(personal)).toEqual(['security.pii.bulk_found'])
    const text = JSON.stringify([await hooked(2), await bells(secrets), await bells(personal)])
    for (const hidden of ['/srv', 'AKIA', 'DE89', 'customers']) expect(text).not.toContain(hidden)
    expect(text).toContain('"detector_id":"aws-key"')
  })

  test('[NTF-013] [NTF-014] a term is told when a quarter of it is left, and when it is over, each once', async () => {
    const day = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString()
    const soon = await seed({ priority: 'p3', first_seen_at: day(-76), sla_due_at: day(14) })
    await seed({ priority: 'p3', first_seen_at: day(-60), sla_due_at: day(30) })
    await seed({ priority: 'p3', status: 'accepted', first_seen_at: day(-100), sla_due_at: day(-10) })
    // The overview says of a finding what people are told of it.
    const counted = async () => (await owner.call('GET', '/security/overview')).body.data.sla
    expect(await counted()).toEqual({ overdue: 0, due_soon: 1 })
    for (let round = 0; round < 2; round++) {
      await watchSecurity(hub.hub)
      await tell()
      expect(await told()).toEqual(['security.sla.due_soon'])
    }
    await client()`update security_findings set sla_due_at = now() - interval '1 hour' where id = ${soon.id}`
    for (let round = 0; round < 2; round++) {
      await watchSecurity(hub.hub)
      await tell()
      expect(await told()).toEqual(['security.sla.due_soon', 'security.sla.overdue'])
    }
    expect(await counted()).toEqual({ overdue: 1, due_soon: 0 })
    const all = (['p1', 'p2', 'p3', 'p4'] as const).flatMap((priority, index) => {
      const quarter = [7, 30, 90, 180][index]! / 4
      return [quarter - 0.1, quarter + 0.1].map(left => ({ priority, sla_due_at: day(left) }))
    })
    for (const each of all) await seed(each)
    expect(await counted()).toEqual({ overdue: 1, due_soon: 4 })
  })

  test('[NTF-015] [NTF-016] [NTF-017] [NTF-018] exceptions are told when they are asked for, decided, near their end and over', async () => {
    await webhook({ events: securityEventTypes.filter(type => type.startsWith('security.exception.')) })
    const row = await seed({ priority: 'p4' })
    const manager = await hub.user(owner.companyId, ['security.view', 'security.manage'])
    const expires_at = new Date(Date.now() + 3 * DAY_MS).toISOString()
    const asked = { type: 'accepted', reason: 'behind a firewall', expires_at, finding_ids: [row.id] }
    const { id } = (await owner.call('POST', '/security/exceptions', asked)).body.data
    await tell()
    await manager.call('POST', `/security/exceptions/${id}/approve`)
    await tell()
    for (let round = 0; round < 2; round++) await watchSecurity(hub.hub)
    await tell()
    await client()`update security_exceptions set expires_at = now() - interval '1 second' where id = ${id}`
    await endExceptions(hub.hub)
    await tell()
    expect(await told()).toEqual([
      'security.exception.requested',
      'security.exception.decided',
      'security.exception.expiring',
      'security.exception.expired',
    ])
    const sent = await hooked(4)
    expect(sent.map(({ data }) => data.exception.id)).toEqual([id, id, id, id])
  })

  test('[NTF-019] [NTF-024] a scan host that has not reported for 48 hours is told once, until its next report', async () => {
    await client()`update scan_hosts set last_report_at = now() - interval '47 hours' where host_id = ${hostId}`
    await watchSecurity(hub.hub)
    await tell()
    expect(await told()).toEqual([])
    await client()`update scan_hosts set last_report_at = now() - interval '49 hours' where host_id = ${hostId}`
    const revoked = await seedHost(hub, owner.companyId, null, { lastReportAt: new Date(0) })
    await client()`update scan_hosts set state = 'revoked' where host_id = ${revoked}`
    for (let round = 0; round < 2; round++) {
      await watchSecurity(hub.hub)
      await tell()
      expect((await bells()).map(bell => [bell.type, bell.title])).toEqual([
        ['security.server.scan_stale', 'No scan of web-1 for two days'],
      ])
    }
    // It reports again, and falls silent again.
    await client()`update scan_hosts set last_report_at = now(), stale_told_at = now() - interval '100 hours' where host_id = ${hostId}`
    await client()`update scan_hosts set last_report_at = now() - interval '50 hours' where host_id = ${hostId}`
    await watchSecurity(hub.hub)
    await tell()
    expect(await told()).toHaveLength(2)
  })

  test('[NTF-012] the digest comes at 08:00 of the time zone of the company, once a day', async () => {
    await owner.call('PUT', '/security/settings', { time_zone: 'Asia/Ho_Chi_Minh' })
    await seed({ priority: 'p2' })
    const midnight = Date.UTC(2031, 0, 10)
    // 08:00 there is 01:00 UTC. The first look only begins the days.
    await noteDigests(at(midnight - 3 * HOUR_MS))
    await noteDigests(at(midnight + 0.9 * HOUR_MS))
    await tell()
    expect(await told()).toEqual([])
    for (const hours of [1.1, 2, 9]) await noteDigests(at(midnight + hours * HOUR_MS))
    await tell()
    expect((await bells()).map(bell => [bell.type, bell.title])).toEqual([
      ['security.digest.daily', 'Security today: 1 open finding, 0 of priority p1'],
    ])
    await noteDigests(at(midnight + 25.1 * HOUR_MS))
    await tell()
    expect(await told()).toHaveLength(2)
  })

  test('[NTF-020] a vulnerability database of more than a week ago is told once', async () => {
    const userId = randomUUID()
    await client()`insert into users (id, kind, email, name) values (${userId}, 'matcher', ${userId}, 'matcher')`
    const beat = (version: number) => client()`
      insert into security_matchers (user_id, version, db_version, queue_depth, last_heartbeat_at)
      values (${userId}, '1', ${version}, 0, now() + interval '1 minute')
      on conflict (user_id) do update set db_version = excluded.db_version`
    await beat(2024010100)
    for (let round = 0; round < 2; round++) {
      await watchSecurity(hub.hub)
      await tell()
      expect(await told()).toEqual(['security.db.stale'])
    }
    await beat(Number(`${new Date().toISOString().slice(0, 10).replaceAll('-', '')}01`))
    await watchSecurity(hub.hub)
    await beat(2024010100)
    await watchSecurity(hub.hub)
    await tell()
    expect(await told()).toHaveLength(2)
    await client()`delete from users where id = ${userId}`
  })

  test('[NTF-023] a change of what contents are scanned is told', async () => {
    await owner.call('PUT', '/security/content-scan-settings', { enabled: true })
    await tell()
    expect(await told()).toEqual(['security.content.scope_changed'])
  })
})

test('[NTF-011] [NTF-012] [NTF-013] [NTF-014] [NTF-015] [NTF-016] [NTF-017] [NTF-018] [NTF-019] [NTF-020] [NTF-021] [NTF-022] [NTF-023] each of the thirteen has texts in both languages, can be replaced, previewed and asked for', async () => {
  const { data } = (await owner.call('GET', '/notifications/templates')).body
  for (const type of securityEventTypes) {
    const texts = data.filter((row: Json) => row.template === type)
    expect([type, texts.map((row: Json) => row.language)]).toEqual([type, ['en', 'vi']])
    const [en, vi] = texts
    expect(en.title).not.toBe(vi.title)
    for (const { title, body, language } of texts) {
      const preview = await owner.call('POST', `/notifications/templates/${type}/preview`, { language, title, body })
      expect(JSON.stringify(preview.body.data)).not.toMatch(/\{\w+\}/)
    }
  }
  const own = { language: 'en', title: 'Look: {vuln_id}', body: '{count} {unknown}' }
  await owner.call('PUT', '/notifications/templates/security.finding.p1_opened', own)
  await seed({ vuln_id: 'CVE-2024-9' })
  await tell()
  expect((await bells())[0]).toMatchObject({ title: 'Look: CVE-2024-9', body: '1 {unknown}' })
  const { body } = await owner.call('GET', '/webhooks/events')
  expect(body.data).toEqual(expect.arrayContaining([...securityEventTypes]))
})

test('[SECU-040] events and resolved findings are kept for the history of the plan, open ones for ever', async () => {
  const free = await hub.tenant(undefined, { planCode: 'free' })
  const endless = await hub.tenant(undefined, { planCode: 'dedicated' })
  const old = new Date(Date.now() - 31 * DAY_MS).toISOString()
  const kept: Record<string, string[]> = {}
  for (const { companyId } of [free, endless]) {
    const host = await seedHost(hub, companyId)
    const rows = [
      finding(companyId, host, { first_seen_at: old }),
      finding(companyId, host, { status: 'resolved', resolved_at: old }),
      finding(companyId, host, { status: 'resolved', resolved_at: new Date().toISOString() }),
    ]
    kept[companyId] = rows.map(row => row.id)
    await seedFindings(hub, rows)
    for (const received of [old, new Date().toISOString()])
      await client()`insert into security_finding_events (event_id, company_id, host_id, seq, type, occurred_at, payload, received_at)
        values (${randomUUID()}, ${companyId}, ${host}, 1, 'server.scanned', ${received}, '{}', ${received})`
  }
  await forgetOldFindings(hub.hub)
  const left = async (companyId: string) => {
    const events = await client()`select 1 from security_finding_events where company_id = ${companyId}`
    const findings = await client()<{ id: string }[]>`select id from security_findings where company_id = ${companyId}`
    return [events.length, findings.map(row => row.id).sort()]
  }
  const [open, , fresh] = kept[free.companyId]!
  expect(await left(free.companyId)).toEqual([1, [open!, fresh!].sort()])
  expect(await left(endless.companyId)).toEqual([2, kept[endless.companyId]!.toSorted()])
})
