import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { resumeChanges } from '../../apps/hub/security/exceptions/exception-findings.ts'
import { endExceptions } from '../../apps/hub/security/exceptions/exceptions.ts'
import { until } from '../support/until.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'
import { eventOf, newKey, resolvedPayload } from './security-event.ts'
import { finding, type SeededFinding, seedFindings, seedHost } from './security-rig.ts'

let hub: TestHub
let tenant: Tenant
let hostId: string
let manager: Awaited<ReturnType<TestHub['user']>>

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  hostId = await seedHost(hub, tenant.companyId)
  manager = await hub.user(tenant.companyId, ['security.view', 'security.manage'])
})
afterAll(() => hub.stop())

const DAY_MS = 86_400_000
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString()

async function seeded(count: number, more: Partial<SeededFinding> = {}): Promise<string[]> {
  const rows = Array.from({ length: count }, () => finding(tenant.companyId, hostId, more))
  await seedFindings(hub, rows)
  return rows.map(row => row.id)
}
const request = (body: Json, by: Pick<Tenant, 'call'> = tenant) => by.call('POST', '/security/exceptions', body)
const accepted = (ids: string[], more: Json = {}): Json => ({
  type: 'accepted',
  reason: 'behind a firewall',
  expires_at: inDays(30),
  finding_ids: ids,
  ...more,
})
const made = async (body: Json, by: Pick<Tenant, 'call'> = tenant): Promise<string> => {
  const answer = await request(body, by)
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
  return answer.body.data.id
}
const approve = (id: string, by: Pick<Tenant, 'call'> = manager) =>
  by.call('POST', `/security/exceptions/${id}/approve`)
const withdraw = (id: string) => manager.call('DELETE', `/security/exceptions/${id}`)
const show = async (id: string): Promise<Json> => (await tenant.call('GET', `/security/findings/${id}`)).body.data
const statusOf = async (id: string): Promise<string> => (await show(id)).status
const actions = async (): Promise<string[]> =>
  (await tenant.call('GET', '/audit-log')).body.data.map((entry: Json) => entry.action)

/** Lets the time of an exception be over. */
async function runOut(id: string): Promise<void> {
  await hub.hub.database
    .client`update security_exceptions set expires_at = now() - interval '1 second' where id = ${id}`
  await endExceptions(hub.hub)
}

