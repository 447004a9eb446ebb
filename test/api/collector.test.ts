import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sha256Hex } from '../../core/series/hash.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

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

const sql = (strings: TemplateStringsArray, ...values: (string | number | null)[]) =>
  hub.hub.database.client(strings, ...values)

let servers = 0
async function enrolled(
  by: Tenant = tenant,
): Promise<{ agentId: string; serverId: string; token: string; licenseId: string }> {
  const name = `m${++servers}`
  await by.call('POST', '/servers', { name, hostname: name })
  const license = (await by.call('POST', '/monitoring/licenses', { name })).body
  const { data } = (
    await collector.call('POST', '/enroll', { license: license.token, hostname: name, machine_id: name })
  ).body
  return { agentId: data.agent_id, serverId: data.server_id, token: data.agent_token, licenseId: license.data.id }
}
const agent = async (id: string): Promise<Json> =>
  (await collector.call('GET', `/agents/lookup?agent_id=${id}`)).body.data.agent
const isRecent = (text: string) => Math.abs(Date.parse(text) - Date.now()) < 60_000

/** Every record of a feed, page by page. */
async function pull(feed: string, name: string, since = 0, limit = 7): Promise<Json[]> {
  const all: Json[] = []
  for (let at = since; ; ) {
    const { body } = await collector.call('GET', `/${feed}?since=${at}&limit=${limit}`)
    expect(body.data[name].length).toBeLessThanOrEqual(limit)
    all.push(...body.data[name])
    at = body.data.next_since
    if (!body.data.more) return all
  }
}
const cursor = async (feed: string, name: string) =>
  Math.max(0, ...(await pull(feed, name)).map(item => item.sync_version))

describe('the family', () => {
  test('[COL-001] [COL-002] [COL-003] [COL-005] [HUB-057] only collectors may call; every answer carries server_time', async () => {
    const { status, body } = await tenant.call('GET', '/monitoring/collector/rules')
    expect([status, body.error.code, isRecent(body.server_time)]).toEqual([403, 'forbidden', true])
    const ok = await collector.call('GET', '/rules')
    expect([ok.status, isRecent(ok.body.server_time)]).toEqual([200, true])
    const missing = await collector.call('GET', '/nope')
    expect([missing.status, missing.body.error.code, isRecent(missing.body.server_time)]).toEqual([
      404,
      'not_found',
      true,
    ])
    const bad = await collector.call('GET', '/rules?since=-1')
    expect([bad.status, typeof bad.body.error.message, isRecent(bad.body.server_time)]).toEqual([422, 'string', true])
    const open = await fetch(`${hub.url}/api/v1/monitoring/collector/rules`)
    expect([open.status, ((await open.json()) as Json).error.code]).toEqual([401, 'unauthorized'])
  })

  test('[HUB-050] the group has a limit of its own, set by configuration', async () => {
    const { headers } = await collector.call('GET', '/rules?limit=1')
    expect(headers.get('x-ratelimit-limit')).toBe('1000000')
    const other = await TestHub.start({ 'rate.collector_per_minute': 2 })
    try {
      const { call } = await other.collector()
      expect((await call('GET', '/rules')).headers.get('x-ratelimit-limit')).toBe('2')
      await call('GET', '/rules')
      const { status, body, headers } = await call('GET', '/rules')
      expect([status, body.error.code]).toEqual([429, 'rate_limited'])
      expect(Number(headers.get('retry-after'))).toBeWithin(1, 61)
    } finally {
      await other.running.stop()
    }
  })

  test('[HUB-047] [HUB-050] the limits are 60 and 1,200 a minute unless configured', async () => {
    const other = await TestHub.start({ 'rate.default_per_minute': undefined, 'rate.collector_per_minute': undefined })
    try {
      const [own, { call }] = [await other.tenant(), await other.collector()]
      expect((await own.call('GET', '/me')).headers.get('x-ratelimit-limit')).toBe('60')
      expect((await call('GET', '/rules')).headers.get('x-ratelimit-limit')).toBe('1200')
      for (let n = 1; n < 60; n++) expect((await own.call('GET', '/me')).status).toBe(200)
      expect((await own.call('GET', '/me')).status).toBe(429)
    } finally {
      await other.running.stop()
    }
  })
})

