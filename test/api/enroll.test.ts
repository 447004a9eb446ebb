import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cleanUp } from '../../apps/hub/clean-up.ts'
import { sha256Hex } from '../../core/series/hash.ts'
import { type Answer, type Json, type Tenant, TestHub } from './hub-harness.ts'

type Collector = Awaited<ReturnType<TestHub['collector']>>
let hub: TestHub
let tenant: Tenant
let collector: Collector

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  collector = await hub.collector()
})
afterAll(() => hub.stop())

let hostCount = 0
const newHost = (more: Json = {}): Json => ({
  hostname: `host-${++hostCount}`,
  machine_id: `machine-${hostCount}`,
  ip_addresses: [],
  os: { family: 'linux', name: 'Debian', version: '13', kernel: '6.12', arch: 'x86_64' },
  agent_version: '1.2.3',
  ...more,
})
const enroll = (
  license: string,
  who: Json,
  by: Collector = collector,
  headers?: Record<string, string>,
): Promise<Answer> => by.call('POST', '/enroll', { license, collector_id: by.id, ...who }, headers)
const license = async (body: Json = {}, by: Tenant = tenant) =>
  (await by.call('POST', '/monitoring/licenses', { name: 'test', max_uses: 100, ...body })).body
const server = async (body: Json, by: Tenant = tenant) => (await by.call('POST', '/servers', body)).body.data
const codeOf = (answer: Answer) => [answer.status, answer.body.error?.code ?? null]
const row = async (id: string): Promise<Json> =>
  (await hub.hub.database.client`select * from monitoring_agents where id = ${id}`)[0]

describe('a successful enrollment', () => {
  test('[ENR-006] [ENR-007] [ENR-032] [ENR-033] [COL-006] [HAG-001] gives an agent token and stores the agent with its hash', async () => {
    const { token } = await license()
    const who = newHost({ proto_version: 1 })
    const { id } = await server({ name: who.hostname, hostname: who.hostname })
    const { status, body } = await enroll(token, who)
    expect(status).toBe(201)
    expect(body.data).toMatchObject({ company_id: tenant.companyId, server_id: id, config: { interval_seconds: 30 } })
    expect(body.data.agent_token).toMatch(/^agt_[0-9A-Za-z]{43}$/)
    expect(await row(body.data.agent_id)).toMatchObject({
      state: 'active',
      token_hash: sha256Hex(body.data.agent_token),
      machine_id: who.machine_id,
      hostname: who.hostname,
      os_family: 'linux',
      os_version: '13',
      arch: 'x86_64',
      agent_version: '1.2.3',
      proto_version: 1,
      collector_id: collector.id,
    })
  })

  test('[ENR-020] [ENR-021] [AUD-004] counts one use of the license and writes an audit record without the token', async () => {
    const { token, data } = await license()
    const who = newHost()
    await server({ name: who.hostname, hostname: who.hostname })
    const { body } = await enroll(token, who)
    const after = (await tenant.call('GET', `/monitoring/licenses/${data.id}`)).body.data
    expect(after.used_count).toBe(1)
    expect(Date.parse(after.last_used_at)).toBeGreaterThan(Date.now() - 60_000)
    const audit = (await tenant.call('GET', `/audit-log/subjects/agent/${body.data.agent_id}`)).body
    expect(audit.data[0]).toMatchObject({ action: 'agent.enroll', actor: { type: 'collector' } })
    expect(JSON.stringify(audit)).not.toContain(sha256Hex(body.data.agent_token))
  })

  test('[ENR-040] [COL-014] [COL-017] the new agent is found by its token hash at once', async () => {
    const { token } = await license()
    const who = newHost()
    await server({ name: who.hostname, hostname: who.hostname })
    const { body } = await enroll(token, who)
    const found = await collector.call('GET', `/agents?token_hash=${sha256Hex(body.data.agent_token)}`)
    expect(found.body.data.agent).toMatchObject({ agent_id: body.data.agent_id, state: 'active', version: 1 })
  })
})

