// What the matcher may send to the hub, and how each event of a batch is answered.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'
import {
  enroll,
  eventOf,
  findingPayload,
  findingsOf,
  type Host,
  hex64,
  newServer,
  opened,
  resolvedPayload,
  scannedPayload,
  send,
} from './security-event.ts'

let hub: TestHub
let owner: Tenant
let matcher: { readonly id: string; readonly token: string; readonly call: Call }
let host: Host
let serverId: string

beforeAll(async () => {
  hub = await TestHub.start()
  owner = await hub.tenant(undefined, { planCode: 'business' })
  matcher = await hub.matcher()
  serverId = await newServer(owner)
  host = await enroll(owner, matcher.call, { serverId })
})
afterAll(() => hub.stop())

const post = (body: unknown, headers?: Record<string, string>) => matcher.call('POST', '/events', body, headers)
const good = () => opened(host, findingPayload())
const eventCount = async (): Promise<number> =>
  Number((await hub.hub.database.client`select count(*) from security_finding_events`)[0]!.count)

describe('who may send', () => {
  const events = '/api/v1/security/matcher/events'
  const status = async (token: string | null, body: unknown = {}): Promise<[number, Json]> => {
    const response = await fetch(`${hub.url}${events}`, {
      method: 'POST',
      headers: { ...(token ? { Authorization: `Bearer ${token}` } : {}), 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    return [response.status, await response.json()]
  }

  test('[SEC-002] a missing, unknown, revoked or expired token answers 401', async () => {
    const revoked = await hub.matcher()
    await hub.hub.database.client`update api_tokens set revoked_at = now() where user_id = ${revoked.id}`
    const expired = await hub.matcher()
    await hub.hub.database
      .client`update api_tokens set expires_at = now() - interval '1 second' where user_id = ${expired.id}`
    for (const token of [null, 'hub_unknown', revoked.token, expired.token]) {
      const [code, body] = await status(token)
      expect([code, Object.keys(body), body.error.code]).toEqual([401, ['error'], 'unauthorized'])
    }
  })

  test('[SEC-001] [SEC-003] [SEC-006] a valid token without the permission answers 403, an administrator included', async () => {
    const root = await hub.user(owner.companyId, ['*'], { superAdmin: true })
    const collector = await hub.collector()
    for (const token of [owner.token, root.token, collector.token]) {
      const [code, body] = await status(token)
      expect([code, Object.keys(body), body.error.code]).toEqual([403, ['error'], 'forbidden'])
    }
  })

  test('[SEC-008] a matcher token answers 403 from an address outside its allowlist, and without an allowlist', async () => {
    const elsewhere = await hub.matcher(['203.0.113.0/24'])
    expect((await status(elsewhere.token))[0]).toBe(403)
    const everywhere = await hub.matcher()
    await hub.hub.database.client`update api_tokens set ip_ranges = null where user_id = ${everywhere.id}`
    const [code, body] = await status(everywhere.token)
    expect([code, body.error.code]).toEqual([403, 'forbidden'])
  })

  test('[SEC-005] [SEC-007] no role and no user of a company can hold the permission', async () => {
    const role = await owner.call('POST', '/roles', { name: 'matching', permissions: ['security.matcher'] })
    expect(role.status).toBe(422)
    const user = await owner.call('POST', '/users', {
      name: 'M',
      email: 'm@example.test',
      permissions: ['security.matcher'],
    })
    expect(user.status).toBe(422)
  })

  test('[SEC-009] [SEC-010] 600 requests a minute and token over all endpoints, then 429, which comes before 422 and after 403', async () => {
    const limited = await TestHub.start({ 'rate.matcher_per_minute': 600 })
    try {
      const { call } = await limited.matcher()
      const other = await limited.matcher()
      const tenant = await limited.tenant()
      const codes = new Map<number, number>()
      const count = (code: number) => codes.set(code, (codes.get(code) ?? 0) + 1)
      for (let index = 0; index < 300; index++) {
        count((await call('POST', '/events', {})).status)
        count((await call('GET', '/scan-hosts')).status)
      }
      expect([...codes].sort()).toEqual([
        [200, 300],
        [422, 300],
      ])
      const refused = await call('POST', '/events', {})
      expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited'])
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect((await call('POST', '/heartbeat', {})).status).toBe(429)
      expect((await other.call('POST', '/events', {})).status).toBe(422)
      for (let index = 0; index < 650; index++)
        if ((await tenant.call('POST', '/security/matcher/events', {})).status !== 403) throw new Error('not forbidden')
    } finally {
      await limited.running.stop()
    }
  })
})

describe('the envelope', () => {
  test('[SEC-011] [SEC-032] a batch answers 200 with what was accepted and what was not, and nothing else', async () => {
    const first = good()
    const second = eventOf(host, 'finding.made_up', {})
    const { status, body } = await post({ events: [first, second] })
    expect([status, body]).toEqual([
      200,
      {
        data: {
          accepted: [first.event_id],
          rejected: [{ event_id: second.event_id, reason: 'unsupported_type' }],
        },
      },
    ])
  })

  test('[SEC-012] 1 and 200 events are a batch, 0 and 201 are none', async () => {
    const many = Array.from({ length: 201 }, good)
    for (const [events, expected] of [
      [[], 422],
      [many, 422],
      [many.slice(0, 200), 200],
      [[good()], 200],
    ] as const)
      expect((await post({ events })).status).toBe(expected)
  })

  test('[SEC-022] [SEC-023] [SEC-024] what is no JSON, lacks a field or has one of a wrong type answers 422, and nothing is stored', async () => {
    const before = await eventCount()
    const without = (field: string) => {
      const { [field as 'seq']: _left, ...rest } = good()
      return rest
    }
    const fields = ['event_id', 'type', 'company_id', 'server_id', 'host_id', 'seq', 'occurred_at', 'payload']
    const wrong: readonly Json[] = [
      '{"events":[',
      '"text"',
      '[]',
      'null',
      '{}',
      { events: {} },
      { events: [good(), null] },
      { events: [good(), []] },
      ...fields.map(field => ({ events: [good(), without(field)] })),
      ...[
        { event_id: hex64().toUpperCase() },
        { event_id: hex64().slice(1) },
        { event_id: 5 },
        { type: 5 },
        { company_id: null },
        { server_id: 5 },
        { host_id: null },
        { seq: -1 },
        { seq: 1.5 },
        { seq: '1' },
        { seq: 2 ** 53 },
        { occurred_at: '2026-06-01' },
        { occurred_at: '2026-06-01T12:00Z' },
        { occurred_at: '2026-02-30T12:00:00Z' },
        { occurred_at: 1_780_000_000 },
        { payload: [] },
        { payload: 'x' },
        { payload: null },
      ].map(change => ({ events: [good(), { ...good(), ...change }] })),
    ]
    for (const body of wrong) {
      const { status, body: answer } = await post(body)
      expect([status, answer.error?.code], JSON.stringify(body)?.slice(0, 300)).toEqual([422, 'invalid_envelope'])
    }
    expect(await eventCount()).toBe(before)
  })

  test('[SEC-004] [SEC-022] a body is read whatever it calls itself, compressed or not, and never refused with another status', async () => {
    const send = async (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>): Promise<number> =>
      (
        await fetch(`${hub.url}/api/v1/security/matcher/events`, {
          method: 'POST',
          headers: { Authorization: `Bearer ${matcher.token}`, ...headers },
          body,
        })
      ).status
    const text = () => JSON.stringify({ events: [good()] })
    expect(await send(text(), { 'Content-Type': 'text/plain' })).toBe(200)
    expect(await send(text(), { Accept: 'image/png' })).toBe(200)
    expect(await send(gzipSync(text()), { 'Content-Encoding': 'gzip' })).toBe(200)
    expect(await send(zstdCompressSync(text()), { 'Content-Encoding': 'zstd' })).toBe(200)
    expect(await send(text(), { 'Content-Encoding': 'br' })).toBe(422)
    expect(await send(gzipSync(text()).subarray(0, -20), { 'Content-Encoding': 'gzip' })).toBe(422)
    expect(await send(zstdCompressSync(text()).subarray(0, -20), { 'Content-Encoding': 'zstd' })).toBe(422)
    const bomb = Buffer.alloc(65 * 1024 * 1024, ' ')
    expect(await send(gzipSync(bomb), { 'Content-Encoding': 'gzip' })).toBe(422)
    expect(await send(zstdCompressSync(bomb), { 'Content-Encoding': 'zstd' })).toBe(422)
    expect(await send(Buffer.alloc(16 * 1024 * 1024 + 1, ' '), {})).toBe(422)
    expect(await send(`{"events":${'['.repeat(100_000)}`, {})).toBe(422)
    const large = JSON.stringify({ events: [opened(host, findingPayload({ note: 'x'.repeat(15 * 1024 * 1024) }))] })
    expect(await send(large, {})).toBe(200)
    expect(await send('\xff\xfe', {})).toBe(422)
  }, 120_000)
})

describe('each event of a batch', () => {
  const reasonOf = async (event: Json): Promise<string> => {
    const before = await eventCount()
    const { accepted, rejected } = await send(matcher.call, [event])
    expect(await eventCount()).toBe(before + accepted.length)
    return rejected[0]?.reason ?? 'accepted'
  }

  test('[SEC-015] [SEC-025] an event that is known is accepted again and not applied twice, in one batch and in the next', async () => {
    const event = good()
    const again = {
      ...event,
      payload: findingPayload({ finding_key: event.payload.finding_key, vuln_id: 'CVE-2026-9' }),
    }
    expect(await send(matcher.call, [event, again])).toEqual({ accepted: [event.event_id], rejected: [] })
    expect(await send(matcher.call, [again])).toEqual({ accepted: [event.event_id], rejected: [] })
    const [row] = await hub.hub.database
      .client`select type, payload from security_finding_events where event_id = ${event.event_id}`
    expect([row?.type, row?.payload.vuln_id]).toEqual(['finding.opened', 'CVE-2026-0001'])
    const finding = (await findingsOf(hub, owner.companyId)).get(event.payload.finding_key)
    expect(finding.vuln_id).toBe('CVE-2026-0001')
  })

  test('[SEC-017] [SEC-020] a host that is not known, of another company or with an id that is none is an unknown server', async () => {
    const stranger = await hub.tenant()
    const foreign = await enroll(stranger, matcher.call)
    const payload = findingPayload()
    expect(await reasonOf(opened(host, payload, { host_id: crypto.randomUUID() }))).toBe('unknown_server')
    expect(await reasonOf(opened(host, payload, { host_id: 'x\0' }))).toBe('unknown_server')
    expect(await reasonOf(opened(host, payload, { host_id: foreign.hostId }))).toBe('unknown_server')
    expect(await reasonOf(opened(foreign, payload, { company_id: owner.companyId }))).toBe('unknown_server')
    expect(await reasonOf(opened(host, payload, { company_id: 'nobody' }))).toBe('unknown_server')
    expect((await findingsOf(hub, stranger.companyId)).size).toBe(0)
  })

  test('[SEC-018] [SEC-026] the server of an event is that of its host, or null', async () => {
    const other = await newServer(owner)
    expect(await reasonOf(opened(host, findingPayload(), { server_id: other }))).toBe('unknown_server')
    expect(await reasonOf(opened(host, findingPayload(), { server_id: 'x' }))).toBe('unknown_server')
    const payload = findingPayload()
    expect(await reasonOf(opened(host, payload, { server_id: null }))).toBe('accepted')
    expect((await findingsOf(hub, owner.companyId)).get(payload.finding_key).server_id).toBe(serverId)
    expect(await reasonOf(opened(host, findingPayload(), { server_id: serverId.toUpperCase() }))).toBe('accepted')
  })

  test('[SEC-019] findings of a host without a server are kept by host', async () => {
    const loose = await enroll(owner, matcher.call)
    const payload = findingPayload()
    expect(await reasonOf(opened(loose, payload))).toBe('accepted')
    const { host_id, server_id } = (await findingsOf(hub, owner.companyId)).get(payload.finding_key)
    expect([host_id, server_id]).toEqual([loose.hostId, null])
  })

  test('[SEC-027] [SEC-028] [SEC-029] a deleted server, a revoked host and a removed company are unknown; a suspended company is not', async () => {
    const gone = await newServer(owner)
    const onGone = await enroll(owner, matcher.call, { serverId: gone })
    await owner.call('DELETE', `/servers/${gone}`)
    expect(await reasonOf(opened(onGone, findingPayload()))).toBe('unknown_server')
    expect(await reasonOf(opened(onGone, findingPayload(), { server_id: null }))).toBe('unknown_server')
    const revoked = await enroll(owner, matcher.call)
    await owner.call('POST', `/security/scan-hosts/${revoked.hostId}/revoke`)
    expect(await reasonOf(opened(revoked, findingPayload()))).toBe('unknown_server')
    const tenant = await hub.tenant()
    const theirs = await enroll(tenant, matcher.call)
    const known = opened(theirs, findingPayload())
    await hub.hub.database.client`update companies set suspended_at = now() where id = ${tenant.companyId}`
    expect(await reasonOf(known)).toBe('accepted')
    await hub.hub.database.client`update companies set deleted_at = now() where id = ${tenant.companyId}`
    expect(await reasonOf(opened(theirs, findingPayload()))).toBe('unknown_server')
    // What was accepted once is accepted again, whatever has become of its host.
    expect((await send(matcher.call, [known])).accepted).toEqual([known.event_id])
  })

  test('[SEC-013] a batch may hold events of several companies, each held to its own', async () => {
    const [one, two] = [await hub.tenant(), await hub.tenant()]
    const [a, b] = [await enroll(one, matcher.call), await enroll(two, matcher.call)]
    const key = hex64()
    const events = [
      opened(a, findingPayload({ finding_key: key, vuln_id: 'CVE-2026-1' })),
      opened(b, findingPayload({ finding_key: key, vuln_id: 'CVE-2026-2' })),
      opened(a, findingPayload(), { company_id: two.companyId }),
    ]
    const { accepted, rejected } = await send(matcher.call, events)
    expect(accepted).toEqual(events.slice(0, 2).map(event => event.event_id))
    expect(rejected).toEqual([{ event_id: events[2]!.event_id, reason: 'unknown_server' }])
    const vulnsOf = async (tenant: Tenant) =>
      [...(await findingsOf(hub, tenant.companyId)).values()].map(finding => finding.vuln_id)
    expect([await vulnsOf(one), await vulnsOf(two)]).toEqual([['CVE-2026-1'], ['CVE-2026-2']])
  })

  test('[SEC-030] an unknown type is told before its payload is looked at, and after its host', async () => {
    expect(await reasonOf(eventOf(host, 'finding.reopened', {}))).toBe('unsupported_type')
    expect(await reasonOf(eventOf(host, 'x\0', {}))).toBe('unsupported_type')
    expect(await reasonOf(eventOf(host, 'x', {}, { host_id: crypto.randomUUID() }))).toBe('unknown_server')
  })

  const required: Readonly<Record<string, readonly [Json, string]>> = {
    'finding.opened': [
      findingPayload(),
      `finding_key kind vuln_id aliases advisory_ids ecosystem package_key packages installed_version fixed_version fix_status
       fix_channel severity_label minor kernel reboot_required first_seen_at db_version`,
    ],
    'finding.resolved': [resolvedPayload(hex64()), 'finding_key kind resolved_reason resolved_at db_version'],
    'server.scanned': [scannedPayload(), 'scanned_at db_version os match_status'],
  }
  test.each(['finding.opened', 'finding.updated', 'finding.resolved', 'server.scanned'])(
    '[SEC-031] [SEC-074] [SEC-076] a payload of %s without a required field is invalid, without any other it is not',
    async type => {
      const [payload, names] = required[type === 'finding.updated' ? 'finding.opened' : type]!
      const needed = new Set(names.split(/\s+/))
      for (const field of Object.keys(payload)) {
        const { [field]: _left, ...rest } = { ...payload, finding_key: hex64() }
        expect([field, await reasonOf(eventOf(host, type, rest))]).toEqual([
          field,
          // The keys of a report have none of a finding.
          needed.has(field) ? 'invalid_payload' : 'accepted',
        ])
      }
    },
  )

  const wrong: readonly [id: string, type: string, change: Json][] = [
    ['[SEC-056]', 'finding.opened', { finding_key: 'abc' }],
    ['[SEC-057]', 'finding.opened', { kind: 'secret' }],
    ['[SEC-057]', 'finding.opened', { kind: 'check' }],
    ['[SEC-058]', 'finding.opened', { vuln_id: 5 }],
    ['[SEC-058]', 'finding.opened', { vuln_id: 'x'.repeat(5000) }],
    ['[SEC-059]', 'finding.opened', { aliases: null }],
    ['[SEC-059]', 'finding.opened', { advisory_ids: 'DSA-1' }],
    ['[SEC-059]', 'finding.opened', { aliases: [5] }],
    ['[SEC-062]', 'finding.opened', { packages: [{ name: 'x' }] }],
    ['[SEC-062]', 'finding.opened', { packages: {} }],
    ['[SEC-064]', 'finding.opened', { fix_status: 'soon' }],
    ['[SEC-065]', 'finding.opened', { fix_status: 'upgrade_release' }],
    ['[SEC-066]', 'finding.opened', { fix_channel: 'paid' }],
    ['[SEC-067]', 'finding.opened', { severity_label: null }],
    ['[SEC-068]', 'finding.opened', { minor: 'no' }],
    ['[SEC-068]', 'finding.opened', { kernel: 0 }],
    ['[SEC-068]', 'finding.opened', { no_distro_fix: 'x' }],
    ['[SEC-072]', 'finding.opened', { first_seen_at: 'yesterday' }],
    ['[SEC-073]', 'finding.opened', { db_version: '1' }],
    ['[SEC-075]', 'finding.resolved', { resolved_reason: 'gone' }],
    ['[SEC-057]', 'finding.resolved', { kind: 'secret' }],
    ['[SEC-077]', 'server.scanned', { match_status: 'fine' }],
    ['[SEC-078]', 'server.scanned', { release_support: 'long' }],
    ['[SEC-076]', 'server.scanned', { os: 'debian' }],
  ]
  test.each(wrong)('%s %s with %j is invalid', async (_id, type, change) => {
    const [payload] = required[type]!
    expect(await reasonOf(eventOf(host, type, { ...payload, finding_key: hex64(), ...change }))).toBe('invalid_payload')
  })

  test('text that the database cannot store makes only its event invalid, wherever it stands', async () => {
    for (const change of [
      { vuln_id: 'a\0b' },
      { package_key: '\ud800' },
      { further: { deep: ['\udc00'] } },
      { 'a\0': 1 },
    ])
      expect(await reasonOf(opened(host, findingPayload(change)))).toBe('invalid_payload')
  })

  test('[SEC-082] [SEC-033] [SEC-050] further fields are kept in the event that is stored', async () => {
    const event = opened(host, findingPayload({ further: { deep: ['ä', 1] } }), { seq: 2 ** 53 - 1 })
    expect(await reasonOf(event)).toBe('accepted')
    const [row] = await hub.hub.database.client`
      select seq::text, type, occurred_at, payload from security_finding_events where event_id = ${event.event_id}`
    expect([row?.seq, row?.type, row?.occurred_at, row?.payload]).toEqual([
      String(2 ** 53 - 1),
      'finding.opened',
      '2026-06-01 12:00:00+00',
      event.payload,
    ])
  })
})