describe('agents feed', () => {
  test('[COL-007] [COL-008] [COL-009] [COL-010] [COL-013] [COL-004] changed agents with hashes, attributes and version, revoked ones too', async () => {
    const start = await cursor('agents', 'agents')
    const one = await enrolled()
    const two = await enrolled()
    await tenant.call('PATCH', `/servers/${one.serverId}`, {
      status: 'maintenance',
      subnet_id: 'net-1',
      datacenter: 'dc-1',
    })
    await tenant.call('POST', `/monitoring/agents/${two.agentId}/revoke`)
    const records = await pull('agents', 'agents', start, 1)
    expect(records.map(item => item.agent_id)).toEqual([one.agentId, two.agentId])
    expect(records[0]).toMatchObject({
      company_id: tenant.companyId,
      server_id: one.serverId,
      state: 'active',
      token_hash: sha256Hex(one.token),
      prev_token_hash: null,
      server_status: 'maintenance',
      subnet_id: 'net-1',
      datacenter: 'dc-1',
      interval_seconds: 30,
      version: 2,
    })
    // Additive, for the labels of agent.down and agent.up (G-80).
    expect(records[0].hostname).toBe((await tenant.call('GET', `/monitoring/agents/${one.agentId}`)).body.data.hostname)
    expect(records[0].hostname).not.toBe('')
    expect(records[1].state).toBe('revoked')
    const again = await collector.call('GET', `/agents?since=${records[1].sync_version}`)
    expect(again.body.data).toEqual({ agents: [], next_since: records[1].sync_version, more: false })
  })

  test('[COL-011] [COL-012] limit is 100 unless given and at most 1000; below 1 it is refused', async () => {
    const own = await hub.tenant()
    await sql`insert into monitoring_agents (id, company_id, token_hash, state, sync_version)
      select gen_random_uuid(), ${own.companyId}, md5(n::text), 'active', 1000000 + n from generate_series(1, 1100) n`
    const size = async (query: string) => (await collector.call('GET', `/agents?since=1000000&${query}`)).body.data
    expect((await size('')).agents).toHaveLength(100)
    expect((await size('limit=5000')).agents).toHaveLength(1000)
    expect(await size('limit=5000')).toMatchObject({ next_since: 1_001_000, more: true })
    expect((await collector.call('GET', '/agents?limit=0')).status).toBe(422)
    const huge = '9'.repeat(20)
    expect((await size(`limit=${huge}`)).agents).toHaveLength(1000)
    expect((await collector.call('GET', `/agents?since=${Number.MAX_SAFE_INTEGER}`)).body.data).toEqual({
      agents: [],
      next_since: Number.MAX_SAFE_INTEGER,
      more: false,
    })
    for (const since of [huge, '9'.repeat(400), `-${huge}`, '1e3', '0x10'])
      expect([since, (await collector.call('GET', `/agents?since=${since}`)).status]).toEqual([since, 422])
    await sql`delete from monitoring_agents where company_id = ${own.companyId}`
  })

  test('[COL-015] [COL-016] look-ups by token hash and by agent answer the record or 404', async () => {
    const { agentId, token } = await enrolled()
    expect(
      (await collector.call('GET', `/agents?since=0&token_hash=${sha256Hex(token)}`)).body.data.agent.agent_id,
    ).toBe(agentId)
    expect((await agent(agentId)).agent_id).toBe(agentId)
    for (const path of [
      `/agents?token_hash=${sha256Hex('nobody')}`,
      `/agents/lookup?agent_id=${crypto.randomUUID()}`,
      '/agents/lookup',
    ])
      expect((await collector.call('GET', path)).body.error.code).toBe('not_found')
  })
})

