// Scan hosts: enrolled by code, told in the feed, attached, rotated, revoked, and counted against the plan.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { changePlan, deleteCompany, purgeCompany } from '../../apps/hub/companies/companies.ts'
import { tokenHash } from '../../apps/hub/identity/token-forms.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { rotationText } from '../../core/matching/scan-protocol.ts'
import { type Answer, type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'
import {
  enroll,
  enrolling,
  eventOf,
  findingPayload,
  findingsOf,
  type Host,
  hex64,
  newKey,
  newServer,
  opened,
  resolvedPayload,
  scannedPayload,
  send,
  signed,
} from './security-event.ts'

let hub: TestHub
let owner: Tenant
let matcher: Call
let matcherId: string

beforeAll(async () => {
  hub = await TestHub.start()
  owner = await hub.tenant(undefined, { planCode: 'business' })
  const made = await hub.matcher()
  matcher = made.call
  matcherId = made.id
})
afterAll(() => hub.stop())

const sql = (strings: TemplateStringsArray, ...values: string[]) => hub.hub.database.client(strings, ...values)
const codeOf = async (tenant: Tenant, body: Json = {}): Promise<string> =>
  (await tenant.call('POST', '/security/scan-hosts/enrolment-codes', body)).body.data.code
const exchange = (code: string, publicKey = newKey().publicKey, hash = hex64()): Promise<Answer> =>
  matcher('POST', '/scan-hosts/enroll', enrolling(code, publicKey, hash))
const shown = async (tenant: Tenant, hostId: string): Promise<Json> =>
  (await tenant.call('GET', '/security/scan-hosts?page=1')).body.data.find((each: Json) => each.host_id === hostId)
const refusal = ({ status, body }: Answer) => [status, body.error?.code ?? Object.keys(body.errors ?? {}).join()]

/** All records of the feed after a number, page by page. */
async function feed(since = 0, limit = 1000): Promise<Json[]> {
  const records: Json[] = []
  for (let from = since; ; ) {
    const { status, body } = await matcher('GET', `/scan-hosts?since=${from}&limit=${limit}`)
    expect([status, typeof body.server_time]).toEqual([200, 'string'])
    records.push(...body.data.scan_hosts)
    if (!body.data.more) return records
    from = body.data.next_since
  }
}
const recordOf = async (hostId: string): Promise<Json> => (await feed()).find(record => record.host_id === hostId)
const audited = async (tenant: Tenant, hostId: string): Promise<Json[]> =>
  (await tenant.call('GET', `/audit-log/subjects/scan_host/${hostId}`)).body.data

describe('codes', () => {
  test('[SEC-053] [SEC-054] [SEC-055] [SECU-019] [SECU-020] a code is shown once, kept as its SHA-256, and good once within 24 hours', async () => {
    const { status, body } = await owner.call('POST', '/security/scan-hosts/enrolment-codes', {})
    expect([status, Object.keys(body.data)]).toEqual([201, ['code', 'expires_at']])
    expect(Date.parse(body.data.expires_at) - Date.now()).toBeWithin(86_300_000, 86_400_001)
    const { code } = body.data
    const [row] =
      await sql`select code_hash, code_sealed from scan_enrolment_codes where code_hash = ${tokenHash(code)}`
    expect([row?.code_hash, row?.code_sealed]).toEqual([tokenHash(code), null])
    const first = await exchange(code)
    expect([first.status, Object.keys(first.body.data)]).toEqual([201, ['host_id', 'company_id', 'server_id']])
    expect([first.body.data.company_id, first.body.data.server_id]).toEqual([owner.companyId, null])
    expect(refusal(await exchange(code))).toEqual([401, 'invalid_code'])
    expect(refusal(await exchange('scn_unknown'))).toEqual([401, 'invalid_code'])
    const late = await codeOf(owner)
    await sql`update scan_enrolment_codes set expires_at = now() - interval '1 second' where code_hash = ${tokenHash(late)}`
    expect(refusal(await exchange(late))).toEqual([401, 'invalid_code'])
  })

  test('the same code with the same key answers the same host for 24 hours, with another key it is used', async () => {
    const code = await codeOf(owner)
    const { publicKey } = newKey()
    const first = await exchange(code, publicKey)
    expect((await exchange(code, publicKey)).body).toEqual(first.body)
    expect(refusal(await exchange(code))).toEqual([401, 'invalid_code'])
    await sql`update scan_hosts set enrolled_at = now() - interval '25 hours' where host_id = ${first.body.data.host_id}`
    expect(refusal(await exchange(code, publicKey))).toEqual([401, 'invalid_code'])
  })

  test('a code for a fleet works max_uses times', async () => {
    const code = await codeOf(owner, { max_uses: 3 })
    const statuses = await Promise.all(Array.from({ length: 6 }, () => exchange(code)))
    expect(statuses.map(each => each.status).sort()).toEqual([201, 201, 201, 401, 401, 401])
    for (const max_uses of [0, 10_001, 1.5, 'x'])
      expect((await owner.call('POST', '/security/scan-hosts/enrolment-codes', { max_uses })).status).toBe(422)
  })

  test('a code for a server attaches its host, while the server is there and free', async () => {
    const serverId = await newServer(owner)
    const code = await codeOf(owner, { server_id: serverId, max_uses: 2 })
    expect((await exchange(code)).body.data.server_id).toBe(serverId)
    expect((await exchange(code)).body.data.server_id).toBeNull()
    const stranger = await hub.tenant()
    const foreign = await stranger.call('POST', '/security/scan-hosts/enrolment-codes', { server_id: serverId })
    expect(refusal(foreign)).toEqual([422, 'server_id'])
  })

  test.each([
    [{ public_key: 'x' }],
    [{ public_key: Buffer.alloc(31).toString('base64') }],
    [{ public_key: Buffer.alloc(33).toString('base64') }],
    [{ hostname: '' }],
    [{ hostname: 'x'.repeat(254) }],
    [{ ip_addresses: Array(33).fill('192.0.2.1') }],
    [{ machine_id_hash: 'x' }],
    [{ machine_id_hash: 'g'.repeat(64) }],
    [{ os: { id: 'x'.repeat(129) } }],
    [{ os: null }],
    [{ code: null }],
  ])('an enrollment with %j answers 422 and leaves the code good', async change => {
    const code = await codeOf(owner)
    const body = { ...enrolling(code, newKey().publicKey), ...change }
    expect(refusal(await matcher('POST', '/scan-hosts/enroll', body))).toEqual([422, 'invalid_data'])
    expect((await exchange(code)).status).toBe(201)
  })
})

describe('the feed', () => {
  test('[SEC-052] [SECU-021] it tells every host with key, state and server, and each change once more', async () => {
    const since = Math.max(0, ...(await feed()).map(record => record.sync_version))
    const host = await enroll(owner, matcher)
    const [record] = await feed(since)
    expect(record).toEqual({
      host_id: host.hostId,
      company_id: owner.companyId,
      server_id: null,
      public_key: host.publicKey,
      hostname: 'web-1.example.test',
      state: 'active',
      inactive: false,
      deleted: false,
      version: record.sync_version,
      sync_version: record.sync_version,
    })
    expect(await feed(record.sync_version)).toEqual([])
    const serverId = await newServer(owner)
    await owner.call('POST', `/security/scan-hosts/${host.hostId}/attach`, { server_id: serverId })
    await owner.call('POST', `/security/scan-hosts/${host.hostId}/revoke`)
    const after = await feed(record.sync_version)
    expect(after.map(each => [each.host_id, each.server_id, each.state])).toEqual([[host.hostId, serverId, 'revoked']])
  })

  test('pages of any size tell the same, in ascending order', async () => {
    for (let count = 0; count < 5; count++) await enroll(owner, matcher)
    const whole = await feed()
    expect(await feed(0, 2)).toEqual(whole)
    const numbers = whole.map(record => record.sync_version)
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
    expect(new Set(numbers).size).toBe(numbers.length)
    for (const query of ['since=-1', 'since=x', 'limit=0'])
      expect(refusal(await matcher('GET', `/scan-hosts?${query}`))).toEqual([422, 'invalid_data'])
  })

  test('hosts of a company that is deleted are revoked, of one that is purged deleted', async () => {
    const tenant = await hub.tenant()
    const host = await enroll(tenant, matcher)
    const since = (await recordOf(host.hostId)).sync_version
    await inTransaction(hub.hub.database.db, tx => deleteCompany(hub.hub, tx, tenant.companyId))
    expect((await feed(since)).map(record => [record.host_id, record.state])).toEqual([[host.hostId, 'revoked']])
    await inTransaction(hub.hub.database.db, tx => purgeCompany(hub.hub, tx, tenant.companyId))
    const records = await feed(since)
    expect(records.map(record => [record.host_id, record.company_id, record.deleted])).toEqual([
      [host.hostId, tenant.companyId, true],
    ])
  })
})

describe('attaching', () => {
  const attach = (host: Host, server_id: unknown, by = owner) =>
    by.call('POST', `/security/scan-hosts/${host.hostId}/attach`, { server_id })

  test('a host, its findings and its scan get the server together, and lose it together', async () => {
    const host = await enroll(owner, matcher)
    const payload = findingPayload()
    await send(matcher, [opened(host, payload), eventOf(host, 'server.scanned', scannedPayload())])
    const serverId = await newServer(owner)
    const places = async () => {
      const [scan] = await sql`select server_id from security_server_scans where host_id = ${host.hostId}`
      const finding = (await findingsOf(hub, owner.companyId)).get(payload.finding_key)
      return [(await shown(owner, host.hostId)).server?.id ?? null, finding.server_id, scan?.server_id]
    }
    expect(await places()).toEqual([null, null, null])
    const { status, body } = await attach(host, serverId)
    expect([status, body.data.server_id]).toEqual([200, serverId])
    expect(await places()).toEqual([serverId, serverId, serverId])
    // An event of before the attachment counts for the server too.
    const late = findingPayload()
    await send(matcher, [opened(host, late, { server_id: null })])
    expect((await findingsOf(hub, owner.companyId)).get(late.finding_key).server_id).toBe(serverId)
    expect((await attach(host, null)).body.data.server_id).toBeNull()
    expect(await places()).toEqual([null, null, null])
    const changes = (await audited(owner, host.hostId)).map(entry => [entry.action, entry.changes.server_id])
    expect(changes.filter(([action]) => action === 'scan_host.attach')).toEqual([
      ['scan_host.attach', { old: serverId, new: null }],
      ['scan_host.attach', { old: null, new: serverId }],
    ])
  })

  test('[SEC-027] [MAT-164] a server that comes back gives its host a new version in the feed: what was rejected is told anew', async () => {
    const host = await enroll(owner, matcher)
    const serverId = await newServer(owner)
    await attach(host, serverId)
    const before = (await recordOf(host.hostId)).sync_version
    await owner.call('DELETE', `/servers/${serverId}`)
    const { rejected } = await send(matcher, [opened(host, findingPayload(), { server_id: serverId })])
    expect(rejected[0].reason).toBe('unknown_server')
    const trashed = (await recordOf(host.hostId)).sync_version
    expect((await owner.call('POST', `/servers/${serverId}/restore`)).status).toBe(200)
    const after = await recordOf(host.hostId)
    expect([after.server_id, after.sync_version > before, after.sync_version > trashed]).toEqual([serverId, true, true])
  })

  test('one active host a server, of the same company, and no revoked host', async () => {
    const serverId = await newServer(owner)
    const [first, second] = [await enroll(owner, matcher), await enroll(owner, matcher)]
    expect((await attach(first, serverId)).status).toBe(200)
    expect((await attach(first, serverId)).status).toBe(200)
    expect(refusal(await attach(second, serverId))).toEqual([422, 'server_id'])
    const stranger = await hub.tenant()
    expect(refusal(await attach(second, await newServer(stranger)))).toEqual([422, 'server_id'])
    expect((await attach(second, serverId, stranger)).status).toBe(404)
    expect((await owner.call('POST', `/security/scan-hosts/${second.hostId}/attach`, {})).status).toBe(422)
    await owner.call('POST', `/security/scan-hosts/${first.hostId}/revoke`)
    expect((await attach(second, serverId)).status).toBe(200)
    expect(refusal(await attach(first, null))).toEqual([422, 'state'])
  })

  test('a code for a server that has a host is refused, and good once that one is revoked', async () => {
    const serverId = await newServer(owner)
    const first = await enroll(owner, matcher, { serverId })
    const { body } = await owner.call('POST', '/security/scan-hosts/enrolment-codes', { server_id: serverId })
    const asked = enrolling(body.data.code, newKey().publicKey)
    expect(refusal(await matcher('POST', '/scan-hosts/enroll', asked))).toEqual([422, 'invalid_data'])
    await owner.call('POST', `/security/scan-hosts/${first.hostId}/revoke`)
    const again = await matcher('POST', '/scan-hosts/enroll', asked)
    expect([again.status, again.body.data.server_id]).toEqual([201, serverId])
  })

  test('two attachments to one server at once: one wins', async () => {
    for (let round = 0; round < 5; round++) {
      const serverId = await newServer(owner)
      const hosts = [await enroll(owner, matcher), await enroll(owner, matcher)]
      const answers = await Promise.all(hosts.map(host => attach(host, serverId)))
      expect(answers.map(each => each.status).sort()).toEqual([200, 422])
    }
  })
})

describe('enrolled again', () => {
  test('the same hash revokes the older host, whose findings are resolved, and gets another id', async () => {
    const serverId = await newServer(owner)
    const older = await enroll(owner, matcher, { serverId })
    const [open, done] = [findingPayload(), findingPayload()]
    await send(matcher, [
      opened(older, open),
      opened(older, done),
      eventOf(older, 'finding.resolved', resolvedPayload(done.finding_key)),
    ])
    const newer = await enroll(owner, matcher, { serverId, machineHash: older.machineHash })
    expect(newer.hostId).not.toBe(older.hostId)
    expect(newer.serverId).toBe(serverId)
    const findings = await findingsOf(hub, owner.companyId)
    expect([open, done].map(each => findings.get(each.finding_key).resolved_reason)).toEqual([
      'out_of_scope',
      'package_updated',
    ])
    expect((await recordOf(older.hostId)).state).toBe('revoked')
    const [entry] = await audited(owner, newer.hostId)
    expect([entry.action, entry.actor.type, entry.actor.id]).toEqual(['scan_host.enroll', 'matcher', matcherId])
    expect([entry.changes.replaced.new, entry.changes.resolved_findings.new]).toEqual([older.hostId, 1])
    // The same hash in another company is another server.
    const stranger = await hub.tenant()
    await enroll(stranger, matcher, { machineHash: older.machineHash })
    expect((await recordOf(newer.hostId)).state).toBe('active')
  })

  test('exceptions of the server go on for the same findings of its next host, told before or after it is attached', async () => {
    const serverId = await newServer(owner)
    const older = await enroll(owner, matcher, { serverId })
    const payloads = ['openssl', 'zlib', 'bash'].map(package_key =>
      findingPayload({ package_key, vuln_id: 'CVE-2026-77' }),
    )
    await send(
      matcher,
      payloads.map(payload => opened(older, payload)),
    )
    const exception = crypto.randomUUID()
    await sql`insert into security_exceptions (id, company_id, type, status, reason, decided_at)
      values (${exception}, ${owner.companyId}, 'false_positive', 'approved', 'x', now())`
    for (const payload of payloads.slice(0, 2))
      await sql`update security_findings set status = 'false_positive', exception_id = ${exception}
        where finding_key = ${payload.finding_key}`
    await owner.call('POST', `/security/scan-hosts/${older.hostId}/revoke`)
    const newer = await enroll(owner, matcher)
    const again = payloads.map(payload => ({ ...payload, finding_key: hex64() }))
    await send(matcher, [opened(newer, again[0]!), opened(newer, again[2]!)])
    await owner.call('POST', `/security/scan-hosts/${newer.hostId}/attach`, { server_id: serverId })
    await send(matcher, [opened({ ...newer, serverId }, again[1]!)])
    const findings = await findingsOf(hub, owner.companyId)
    const standing = again.map(({ finding_key }) => [
      findings.get(finding_key).status,
      findings.get(finding_key).exception_id,
    ])
    expect(standing).toEqual([
      ['false_positive', exception],
      ['false_positive', exception],
      ['open', null],
    ])
    const links = await sql`select finding_id from security_exception_findings where exception_id = ${exception}`
    expect(links.map(row => row.finding_id).sort()).toEqual(
      again
        .slice(0, 2)
        .map(({ finding_key }) => findings.get(finding_key).id)
        .sort(),
    )
  })
})

describe('calls of a host', () => {
  test('[SECU-022] a key is replaced by one that the old key signed, and by no other', async () => {
    const host = await enroll(owner, matcher)
    const next = newKey()
    const rotate = (key: string, signature: string, id = host.hostId) =>
      matcher('POST', `/scan-hosts/${id}/rotate`, { public_key: key, signature })
    const text = rotationText(host.hostId, next.publicKey)
    for (const signature of [
      signed(next.privateKey, text),
      signed(host.privateKey, rotationText(crypto.randomUUID(), next.publicKey)),
      signed(host.privateKey, `${text}\n`),
      'x',
      Buffer.alloc(64).toString('base64'),
    ])
      expect(refusal(await rotate(next.publicKey, signature))).toEqual([422, 'invalid_data'])
    expect(refusal(await rotate('x', signed(host.privateKey, text)))).toEqual([422, 'invalid_data'])
    expect((await recordOf(host.hostId)).public_key).toBe(host.publicKey)
    const good = signed(host.privateKey, text)
    expect((await rotate(next.publicKey, good)).status).toBe(200)
    expect((await recordOf(host.hostId)).public_key).toBe(next.publicKey)
    // The answer was lost: asked again it is the same, and nothing changes.
    expect((await rotate(next.publicKey, good)).status).toBe(200)
    expect((await audited(owner, host.hostId)).filter(entry => entry.action === 'scan_host.rotate')).toHaveLength(1)
    // No overlap: the old key signs nothing any more.
    const third = newKey().publicKey
    expect((await rotate(third, signed(host.privateKey, rotationText(host.hostId, third)))).status).toBe(422)
    expect((await rotate(third, 'x', crypto.randomUUID())).status).toBe(404)
    expect((await rotate(third, 'x', 'nobody')).status).toBe(404)
    expect(JSON.stringify(await audited(owner, host.hostId))).not.toContain(next.publicKey)
  })

  test('[SECU-023] seen raises a time that never falls and is never in the future', async () => {
    const host = await enroll(owner, matcher)
    const seen = async (last_seen_at: string) =>
      (await matcher('POST', `/scan-hosts/${host.hostId}/seen`, { last_seen_at, scanner_version: '2.0.0' })).body.data
    expect(await seen('2026-06-02T00:00:00Z')).toEqual({
      host_id: host.hostId,
      last_seen_at: '2026-06-02T00:00:00.000Z',
    })
    expect((await seen('2026-06-01T00:00:00Z')).last_seen_at).toBe('2026-06-02T00:00:00.000Z')
    expect(Date.parse((await seen('2999-01-01T00:00:00Z')).last_seen_at)).toBeLessThanOrEqual(Date.now())
    const { scanner_version } = await shown(owner, host.hostId)
    expect(scanner_version).toBe('2.0.0')
    await owner.call('POST', `/security/scan-hosts/${host.hostId}/revoke`)
    const gone = await matcher('POST', `/scan-hosts/${host.hostId}/seen`, { last_seen_at: '2026-06-03T00:00:00Z' })
    expect(refusal(gone)).toEqual([404, 'not_found'])
  })

  test('[SECU-024] a heartbeat is kept by matcher', async () => {
    const { status } = await matcher('POST', '/heartbeat', { version: '1.0.0', db_version: 2026060101, queue_depth: 7 })
    expect(status).toBe(200)
    const [row] =
      await sql`select version, db_version::int, queue_depth::int from security_matchers where user_id = ${matcherId}`
    expect([row?.version, row?.db_version, row?.queue_depth]).toEqual(['1.0.0', 2026060101, 7])
    expect(refusal(await matcher('POST', '/heartbeat', { version: 1 }))).toEqual([422, 'invalid_data'])
  })

  test('[SECU-018] settings are those of the company, within its plan, with their version', async () => {
    const tenant = await hub.tenant(undefined, { planCode: 'team' })
    const settings = async () => (await matcher('GET', `/settings/${tenant.companyId}`)).body
    const first = await settings()
    expect(first.data).toEqual({
      company_id: tenant.companyId,
      version: 1,
      enabled: true,
      scan_interval_hours: 24,
      min_scan_interval_hours: 6,
      content_scan: false,
      history_days: 180,
    })
    expect(typeof first.server_time).toBe('string')
    await sql`insert into security_settings (company_id, version, enabled, scan_interval_hours) values (${tenant.companyId}, 4, false, 1)`
    const { version, enabled, scan_interval_hours } = (await settings()).data
    expect([version, enabled, scan_interval_hours]).toEqual([4, false, 6])
    for (const id of [crypto.randomUUID(), 'nobody'])
      expect(refusal(await matcher('GET', `/settings/${id}`))).toEqual([404, 'not_found'])
  })

  test.each([
    ['free', 30, 24],
    ['pro', 90, 24],
    ['expert', 180, 6],
    ['team', 180, 6],
    ['business', 365, 1],
    ['dedicated', null, 1],
  ] as const)(
    '[SECU-040] [SECU-041] [MAT-221] plan %s: history %s days, interval at least %s hours, which the matcher is told',
    async (plan, history, hours) => {
      const tenant = await hub.tenant(undefined, { planCode: plan })
      await sql`insert into security_settings (company_id, scan_interval_hours) values (${tenant.companyId}, 1)`
      const { data } = (await matcher('GET', `/settings/${tenant.companyId}`)).body
      expect([data.history_days, data.scan_interval_hours, data.min_scan_interval_hours]).toEqual([
        history,
        hours,
        hours,
      ])
    },
  )
})

describe('revoking', () => {
  test('[SEC-028] it resolves the findings of the host, once, and cannot be undone', async () => {
    const host = await enroll(owner, matcher)
    const payload = findingPayload()
    await send(matcher, [opened(host, payload)])
    const revoke = () => owner.call('POST', `/security/scan-hosts/${host.hostId}/revoke`)
    const first = await revoke()
    expect([first.status, first.body.data.state]).toEqual([200, 'revoked'])
    expect((await revoke()).body).toEqual(first.body)
    const finding = (await findingsOf(hub, owner.companyId)).get(payload.finding_key)
    expect([finding.status, finding.resolved_reason]).toEqual(['resolved', 'out_of_scope'])
    const entries = (await audited(owner, host.hostId)).filter(entry => entry.action === 'scan_host.revoke')
    expect(entries.map(entry => entry.changes.resolved_findings)).toEqual([{ old: null, new: 1 }])
    const stranger = await hub.tenant()
    expect((await stranger.call('POST', `/security/scan-hosts/${host.hostId}/revoke`)).status).toBe(404)
    expect((await stranger.call('GET', '/security/scan-hosts')).body.data).toEqual([])
  })
})

describe('the plan', () => {
  const plan = (tenant: Tenant, planCode: string) =>
    inTransaction(hub.hub.database.db, tx => changePlan(hub.hub, tx, tenant.companyId, { planCode }))
  const inactive = async (hosts: readonly Host[]): Promise<boolean[]> => {
    const records = new Map((await feed()).map(record => [record.host_id, record.inactive]))
    return hosts.map(host => records.get(host.hostId))
  }

  test('[SECU-039] [SECU-042] an enrollment over the number is refused, and the code stays good', async () => {
    const tenant = await hub.tenant(undefined, { planCode: 'free' })
    const host = await enroll(tenant, matcher)
    const code = await codeOf(tenant)
    expect(refusal(await exchange(code))).toEqual([422, 'quota_exceeded'])
    // The same host again is none more.
    const again = await enroll(tenant, matcher, { machineHash: host.machineHash })
    await tenant.call('POST', `/security/scan-hosts/${again.hostId}/revoke`)
    expect((await exchange(code)).status).toBe(201)
  })

  test('[SECU-039] the numbers of the plans', async () => {
    const rows = await sql`select code, scan_hosts from plans`
    expect(Object.fromEntries(rows.map(row => [row.code, row.scan_hosts]))).toEqual({
      free: 1,
      pro: 5,
      expert: 20,
      team: 50,
      business: 200,
      dedicated: null,
    })
  })

  test('[SECU-043] a downgrade leaves the newest hosts inactive, whose events are still taken; an upgrade clears them', async () => {
    const tenant = await hub.tenant(undefined, { planCode: 'pro' })
    const hosts: Host[] = []
    for (let count = 0; count < 3; count++) hosts.push(await enroll(tenant, matcher))
    for (const [index, host] of hosts.entries())
      await sql`update scan_hosts set enrolled_at = now() - make_interval(hours => ${String(10 - index)}::int) where host_id = ${host.hostId}`
    await plan(tenant, 'free')
    expect(await inactive(hosts)).toEqual([false, true, true])
    const { accepted } = await send(matcher, [opened(hosts[2]!, findingPayload())])
    expect(accepted).toHaveLength(1)
    expect((await shown(tenant, hosts[2]!.hostId)).inactive).toBe(true)
    await tenant.call('POST', `/security/scan-hosts/${hosts[0]!.hostId}/revoke`)
    expect(await inactive(hosts)).toEqual([false, false, true])
    await plan(tenant, 'dedicated')
    expect(await inactive(hosts)).toEqual([false, false, false])
  })

  test('a company below without a plan of its own shares the number of the one above', async () => {
    const tenant = await hub.tenant(undefined, { planCode: 'free' })
    const child = await hub.tenant({}, { parentId: tenant.companyId })
    await enroll(child, matcher)
    expect(refusal(await exchange(await codeOf(tenant)))).toEqual([422, 'quota_exceeded'])
  })

  test('of enrollments at once no more come in than the plan has', async () => {
    const tenant = await hub.tenant(undefined, { planCode: 'pro' })
    const code = await codeOf(tenant, { max_uses: 20 })
    const answers = await Promise.all(Array.from({ length: 12 }, () => exchange(code)))
    expect(answers.filter(each => each.status === 201)).toHaveLength(5)
    expect(answers.filter(each => each.status !== 201).map(refusal)).toEqual(Array(7).fill([422, 'quota_exceeded']))
  })
})

describe('deleting for good', () => {
  const leftOf = async (hostId: string): Promise<number> => {
    const [row] = await sql`
      select (select count(*) from scan_hosts where host_id = ${hostId}) + (select count(*) from security_findings where host_id = ${hostId})
        + (select count(*) from security_finding_events where host_id = ${hostId})
        + (select count(*) from security_server_scans where host_id = ${hostId}) as left`
    return Number(row?.left)
  }
  const filled = async (tenant: Tenant, serverId?: string): Promise<Host> => {
    const host = await enroll(tenant, matcher, serverId ? { serverId } : {})
    await send(matcher, [opened(host, findingPayload()), eventOf(host, 'server.scanned', scannedPayload())])
    return host
  }

  test('a server takes its hosts with it, those of before too, and no other', async () => {
    const serverId = await newServer(owner)
    const older = await filled(owner, serverId)
    await owner.call('POST', `/security/scan-hosts/${older.hostId}/revoke`)
    const newer = await filled(owner, serverId)
    const bystander = await filled(owner)
    await owner.call('DELETE', `/servers/${serverId}`)
    expect(await leftOf(newer.hostId)).toBe(5)
    expect((await owner.call('DELETE', `/servers/${serverId}/permanent`)).status).toBe(204)
    expect([await leftOf(older.hostId), await leftOf(newer.hostId), await leftOf(bystander.hostId)]).toEqual([0, 0, 5])
    expect((await recordOf(newer.hostId)).deleted).toBe(true)
    const { rejected } = await send(matcher, [opened(newer, findingPayload())])
    expect(rejected[0].reason).toBe('unknown_server')
  })

  test('a scan host takes its findings with it, however it is deleted', async () => {
    const [gone, stays] = [await filled(owner), await filled(owner)]
    await sql`delete from scan_hosts where host_id = ${gone.hostId}`
    const [row] = await sql`
      select count(*) filter (where host_id = ${gone.hostId})::int as gone,
        count(*) filter (where host_id = ${stays.hostId})::int as stays from security_findings`
    expect(row).toMatchObject({ gone: 0, stays: 1 })
  })

  test('a company takes everything with it', async () => {
    const tenant = await hub.tenant()
    const host = await filled(tenant)
    await codeOf(tenant)
    await inTransaction(hub.hub.database.db, tx => purgeCompany(hub.hub, tx, tenant.companyId))
    expect(await leftOf(host.hostId)).toBe(0)
    const tables = await sql`
      select table_name from information_schema.columns where column_name = 'company_id'
        and (table_name like 'security_%' or table_name like 'scan_%')`
    expect(tables.length).toBeGreaterThan(10)
    for (const { table_name } of tables) {
      const [row] = await hub.hub.database.client.unsafe(
        `select count(*)::int as count from ${table_name} where company_id = $1`,
        [tenant.companyId],
      )
      expect([table_name, row?.count]).toEqual([table_name, 0])
    }
  })
})