describe('refusals consume no use of the license', () => {
  test('[ENR-003] [ENR-008] an unknown license is invalid_token, the former field name is not accepted', async () => {
    expect(codeOf(await enroll('lic_unknown', newHost()))).toEqual([401, 'invalid_token'])
    const { token } = await license()
    const old = await collector.call('POST', '/enroll', { enroll_token: token, ...newHost() })
    expect(old.status).toBe(422)
  })

  test('[ENR-004] [ENR-033] texts that are empty count as absent, also those of the operating system', async () => {
    const { token } = await license()
    const os = { family: 'linux', name: '', version: '', kernel: '', arch: '' }
    const who = newHost({ os, agent_version: '', machine_id: '' })
    await server({ name: who.hostname, hostname: who.hostname })
    const { status, body } = await enroll(token, who)
    expect(status).toBe(201)
    const stored = { os_family: 'linux', os_version: null, arch: null, agent_version: null, machine_id: null }
    expect(await row(body.data.agent_id)).toMatchObject(stored)
  })

  test('[ENR-008] [ENR-014] [ENR-025] a server without a name is asked for its license first, and paired by what else there is', async () => {
    for (const hostname of ['', '  '])
      expect(codeOf(await enroll('lic_unknown', newHost({ hostname })))).toEqual([401, 'invalid_token'])
    const { token } = await license()
    expect(codeOf(await enroll(token, newHost({ hostname: '' })))).toEqual([422, 'binding_failed'])
    const auto = await hub.tenant()
    await auto.call('PATCH', '/monitoring/settings', { auto_create_server: true })
    const open = await license({}, auto)
    expect(codeOf(await enroll(open.token, newHost({ hostname: '' })))).toEqual([422, 'binding_failed'])
    const { id } = await server({ name: 'nameless', ip_address: '10.78.0.1' })
    const who = newHost({ hostname: '', ip_addresses: ['10.78.0.1'] })
    const { status, body } = await enroll(token, who)
    expect([status, body.data.server_id]).toEqual([201, id])
    expect((await row(body.data.agent_id)).hostname).toBeNull()
    expect((await tenant.call('GET', `/monitoring/agents/${body.data.agent_id}`)).body.data.hostname).toBeNull()
    expect(codeOf(await enroll(token, who))).toEqual([409, 'already_enrolled'])
    const { hostname: _none, ...without } = newHost()
    expect((await enroll(token, without)).status).toBe(422)
  })

  test('[ENR-009] [LIC-039] [LIC-040] a revoked license is token_revoked; its agents keep working', async () => {
    const { token, data } = await license()
    const who = newHost()
    await server({ name: who.hostname, hostname: who.hostname })
    const { body } = await enroll(token, who)
    await tenant.call('POST', `/monitoring/licenses/${data.id}/revoke`)
    expect(codeOf(await enroll(token, newHost()))).toEqual([401, 'token_revoked'])
    expect((await row(body.data.agent_id)).state).toBe('active')
  })

  test('[ENR-010] [LIC-044] [LIC-050] a regenerated key enrolls no new server, the new one does', async () => {
    const { token, data } = await license()
    const [first, second] = [newHost(), newHost()]
    for (const who of [first, second]) await server({ name: who.hostname, hostname: who.hostname })
    const { body } = await enroll(token, first)
    const fresh = (await tenant.call('POST', `/monitoring/licenses/${data.id}/regenerate`)).body
    expect(codeOf(await enroll(token, second))).toEqual([401, 'token_revoked'])
    expect((await enroll(fresh.token, second)).status).toBe(201)
    expect((await row(body.data.agent_id)).state).toBe('active')
  })

  test('[ENR-011] an expired license is token_expired', async () => {
    const { token, data } = await license({ expires_at: '2999-01-01T00:00:00Z' })
    await hub.hub.database.client`update monitoring_licenses set expires_at = now() where id = ${data.id}`
    expect(codeOf(await enroll(token, newHost()))).toEqual([401, 'token_expired'])
  })

  test('[ENR-012] [ENR-019] a used license is token_used, also when servers enroll at the same time', async () => {
    const { token, data } = await license({ max_uses: 3 })
    const crowd = Array.from({ length: 8 }, () => newHost())
    for (const who of crowd) await server({ name: who.hostname, hostname: who.hostname })
    const answers = await Promise.all(crowd.map(who => enroll(token, who)))
    expect(answers.filter(answer => answer.status === 201)).toHaveLength(3)
    expect(answers.filter(answer => answer.status !== 201).map(codeOf)).toEqual(Array(5).fill([409, 'token_used']))
    const after = (await tenant.call('GET', `/monitoring/licenses/${data.id}`)).body.data
    expect([after.used_count, after.status]).toEqual([3, 'exhausted'])
  })

  test('[ENR-022] a license of a collector is invalid_token through another one', async () => {
    const other = await hub.collector()
    const { token } = await license({ collector_id: other.id })
    const who = newHost()
    await server({ name: who.hostname, hostname: who.hostname })
    expect(codeOf(await enroll(token, who))).toEqual([401, 'invalid_token'])
    // The token says who forwards: naming the right collector does not help the wrong one.
    const pretended = { ...who, collector_id: other.id }
    expect(codeOf(await enroll(token, pretended))).toEqual([401, 'invalid_token'])
    expect((await enroll(token, who, other)).status).toBe(201)
  })

  test('[ENR-022] a license of a collector enrolls nothing through others when the collector is deleted', async () => {
    const other = await hub.collector()
    const { token, data } = await license({ collector_id: other.id })
    const who = newHost()
    await server({ name: who.hostname, hostname: who.hostname })
    const root = await hub.user(tenant.companyId, ['*'], { superAdmin: true })
    expect((await root.call('DELETE', `/monitoring/collectors/${other.id}`)).status).toBe(204)
    expect(codeOf(await enroll(token, who))).toEqual([401, 'token_revoked'])
    expect((await tenant.call('GET', `/monitoring/licenses/${data.id}`)).body.data.status).toBe('revoked')
    const audit = (await tenant.call('GET', `/audit-log/subjects/license/${data.id}`)).body.data
    expect(audit.map((entry: Json) => [entry.action, entry.actor.type])).toContainEqual(['license.revoke', 'system'])
  })

  test('[ENR-015] [ENR-016] [ENR-017] [ENR-018] beyond the quota it is quota_exceeded; revoked agents do not count', async () => {
    const small = await hub.tenant({ agent_quota: 2, metrics_retention_days: null })
    const { token } = await license({ max_uses: 2 }, small)
    await hub.hub.database.client`update monitoring_licenses set max_uses = 10 where company_id = ${small.companyId}`
    const crowd = Array.from({ length: 5 }, () => newHost())
    for (const who of crowd) await server({ name: who.hostname, hostname: who.hostname }, small)
    const answers = await Promise.all(crowd.map(who => enroll(token, who)))
    const good = answers.filter(answer => answer.status === 201)
    expect(good).toHaveLength(2)
    expect(answers.filter(answer => answer.status !== 201).map(codeOf)).toEqual(Array(3).fill([422, 'quota_exceeded']))
    await small.call('POST', `/monitoring/agents/${good[0]!.body.data.agent_id}/revoke`)
    const waiting = crowd.find((_, index) => answers[index]!.status !== 201)
    expect((await enroll(token, waiting)).status).toBe(201)
  })

  test('[ENR-013] [ENR-030] the same server is already_enrolled until its agent is revoked', async () => {
    const { token, data } = await license()
    const who = newHost()
    await server({ name: who.hostname, hostname: who.hostname })
    const first = (await enroll(token, who)).body.data
    const refused = await enroll(token, who)
    expect(codeOf(refused)).toEqual([409, 'already_enrolled'])
    expect(refused.body.error.message).toContain('Revoke that agent first')
    expect((await tenant.call('GET', `/monitoring/licenses/${data.id}`)).body.data.used_count).toBe(1)
    await tenant.call('POST', `/monitoring/agents/${first.agent_id}/revoke`)
    const again = await enroll(token, who)
    expect(again.status).toBe(201)
    expect(again.body.data.agent_id).not.toBe(first.agent_id)
  })

  test('[ENR-031] the same machine_id under another hostname is a clone: enrolled on its own, and audited', async () => {
    const { token } = await license()
    const [original, clone] = [newHost(), newHost()]
    for (const who of [original, clone]) await server({ name: who.hostname, hostname: who.hostname })
    await enroll(token, original)
    const { status, body } = await enroll(token, { ...clone, machine_id: original.machine_id })
    expect(status).toBe(201)
    const audit = (await tenant.call('GET', `/audit-log/subjects/agent/${body.data.agent_id}`)).body.data
    expect(audit.map((entry: Json) => entry.action)).toContain('agent.clone_detected')
  })
})