describe('rules feed', () => {
  test('[COL-018] [COL-019] [COL-029] rules of all companies with every field of the contract', async () => {
    const other = await hub.tenant()
    const records = await pull('rules', 'rules', 0, 500)
    const companies = new Set(records.map(item => item.company_id))
    expect(companies.has(tenant.companyId) && companies.has(other.companyId)).toBe(true)
    const cpu = records.find(item => item.metric === 'cpu_usage_percent' && item.company_id === tenant.companyId)
    expect(Object.keys(cpu).sort()).toEqual(
      [
        'id',
        'version',
        'sync_version',
        'company_id',
        'name',
        'kind',
        'scope',
        'resolved_server_ids',
        'metric',
        'matchers',
        'operator',
        'threshold',
        'for_seconds',
        'recover_threshold',
        'recover_for_seconds',
        'severity',
        'no_data',
        'renotify_seconds',
        'enabled',
        'deleted',
      ].sort(),
    )
    expect(Object.keys(cpu.scope).sort()).toEqual(['all', 'datacenters', 'environments', 'roles', 'server_ids', 'tags'])
  })

  test('[COL-020] [COL-021] [COL-022] [COL-023] [COL-024] [COL-025] [COL-026] pages ascend by sync_version, which only grows', async () => {
    const records = await pull('rules', 'rules', 0, 3)
    const numbers = records.map(item => item.sync_version)
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
    expect(new Set(numbers).size).toBe(numbers.length)
    const last = numbers.at(-1)
    expect((await collector.call('GET', `/rules?since=${last}`)).body.data).toEqual({
      rules: [],
      next_since: last,
      more: false,
    })
    const rule = (await tenant.call('GET', '/monitoring/rules')).body.data[0]
    await tenant.call('PATCH', `/monitoring/rules/${rule.id}`, { name: 'renamed' })
    const [changed] = (await collector.call('GET', `/rules?since=${last}`)).body.data.rules
    expect(changed).toMatchObject({ id: rule.id, version: rule.version + 1, sync_version: last + 1 })
    expect((await collector.call('GET', '/rules?limit=9999')).status).toBe(200)
  })

  test('[COL-027] [COL-028] [HRL-007] a disabled and a deleted rule appear once more with a new number', async () => {
    const [first, second] = (await tenant.call('GET', '/monitoring/rules')).body.data
    const start = await cursor('rules', 'rules')
    await tenant.call('POST', `/monitoring/rules/${first.id}/disable`)
    await tenant.call('DELETE', `/monitoring/rules/${second.id}`)
    const records = await pull('rules', 'rules', start)
    expect(records.map(item => [item.id, item.enabled, item.deleted])).toEqual([
      [first.id, false, false],
      [second.id, false, true],
    ])
  })

  test('[COL-089] no change that is committed later gets a number below one already served', async () => {
    const own = await hub.tenant()
    const start = await cursor('rules', 'rules')
    const body = (n: number) => ({
      name: `r${n}`,
      severity: 'info',
      metric: 'cpu_load1',
      operator: '>',
      threshold: n,
      scope: { all: true },
    })
    const companies = [own, await hub.tenant(), await hub.tenant()]
    const after = await cursor('rules', 'rules')
    let isWriting = true
    const writers = Promise.all(
      companies.map(async company => {
        for (let n = 0; n < 15; n++) await company.call('POST', '/monitoring/rules', body(n))
      }),
    ).then(() => {
      isWriting = false
    })
    const seen: number[] = []
    let at = after
    while (isWriting) {
      const { data } = (await collector.call('GET', `/rules?since=${at}&limit=500`)).body
      seen.push(...data.rules.map((item: Json) => item.sync_version))
      at = data.next_since
    }
    await writers
    seen.push(...(await pull('rules', 'rules', at)).map(item => item.sync_version))
    expect(after).toBeGreaterThan(start)
    expect(seen).toEqual(Array.from({ length: 45 }, (_, n) => after + 1 + n))
  })
})