describe('exceptions', () => {
  test('[SECU-007] [SECU-015] [SECU-016] what one person asks for another approves, and the findings take its status', async () => {
    const ids = await seeded(2)
    const { status, body } = await request(accepted(ids))
    expect([status, body.data]).toMatchObject([
      201,
      {
        company_id: tenant.companyId,
        type: 'accepted',
        status: 'pending',
        finding_count: 2,
        finding_ids: ids.toSorted(),
        requested_by: { id: tenant.userId },
        decided_by: null,
      },
    ])
    expect(await statusOf(ids[0]!)).toBe('open')
    const approved = await approve(body.data.id)
    expect([approved.status, approved.body.data]).toMatchObject([
      200,
      { status: 'approved', decided_by: { id: manager.userId } },
    ])
    for (const id of ids) expect(await show(id)).toMatchObject({ status: 'accepted', exception_id: body.data.id })
    expect((await tenant.call('GET', '/security/exceptions?status=approved')).body.data[0].id).toBe(body.data.id)
    expect((await actions()).slice(0, 2)).toEqual(['security.exception.approve', 'security.exception.request'])
    // A second decision is one too many.
    expect((await approve(body.data.id)).status).toBe(422)
    expect((await manager.call('POST', `/security/exceptions/${body.data.id}/reject`)).status).toBe(422)
  })

  test('[SECU-016] nobody approves a request of their own, and a rejected one changes nothing', async () => {
    const [id] = await seeded(1)
    const own = await made(accepted([id!]), manager)
    expect((await approve(own)).status).toBe(403)
    expect((await manager.call('GET', '/security/exceptions?status=pending')).body.data[0].id).toBe(own)
    const rejected = await tenant.call('POST', `/security/exceptions/${own}/reject`)
    expect([rejected.status, rejected.body.data.status]).toEqual([200, 'rejected'])
    expect(await statusOf(id!)).toBe('open')
    expect((await actions())[0]).toBe('security.exception.reject')
    expect((await approve(own, tenant)).status).toBe(422)
    expect((await withdraw(own)).status).toBe(422)
  })

  test('[SECU-015] [SECU-016] asking needs security.view, deciding security.manage, each alone', async () => {
    const [id] = await seeded(1)
    const viewer = await hub.user(tenant.companyId, ['security.view'])
    const manages = await hub.user(tenant.companyId, ['security.manage'])
    expect((await request(accepted([id!]), manages)).status).toBe(403)
    const asked = await made(accepted([id!]), viewer)
    for (const act of ['approve', 'reject'])
      expect((await viewer.call('POST', `/security/exceptions/${asked}/${act}`)).status).toBe(403)
    expect((await viewer.call('DELETE', `/security/exceptions/${asked}`)).status).toBe(403)
    expect((await approve(asked, manages)).status).toBe(200)
    const foreign = await hub.tenant()
    expect((await foreign.call('DELETE', `/security/exceptions/${asked}`)).status).toBe(404)
    expect((await foreign.call('POST', `/security/exceptions/${asked}/approve`)).status).toBe(404)
  })

  test.each([
    ['accepted without an end', { expires_at: undefined }, 'expires_at'],
    ['accepted for more than 365 days', { expires_at: inDays(366) }, 'expires_at'],
    ['an end in the past', { expires_at: inDays(-1) }, 'expires_at'],
    ['no reason', { reason: ' ' }, 'reason'],
    ['an unknown type', { type: 'ignored' }, 'type'],
    ['neither findings nor filter', { finding_ids: undefined }, 'finding_ids'],
    ['both', { filter: { kind: 'vulnerability' } }, 'finding_ids'],
    ['no findings', { finding_ids: [] }, 'finding_ids'],
    ['a filter that finds nothing', { finding_ids: undefined, filter: { vuln_id: 'CVE-0' } }, 'filter'],
    ['a filter with a wrong value', { finding_ids: undefined, filter: { status: 'gone' } }, 'filter.status'],
    ['an unknown finding', { finding_ids: [crypto.randomUUID()] }, 'finding_ids.0'],
  ])('[SECU-015] %s is refused', async (_name, more, field) => {
    const [id] = await seeded(1)
    const { status, body } = await request(accepted([id!], more))
    expect([status, Object.keys(body.errors)]).toEqual([422, [field]])
  })

  test('a finding of another company cannot be named, nor can one that is resolved', async () => {
    const foreign = await hub.tenant()
    const row = finding(foreign.companyId, await seedHost(hub, foreign.companyId))
    await seedFindings(hub, [row])
    expect((await request(accepted([row.id]))).body.errors).toHaveProperty(['finding_ids.0'])
    const [over] = await seeded(1, { status: 'resolved' })
    expect((await request(accepted([over!]))).status).toBe(422)
  })

  test('[SECU-015] a filter is resolved when the request is made: findings that come later are not covered', async () => {
    const vuln = `CVE-2024-${Math.floor(Math.random() * 1e9)}`
    const early = await seeded(20, { vuln_id: vuln })
    await seeded(1, { vuln_id: vuln, status: 'resolved' })
    const id = await made({ type: 'false_positive', reason: 'not built in', filter: { vuln_id: vuln } })
    const [late] = await seeded(1, { vuln_id: vuln })
    const { data } = (await approve(id)).body
    expect(data).toMatchObject({ finding_count: 20, expires_at: null, type: 'false_positive' })
    for (const each of early) expect(await statusOf(each)).toBe('false_positive')
    expect(await statusOf(late!)).toBe('open')
  })

  test('[SECU-016] an exception of a great many findings changes some at a time, and events of the others do not wait', async () => {
    const { call: matcher } = await hub.matcher()
    const host = { hostId, companyId: tenant.companyId, serverId: null, machineHash: '', ...newKey() }
    const vuln_id = `CVE-2024-${crypto.randomUUID()}`
    const rows = Array.from({ length: 2_500 }, () => finding(tenant.companyId, hostId, { vuln_id }))
    await seedFindings(hub, rows)
    const sorted = rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const id = await made({ type: 'false_positive', reason: 'not built in', filter: { vuln_id } })
    const exception = async (): Promise<Json> =>
      (await tenant.call('GET', '/security/exceptions')).body.data.find((each: Json) => each.id === id)
    const counted = async (status: string): Promise<number> =>
      (await tenant.call('GET', `/security/findings?vuln_id=${vuln_id}&status=${status}`)).body.meta.total
    await hub.hub.database.client.begin(async held => {
      // Somebody else holds a finding of the second thousand.
      await held`select 1 from security_findings where id = ${sorted[1_500]!.id} for update`
      expect((await approve(id)).body.data).toMatchObject({
        status: 'approved',
        finding_count: 2_500,
        changing: 'begin',
      })
      expect(await exception()).toMatchObject({ changing: 'begin', changed_count: 1_000 })
      expect(await counted('false_positive')).toBe(1_000)
      const late = sorted[2_400]!
      // Resolved now: what was resolved long ago the hub forgets.
      const resolved = resolvedPayload(late.finding_key, { resolved_at: new Date().toISOString() })
      const { status, body } = await matcher('POST', '/events', {
        events: [eventOf(host, 'finding.resolved', resolved)],
      })
      expect([status, body.data.rejected]).toEqual([200, []])
      expect(await statusOf(late.id)).toBe('resolved')
    })
    await until('all of them', async () => (await exception()).changing === null)
    expect(await exception()).toMatchObject({ changed_count: 2_500 })
    expect([await counted('false_positive'), await counted('resolved'), await counted('open')]).toEqual([2_499, 1, 0])
    expect((await withdraw(id)).status).toBe(204)
    await until('all of them', async () => (await exception()).changing === null)
    expect([await counted('false_positive'), await counted('resolved'), await counted('open')]).toEqual([0, 1, 2_499])
  })

  test('[SECU-016] one that is withdrawn while it begins is taken back, and a job that was lost is made up for', async () => {
    const vuln_id = `CVE-2024-${crypto.randomUUID()}`
    const ids = (await seeded(1_500, { vuln_id })).toSorted()
    const id = await made({ type: 'false_positive', reason: 'not built in', filter: { vuln_id } })
    let withdrawn: ReturnType<typeof withdraw> | null = null
    await hub.hub.database.client.begin(async held => {
      await held`select 1 from security_findings where id = ${ids[1_200]!} for update`
      await approve(id)
      withdrawn = withdraw(id)
    })
    expect(await withdrawn).toMatchObject({ status: 204 })
    const changing = async (): Promise<Json> =>
      (await tenant.call('GET', '/security/exceptions')).body.data.find((each: Json) => each.id === id).changing
    await until('all of them', async () => (await changing()) === null)
    for (const each of [ids[0]!, ids[999]!, ids[1_499]!]) expect(await statusOf(each)).toBe('open')
    await hub.hub.database.client`update security_exceptions set changing = 'end', changed_to = null where id = ${id}`
    await resumeChanges(hub.hub)
    await until('all of them', async () => (await changing()) === null)
  })

  test('an approval keeps the status that a later one gave', async () => {
    const [id] = await seeded(1)
    const late = await made({ type: 'false_positive', reason: 'misread', finding_ids: [id] })
    const early = await made(accepted([id!]))
    await approve(late)
    await approve(early)
    expect(await statusOf(id!)).toBe('accepted')
    // As if the findings of the first were only come to now.
    await hub.hub.database
      .client`update security_exceptions set changing = 'begin', changed_to = null where id = ${late}`
    await resumeChanges(hub.hub)
    await until('the change', async () => {
      const { data } = (await tenant.call('GET', '/security/exceptions')).body
      return data.find((each: Json) => each.id === late).changing === null
    })
    expect(await show(id!)).toMatchObject({ status: 'accepted', exception_id: early })
  })

  test('[SECU-016] withdrawn and expired exceptions give their findings back to open; resolved ones stay resolved', async () => {
    const ids = await seeded(3)
    const first = await made(accepted(ids))
    await approve(first)
    await hub.hub.database.client`update security_findings set status = 'resolved' where id = ${ids[2]!}`
    expect((await withdraw(first)).status).toBe(204)
    expect(await Promise.all(ids.map(statusOf))).toEqual(['open', 'open', 'resolved'])
    expect((await show(ids[0]!)).exception_id).toBeNull()
    expect((await actions())[0]).toBe('security.exception.withdraw')
    expect((await withdraw(first)).status).toBe(422)
    const second = await made(accepted(ids.slice(0, 2)))
    await approve(second)
    await runOut(second)
    expect(await Promise.all(ids.map(statusOf))).toEqual(['open', 'open', 'resolved'])
    const { data } = (await tenant.call('GET', '/security/exceptions?status=expired')).body
    expect(data[0]).toMatchObject({ id: second, status: 'expired' })
    expect(data[0].ended_at).not.toBeNull()
  })

  test('[SECU-016] the hub ends an exception by itself soon after its day', async () => {
    const [id] = await seeded(1)
    const short = await made(accepted([id!]))
    await approve(short)
    await hub.hub.database.client`update security_exceptions set expires_at = now() where id = ${short}`
    await until('the end of the exception', async () => (await statusOf(id!)) === 'open')
    expect((await tenant.call('GET', '/security/exceptions?status=expired')).body.data[0].id).toBe(short)
  })

  test('a pending request whose end has passed cannot be approved, and one can be withdrawn before', async () => {
    const [id] = await seeded(1)
    const pending = await made(accepted([id!]))
    expect((await withdraw(pending)).status).toBe(204)
    const late = await made(accepted([id!]))
    await hub.hub.database
      .client`update security_exceptions set expires_at = now() - interval '1 second' where id = ${late}`
    expect((await approve(late)).status).toBe(422)
    await endExceptions(hub.hub)
    expect((await tenant.call('GET', '/security/exceptions?status=expired')).body.data[0].id).toBe(late)
    expect(await statusOf(id!)).toBe('open')
  })

  test('a finding under two exceptions falls back to the one that still runs', async () => {
    const [id] = await seeded(1)
    const long = await made(accepted([id!]))
    await approve(long)
    const short = await made({ type: 'false_positive', reason: 'misread', finding_ids: [id] })
    await approve(short)
    expect(await statusOf(id!)).toBe('false_positive')
    await withdraw(short)
    expect(await show(id!)).toMatchObject({ status: 'accepted', exception_id: long })
    await runOut(long)
    expect(await show(id!)).toMatchObject({ status: 'open', exception_id: null })
  })
})