describe('pairing', () => {
  test('[ENR-023] [ENR-024] a pinned license pairs with its server, whatever the server says of itself', async () => {
    const { id } = await server({ name: 'pinned', hostname: 'other-name' })
    const { token } = await license({ server_id: id, max_uses: 1 })
    expect((await enroll(token, newHost())).body.data.server_id).toBe(id)
  })

  test('[ENR-023] a pinned license enrolls no other server when its own is deleted for good', async () => {
    const { id } = await server({ name: 'pinned and gone', hostname: 'pinned-and-gone' })
    const { token, data } = await license({ server_id: id, max_uses: 2 })
    const free = await license()
    const who = newHost()
    await server({ name: who.hostname, hostname: who.hostname })
    await tenant.call('DELETE', `/servers/${id}`)
    expect(codeOf(await enroll(token, who))).toEqual([422, 'binding_failed'])
    await tenant.call('DELETE', `/servers/${id}/permanent`)
    expect(codeOf(await enroll(token, who))).toEqual([401, 'token_revoked'])
    expect((await tenant.call('GET', `/monitoring/licenses/${data.id}`)).body.data.status).toBe('revoked')
    expect((await enroll(free.token, who)).status).toBe(201)
  })

  test('[ENR-025] [ENR-026] without a pin the address counts first, then the hostname', async () => {
    const byAddress = await server({ name: 'by address', hostname: 'a', ip_address: '10.77.66.55' })
    const byName = await server({ name: 'by name', hostname: 'named-host' })
    const { token } = await license()
    const first = await enroll(token, newHost({ hostname: 'named-host', ip_addresses: ['fd00:77::1', '10.77.66.55'] }))
    expect(first.body.data.server_id).toBe(byAddress.id)
    const second = await enroll(token, newHost({ hostname: 'NAMED-host', ip_addresses: ['10.0.0.250'] }))
    expect(second.body.data.server_id).toBe(byName.id)
  })

  test('[ENR-014] [ENR-027] [ENR-028] [HST-007] without a match, or with one in another company only, it is binding_failed', async () => {
    const other = await hub.tenant()
    await server({ name: 'foreign', hostname: 'foreign-host', ip_address: '10.77.0.1' }, other)
    const { token } = await license()
    const who = newHost({ hostname: 'foreign-host', ip_addresses: ['10.77.0.1'] })
    expect(codeOf(await enroll(token, who))).toEqual([422, 'binding_failed'])
  })

  test('[ENR-029] [HAG-003] with auto_create_server a draft waits for approval, its agent is pending until then', async () => {
    const own = await hub.tenant()
    await own.call('PATCH', '/monitoring/settings', { auto_create_server: true })
    const { token } = await license({}, own)
    const { status, body } = await enroll(token, newHost({ hostname: 'newcomer', ip_addresses: ['10.3.3.3'] }))
    expect(status).toBe(201)
    const draft = (await own.call('GET', `/servers/${body.data.server_id}`)).body.data
    expect(draft).toMatchObject({ name: 'newcomer', status: 'draft', origin: 'agent', ip_address: '10.3.3.3' })
    const agent = `/monitoring/agents/${body.data.agent_id}`
    expect((await own.call('GET', agent)).body.data.state).toBe('pending')
    expect((await own.call('POST', `/servers/${draft.id}/approve`)).body.data.status).toBe('active')
    expect((await own.call('GET', agent)).body.data).toMatchObject({ state: 'active', version: 2 })
    expect((await own.call('POST', `/servers/${draft.id}/approve`)).status).toBe(422)
  })
})