describe('seen and heartbeat', () => {
  test('[COL-045] [COL-046] [COL-047] [HAG-005] last_seen_at only grows and never lies in the future; the version is taken over', async () => {
    const { agentId } = await enrolled()
    const seen = async (last_seen_at: string, more: Json = {}) =>
      (await collector.call('POST', '/agents/seen', { agents: [{ agent_id: agentId, last_seen_at, ...more }] })).body
        .data
    const unknown = crypto.randomUUID()
    expect(await seen('2026-01-01T10:00:00Z', { agent_version: '9.9.9' })).toEqual({ updated: 1, unknown: [] })
    await seen('2026-01-01T09:00:00Z')
    const shown = async () => (await tenant.call('GET', `/monitoring/agents/${agentId}`)).body.data
    expect(await shown()).toMatchObject({ last_seen_at: '2026-01-01T10:00:00.000Z', agent_version: '9.9.9' })
    await seen('2999-01-01T00:00:00Z')
    expect(isRecent((await shown()).last_seen_at)).toBe(true)
    // Of a clock that was ahead and is right again.
    await hub.hub.database.client`
      update monitoring_agents set last_seen_at = now() + interval '2 hours' where id = ${agentId}`
    await seen(new Date().toISOString())
    expect(isRecent((await shown()).last_seen_at)).toBe(true)
    const { body } = await collector.call('POST', '/agents/seen', {
      agents: [{ agent_id: unknown, last_seen_at: '2026-01-01T10:00:00Z' }],
    })
    expect(body.data).toEqual({ updated: 0, unknown: [unknown] })
    const many = Array.from({ length: 1001 }, () => ({ agent_id: unknown, last_seen_at: '2026-01-01T10:00:00Z' }))
    expect((await collector.call('POST', '/agents/seen', { agents: many })).status).toBe(422)
  })

  test('[COL-045] [COL-047] an agent that says nothing readable of its version does not cost the others of the report theirs', async () => {
    const [odd, plain] = [await enrolled(), await enrolled()]
    const at = new Date().toISOString()
    const report = (version: string) =>
      collector.call('POST', '/agents/seen', {
        agents: [
          { agent_id: odd.agentId, last_seen_at: at, agent_version: version },
          { agent_id: plain.agentId, last_seen_at: at, agent_version: '3.2.1' },
        ],
      })
    const versions = async () =>
      Promise.all(
        [odd, plain].map(
          async each => (await tenant.call('GET', `/monitoring/agents/${each.agentId}`)).body.data.agent_version,
        ),
      )
    expect((await report('1.2.3')).body.data).toEqual({ updated: 2, unknown: [] })
    for (const blank of ['', ' ', '\u00a0'])
      expect([(await report(blank)).body.data, await versions()]).toEqual([
        { updated: 2, unknown: [] },
        ['1.2.3', '3.2.1'],
      ])
  })

  test('[COL-048] [COL-049] [COL-050] [COL-051] agents go to the reporting collector when theirs is none or silent', async () => {
    const { agentId } = await enrolled()
    const other = await hub.collector()
    const report = (by: Collector, collector_id: string | null) =>
      by.call('POST', '/agents/seen', {
        collector_id,
        agents: [{ agent_id: agentId, last_seen_at: new Date().toISOString() }],
      })
    const owner = async () => (await agent(agentId)).collector_id
    expect(await owner()).toBeNull()
    await report(collector, null)
    expect(await owner()).toBeNull()
    await report(collector, collector.id)
    expect(await owner()).toBe(collector.id)
    await collector.call('POST', '/heartbeat', { collector_id: collector.id })
    await report(other, other.id)
    expect(await owner()).toBe(collector.id)
    await sql`update monitoring_collectors set last_heartbeat_at = now() - interval '181 seconds' where id = ${collector.id}`
    await report(other, other.id)
    expect(await owner()).toBe(other.id)
  })

  test('[COL-061] [COL-062] [COL-063] [COL-064] [COL-065] [COL-066] a heartbeat shows on the collector screen, for super administrators only', async () => {
    const beat = { collector_id: collector.id, version: '4.5.6', agent_count: 12, ingest_rps: 3.5, outbox_depth: 7 }
    expect((await collector.call('POST', '/heartbeat', beat)).body.data).toEqual({ collector_id: collector.id })
    const root = await hub.user(tenant.companyId, ['*'], { superAdmin: true })
    const { data } = (await root.call('GET', `/monitoring/collectors/${collector.id}`)).body
    expect(data).toMatchObject({
      id: collector.id,
      status: 'online',
      version: '4.5.6',
      agent_count: 12,
      ingest_rps: 3.5,
      outbox_depth: 7,
    })
    expect(data).toContainAllKeys([
      'id',
      'name',
      'base_url',
      'admin_url',
      'status',
      'version',
      'last_heartbeat_at',
      'agent_count',
      'ingest_rps',
      'outbox_depth',
      'settings',
    ])
    for (const field of ['base_url', 'admin_url'])
      for (const value of ['ftp://x', 'x', 'https://'])
        expect(await root.call('PATCH', `/monitoring/collectors/${collector.id}`, { [field]: value })).toMatchObject({
          status: 422,
          body: { errors: { [field]: [expect.any(String)] } },
        })
    expect((await tenant.call('GET', '/monitoring/collectors')).status).toBe(403)
    const unknown = await collector.call('POST', '/heartbeat', { ...beat, collector_id: crypto.randomUUID() })
    expect(unknown.body.error.code).toBe('not_found')
    for (const field of ['agent_count', 'outbox_depth'])
      for (const [count, status] of [
        [2 ** 31 - 1, 200],
        [2 ** 31, 422],
        [-1, 422],
      ] as const)
        expect((await collector.call('POST', '/heartbeat', { ...beat, [field]: count })).status).toBe(status)
  })
})

describe('inventory', () => {
  const facts = { os: { name: 'Debian' }, memory_total_bytes: '8589934592', cpu: { threads: 8, cores: 4 } }
  const item = (of: { agentId: string; serverId: string }, more: Json = {}): Json => ({
    agent_id: of.agentId,
    company_id: tenant.companyId,
    server_id: of.serverId,
    reported_at: '2026-05-01T10:00:00Z',
    facts,
    ...more,
  })

  test('[COL-052] [COL-056] [COL-060] [HSV-023] [HSV-024] [HSV-025] [HSV-026] the newest report is kept, with the hash of its canonical JSON', async () => {
    const server = await enrolled()
    const send = async (more: Json) =>
      (await collector.call('POST', '/inventory', { items: [item(server, more)] })).body.data
    expect(await send({})).toEqual({ accepted: 1, rejected: [] })
    expect(await send({ reported_at: '2026-05-02T10:00:00Z', facts: { os: { name: 'Debian 14' } } })).toMatchObject({
      accepted: 1,
    })
    expect(await send({ reported_at: '2026-05-01T11:00:00Z', facts: { os: { name: 'older' } } })).toMatchObject({
      accepted: 1,
    })
    const { data } = (await tenant.call('GET', `/servers/${server.serverId}/inventory`)).body
    expect(data.facts).toEqual({ os: { name: 'Debian 14' } })
    expect(data.facts_hash).toBe(sha256Hex('{"os":{"name":"Debian 14"}}'))
    await send({ reported_at: '2026-05-03T10:00:00Z' })
    const sorted = '{"cpu":{"cores":4,"threads":8},"memory_total_bytes":"8589934592","os":{"name":"Debian"}}'
    expect((await tenant.call('GET', `/servers/${server.serverId}/inventory`)).body.data.facts_hash).toBe(
      sha256Hex(sorted),
    )
  })

  test('[COL-057] [COL-058] [COL-059] items that do not match their agent are rejected and store nothing', async () => {
    const [server, other, revoked] = [await enrolled(), await enrolled(), await enrolled()]
    const foreign = await hub.tenant()
    await tenant.call('POST', `/monitoring/agents/${revoked.agentId}/revoke`)
    const { body } = await collector.call('POST', '/inventory', {
      items: [
        item(server, { server_id: other.serverId }),
        item(server, { company_id: foreign.companyId }),
        item(server, { agent_id: crypto.randomUUID() }),
        item(server, { facts: 'none' }),
        item(revoked),
        item(server),
      ],
    })
    expect(body.data.accepted).toBe(1)
    expect(body.data.rejected.map((entry: Json) => entry.reason)).toEqual([
      'agent_mismatch',
      'agent_mismatch',
      'agent_mismatch',
      'invalid_facts',
      'agent_revoked',
    ])
    for (const id of [other.serverId, revoked.serverId])
      expect((await tenant.call('GET', `/servers/${id}/inventory`)).status).toBe(404)
  })

  test('[COL-053] [COL-054] [COL-055] a batch that is none is refused as a whole', async () => {
    const server = await enrolled()
    const many = Array.from({ length: 101 }, () => item(server))
    for (const body of [{ items: many }, { items: [] }, {}, [], { items: ['x'] }, '{"items":'])
      expect((await collector.call('POST', '/inventory', body)).body.error.code).toBe('invalid_batch')
    const large = await collector.call('POST', '/inventory', {
      items: [item(server, { facts: { timezone: 'x'.repeat(1 << 20) } })],
    })
    expect([large.status, large.body.error.code]).toEqual([413, 'too_large'])
    expect((await tenant.call('GET', `/servers/${server.serverId}/inventory`)).status).toBe(404)
  })
})