describe('brute force', () => {
  test('[ENR-034] [ENR-035] attempts are limited by the address of the server', async () => {
    const strict = await TestHub.start({ 'rate.enroll_failures': 10, 'rate.enroll_per_minute': 30 })
    try {
      const by = await strict.collector()
      const attempt = (address: string) =>
        enroll('lic_guess', newHost(), by, { 'X-Forwarded-For': `${address}, 192.0.2.1` })
      for (let n = 0; n < 10; n++) expect((await attempt('198.51.100.1')).status).toBe(401)
      const refused = await attempt('198.51.100.1')
      expect(codeOf(refused)).toEqual([429, 'rate_limited'])
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect((await attempt('198.51.100.2')).status).toBe(401)
    } finally {
      await strict.running.stop()
    }
  })
})

describe('[G-180] refusals stand at their license', () => {
  const refusedOf = async (id: string, by: Tenant = tenant): Promise<Json[]> =>
    (await by.call('GET', `/monitoring/licenses/${id}/agents`)).body.refused

  test('with reason, hostname, addresses and time, newest first; of an unknown license nothing is kept', async () => {
    const own = await hub.tenant()
    const { token, data } = await license({ max_uses: 2 }, own)
    expect(await refusedOf(data.id, own)).toEqual([])
    const stranger = newHost({ ip_addresses: ['10.77.66.55', 'fd00:77::1'] })
    expect(codeOf(await enroll(token, stranger))).toEqual([422, 'binding_failed'])
    const twice = newHost()
    await server({ name: twice.hostname, hostname: twice.hostname }, own)
    expect((await enroll(token, twice)).status).toBe(201)
    expect(codeOf(await enroll(token, twice))).toEqual([409, 'already_enrolled'])
    await own.call('POST', `/monitoring/licenses/${data.id}/revoke`)
    expect(codeOf(await enroll(token, newHost({ hostname: ' ' })))).toEqual([401, 'token_revoked'])
    expect(codeOf(await enroll('lic_unknown', newHost()))).toEqual([401, 'invalid_token'])
    const refused = await refusedOf(data.id, own)
    expect(refused.map(each => [each.reason, each.hostname, each.ip_addresses])).toEqual([
      ['token_revoked', null, []],
      ['already_enrolled', twice.hostname, []],
      ['binding_failed', stranger.hostname, ['10.77.66.55', 'fd00:77::1']],
    ])
    expect(Math.abs(Date.parse(refused[0]?.refused_at) - Date.now())).toBeLessThan(60_000)
    expect((await own.call('GET', `/monitoring/licenses/${data.id}/agents`)).body.data).toHaveLength(1)
  })

  test('the quota of the plan and a license pinned to another collector are told too, to the own company alone', async () => {
    const small = await hub.tenant({ agent_quota: 1 })
    const other = await hub.collector()
    const { token, data } = await license({ max_uses: 1, collector_id: other.id }, small)
    expect(codeOf(await enroll(token, newHost()))).toEqual([401, 'invalid_token'])
    expect((await refusedOf(data.id, small)).map(each => each.reason)).toEqual(['invalid_token'])
    expect((await tenant.call('GET', `/monitoring/licenses/${data.id}/agents`)).status).toBe(404)
  })

  test('the newest thousand of a company are kept, for a week', async () => {
    const own = await hub.tenant()
    const { token, data } = await license({}, own)
    await hub.hub.database.client`
      insert into monitoring_enrollment_refusals (company_id, license_id, reason, hostname, refused_at)
      select ${own.companyId}, ${data.id}, 'binding_failed', 'old-' || n, now() - make_interval(days => case when n <= 500 then 8 else 0 end)
      from generate_series(1, 1000) n`
    expect(await refusedOf(data.id, own)).toHaveLength(500)
    expect(codeOf(await enroll(token, newHost()))).toEqual([422, 'binding_failed'])
    const kept = async () =>
      (
        await hub.hub.database.client<{ hostname: string }[]>`
          select hostname from monitoring_enrollment_refusals where company_id = ${own.companyId} order by id`
      ).map(row => row.hostname)
    const hostnames = await kept()
    expect([hostnames.length, hostnames[0], hostnames.at(-1)]).toEqual([1000, 'old-2', `host-${hostCount}`])
    await cleanUp(hub.hub)
    expect(await kept()).toHaveLength(501)
    expect(await refusedOf(data.id, own)).toHaveLength(501)
  })
})