describe('renewal', () => {
  const renew = (agentId: string, token: string) =>
    collector.call('POST', `/agents/${agentId}/renew`, { token_hash: sha256Hex(token), collector_id: collector.id })

  test('[COL-074] [COL-075] [COL-078] [COL-079] [COL-086] [COL-088] [AUD-005] [LIC-046] the current hash gives a new token, the old one stays for 24 hours', async () => {
    const server = await enrolled()
    const successor = (await tenant.call('POST', `/monitoring/licenses/${server.licenseId}/regenerate`)).body.data
    const before = await agent(server.agentId)
    const { status, body } = await renew(server.agentId, server.token)
    expect(status).toBe(200)
    const { agent_token, old_token_valid_until, agent: record } = body.data
    expect(agent_token).toMatch(/^agt_[0-9A-Za-z]{43}$/)
    const hours = (Date.parse(old_token_valid_until) - Date.now()) / 3_600_000
    expect(hours).toBeWithin(23.9, 24.01)
    expect(record).toEqual({
      agent_id: server.agentId,
      company_id: tenant.companyId,
      server_id: server.serverId,
      state: 'active',
      token_hash: sha256Hex(agent_token),
      prev_token_hash: sha256Hex(server.token),
      prev_token_expires_at: old_token_valid_until,
      version: before.version + 1,
    })
    expect((await agent(server.agentId)).sync_version).toBeGreaterThan(before.sync_version)
    for (const token of [agent_token, server.token])
      expect((await collector.call('GET', `/agents?token_hash=${sha256Hex(token)}`)).body.data.agent.agent_id).toBe(
        server.agentId,
      )
    const audit = await tenant.call('GET', `/audit-log/subjects/agent/${server.agentId}`)
    expect(audit.body.data[0].action).toBe('agent.rotate')
    for (const secret of [agent_token, sha256Hex(agent_token)]) expect(JSON.stringify(audit.body)).not.toContain(secret)
    expect((await tenant.call('GET', `/monitoring/agents/${server.agentId}`)).body.data.license_id).toBe(successor.id)
  })

  test('[COL-080] the previous hash in validity replaces the current token and keeps the overlap', async () => {
    const server = await enrolled()
    const first = (await renew(server.agentId, server.token)).body.data
    const second = (await renew(server.agentId, server.token)).body.data
    expect(second.agent.token_hash).not.toBe(first.agent.token_hash)
    expect(second.agent.prev_token_hash).toBe(sha256Hex(server.token))
    expect(second.old_token_valid_until).toBe(first.old_token_valid_until)
    expect((await collector.call('GET', `/agents?token_hash=${first.agent.token_hash}`)).status).toBe(404)
  })

  test('[COL-077] [COL-081] [COL-082] [COL-083] [COL-084] [COL-085] wrong, expired, revoked and unknown cannot be told apart', async () => {
    const [wrong, expired, revoked] = [await enrolled(), await enrolled(), await enrolled()]
    await renew(expired.agentId, expired.token)
    await sql`update monitoring_agents set prev_token_expires_at = now() where id = ${expired.agentId}`
    await tenant.call('POST', `/monitoring/agents/${revoked.agentId}/revoke`)
    const answers = [
      await renew(wrong.agentId, 'nonsense'),
      await renew(expired.agentId, expired.token),
      await renew(revoked.agentId, revoked.token),
      await renew(crypto.randomUUID(), wrong.token),
      await renew('not-a-uuid', wrong.token),
    ]
    for (const { status, body } of answers) expect([status, body.error]).toEqual([404, answers[0]!.body.error])
    expect(answers[0]!.body.error.code).toBe('not_found')
  })

  test('[COL-076] [COL-087] more than three rotations an hour answer 429, also at the same time', async () => {
    const server = await enrolled()
    const answers = await Promise.all(Array.from({ length: 6 }, () => renew(server.agentId, server.token)))
    expect(answers.filter(answer => answer.status === 200)).toHaveLength(3)
    const refused = answers.filter(answer => answer.status !== 200)
    expect(refused.map(answer => answer.body.error.code)).toEqual(['rate_limited', 'rate_limited', 'rate_limited'])
    expect(Number(refused[0]!.headers.get('retry-after'))).toBeWithin(3000, 3601)
  })
})

describe('settings and attributes', () => {
  test('[COL-067] [COL-068] [COL-069] [COL-070] [COL-072] [COL-073] settings of the one company, numbers or null', async () => {
    const own = await hub.tenant({ agent_quota: null, metrics_retention_days: 90 })
    const read = async (path = own.companyId) => (await collector.call('GET', `/settings/${path}`)).body
    expect((await read()).data).toEqual({
      company_id: own.companyId,
      group_down_min: null,
      group_down_ratio: null,
      group_down_window_seconds: null,
      metrics_retention_days: 90,
      metrics_retention_previous_days: null,
      metrics_retention_grace_until: null,
    })
    await own.call('PATCH', '/monitoring/settings', {
      group_down_min: 7,
      group_down_ratio: 0.5,
      group_down_window_seconds: 30,
    })
    expect((await read()).data).toMatchObject({
      group_down_min: 7,
      group_down_ratio: 0.5,
      group_down_window_seconds: 30,
    })
    for (const bad of [
      { group_down_min: 0 },
      { group_down_ratio: 0 },
      { group_down_ratio: 1.01 },
      { group_down_window_seconds: 0 },
    ])
      expect((await own.call('PATCH', '/monitoring/settings', bad)).status).toBe(422)
    expect((await read(crypto.randomUUID())).error.code).toBe('not_found')
  })

  test('[COL-037] server attributes by number, deleted servers too', async () => {
    const start = await cursor('servers/attributes', 'servers')
    const { id } = (
      await tenant.call('POST', '/servers', {
        name: 'attributes',
        tags: ['b', 'a'],
        environment: 'prod',
        role: 'db',
        subnet_id: 's',
        datacenter: 'd',
      })
    ).body.data
    const [made] = await pull('servers/attributes', 'servers', start)
    expect(made).toMatchObject({
      server_id: id,
      tags: ['a', 'b'],
      environment: 'prod',
      role: 'db',
      subnet_id: 's',
      datacenter: 'd',
      status: 'active',
      deleted: false,
    })
    await tenant.call('DELETE', `/servers/${id}`)
    expect((await pull('servers/attributes', 'servers', made.sync_version))[0]).toMatchObject({
      server_id: id,
      deleted: true,
    })
    await tenant.call('DELETE', `/servers/${id}/permanent`)
    const rest = await pull('servers/attributes', 'servers', made.sync_version)
    expect(rest.filter(item => item.server_id === id).every(item => item.deleted)).toBe(true)
    expect(rest.some(item => item.server_id === id)).toBe(true)
  })
})
