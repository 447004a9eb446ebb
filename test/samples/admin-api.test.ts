import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { AdminDeps, PurgeDeps, ReloadOutcome } from '../../apps/collector/admin/deps.ts'
import { createPurger } from '../../apps/collector/admin/purge.ts'
import { createCollectorAdmin } from '../../apps/collector/admin/server.ts'
import { AgentRegistry } from '../../apps/collector/store/registry/registry.ts'
import { type SamplesClient, startSamples } from '../../apps/collector/worker/samples/samples-client.ts'
import type { ReloadFeed } from '../../core/admin-api/calls.ts'
import { faultsHeader, parseFaults } from '../../core/admin-api/envelope.ts'
import { companyValuesPath, packedId, parseCompanyValues } from '../../core/admin-api/values.ts'
import type { RejectedRule } from '../../core/alerting/rules/rule.ts'
import type { Unchecked } from '../../core/json-object.ts'
import type { RetentionSettings } from '../../core/retention/readable-and-deletable.ts'
import type { Tombstone } from '../../core/retention/tombstone.ts'
import { metrics as catalogue } from '../../core/series/catalogue.ts'
import { briefly, engineCluster, engineUrl, entryOf, freshDatabase, openTestBus } from '../support/clickhouse.ts'
import { until } from '../support/until.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const OTHER_COMPANY = '22222222-2222-4222-8222-222222222222'
const SERVER = 'aaaaaaaa-0000-4000-8000-000000000001'
const SIBLING = 'aaaaaaaa-0000-4000-8000-000000000002'
const FOREIGN = 'bbbbbbbb-0000-4000-8000-000000000001'
const AGENT = 'cccccccc-0000-4000-8000-000000000001'
const TOKEN = 'admin-token-of-the-hub'
const PREVIOUS = 'admin-token-before'
const HASH = 'a'.repeat(64)
const REJECTED: RejectedRule = {
  rule_id: 'dddddddd-0000-4000-8000-000000000001',
  company_id: COMPANY,
  version: 2,
  reason: 'metric',
  message: 'metric is not in the catalogue',
}
const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

const json = async (response: Response): Promise<Record<string, unknown>> => {
  const body: unknown = await response.json()
  if (typeof body !== 'object' || body === null) throw new Error('the answer is no object')
  return Object.fromEntries(Object.entries(body))
}

const agentRecord = (over: Record<string, unknown> = {}) => ({
  company_id: COMPANY,
  server_id: SERVER,
  state: 'active',
  token_hash: HASH,
  prev_token_hash: null,
  prev_token_expires_at: null,
  version: 3,
  ...over,
})

const faultyFields = (response: Response): string[] =>
  parseFaults(response.headers.get(faultsHeader)).map(fault => fault.field)

describe('the admin API', () => {
  const bus = openTestBus()
  const registry = new AgentRegistry(null)
  const retention = new Map<string, RetentionSettings>()
  const reloads = new Map<ReloadFeed, ReloadOutcome>()
  const tombstones: Tombstone[] = []
  const faults: string[] = []
  let canWriteTombstones = true
  let samples: SamplesClient
  let server: ReturnType<typeof Bun.serve>
  let purger: ReturnType<typeof createPurger>

  const purgeDeps = (): PurgeDeps => ({
    nowMs: () => Date.now(),
    tombstones: {
      write: async tombstone => {
        if (!canWriteTombstones) throw new Error('no space')
        tombstones.push(tombstone)
        samples.setTombstones(tombstones)
      },
    },
    registry: {
      removeCompany: async companyId => registry.removeCompany(companyId),
      removeServer: async (companyId, serverId) => registry.removeServer(companyId, serverId),
    },
    samples,
    tombstoneMs: 15 * MINUTE_MS,
    secondDeleteAfterMs: 1500,
    onPurge: () => undefined,
    onError: what => faults.push(what),
  })
  const adminDeps = (): AdminDeps => ({
    nowMs: () => Date.now(),
    tokens: () => [TOKEN, PREVIOUS],
    registry: {
      push: async record => ({
        applied: registry.push(record),
        version: registry.byAgent(record.agentId)?.version ?? 0,
      }),
      revoke: async agentId => registry.revoke(agentId),
      hasServer: (companyId, serverId) =>
        registry.agentsOfServer(serverId).some(agent => agent.companyId === companyId),
      summary: async companyId => registry.companySummary(companyId, () => false),
    },
    presence: { state: async () => ({ state: 'online', lastSeenAtMs: 1_700_000_000_000 }) },
    reload: async feed => reloads.get(feed) ?? 'applied',
    status: async () => ({
      version: '1.2.3',
      role: 'worker',
      startedAtMs: 1_700_000_000_000,
      busLag: 4,
      outboxDepth: 5,
      outboxSetAside: 1,
      agentsOnline: 6,
      rules: {
        loaded: 1,
        invalid: 2,
        pending: 3,
        firing: 4,
        noData: 5,
        flapping: 6,
        since: 7,
        lastSyncAtMs: 0,
        lastSyncError: 'refused',
        invalidRules: [REJECTED],
      },
      silences: { active: 1, loaded: 2, since: 3, lastSyncAtMs: 1_700_000_000_000, lastSyncError: null },
      checks: {
        loaded: 1,
        invalid: 2,
        disabled: 3,
        servers: 4,
        truncated: 5,
        since: 6,
        lastSyncAtMs: 0,
        lastSyncError: null,
      },
      retention: {
        atMs: 1_700_000_000_000,
        companies: 1,
        skipped: 2,
        daysDeleted: 3,
        errors: 4,
        dryRun: false,
        durationSeconds: 0.5,
      },
    }),
    alerting: async () => ({ series: [] }),
    retention: async companyId => retention.get(companyId) ?? null,
    samples,
    purge: (companyId, serverId) => purger.purge(companyId, serverId),
    onRequest: () => undefined,
    onQuery: () => undefined,
    onError: what => faults.push(what),
  })

  const call = (method: string, path: string, body?: unknown, token: string | null = TOKEN): Promise<Response> =>
    fetch(new URL(path, server.url), {
      method,
      headers: token === null ? {} : { authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  const errorOf = async (response: Response) => (await json(response)).error
  const dataOf = async (response: Response): Promise<Record<string, unknown>> => {
    const { data } = await json(response)
    if (typeof data !== 'object' || data === null) throw new Error('the answer has no data')
    return Object.fromEntries(Object.entries(data))
  }
  const store = async (companyId: string, serverId: string, points: [number, number][]): Promise<void> => {
    const entry = entryOf(companyId, serverId, [
      { metric: 'cpu_usage_percent', points },
      { metric: 'disk_used_percent', labels: { mount: '/' }, points },
    ])
    expect(await bus.writer.publish(serverId, entry)).toBeNull()
    await samples.flush()
  }
  const seriesPath = (companyId: string, serverId: string, more = '') =>
    `/internal/v1/servers/${serverId}/series?company_id=${companyId}&metric=cpu_usage_percent${more}`

  beforeAll(async () => {
    samples = await startSamples({
      onFailure: error => {
        throw error
      },
      threadUrl: new URL('../../apps/collector/worker/samples/samples-thread.ts', import.meta.url),
      bus: { kind: 'file', path: bus.path, hold: briefly },
      consumers: bus.consumers,
      clickhouse: engineUrl,
      database: freshDatabase(),
      cluster: engineCluster,
    })
    purger = createPurger(purgeDeps())
    server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: createCollectorAdmin(adminDeps()).fetch })
  })
  afterAll(async () => {
    await server.stop(true)
    purger.stop()
    await samples.stop()
    await bus.close()
  })

  test('[ADM-004] [ADM-005] [ADM-006] without the admin token, or with another, every call answers 401 unauthorized', async () => {
    for (const token of [null, '', 'wrong', `${TOKEN}x`, HASH])
      for (const [method, path] of [
        ['GET', '/internal/v1/status'],
        ['PUT', `/internal/v1/agents/${AGENT}`],
        ['DELETE', `/internal/v1/companies/${COMPANY}/data`],
        ['GET', '/internal/v1/nothing'],
      ] as const) {
        const response = await call(method, path, undefined, token)
        expect(response.status).toBe(401)
        expect(await errorOf(response)).toEqual({ code: 'unauthorized', message: expect.any(String) })
      }
    expect(tombstones).toEqual([])
  })

  test('[ADM-007] the admin token before stays valid while it is configured', async () => {
    expect((await call('GET', '/internal/v1/status', undefined, PREVIOUS)).status).toBe(200)
  })

  test('[ADM-025] [ADM-026] [ADM-003] an unknown path answers 404, a wrong method 405', async () => {
    const unknown = await call('GET', '/internal/v1/server')
    expect(unknown.status).toBe(404)
    expect(await errorOf(unknown)).toMatchObject({ code: 'not_found' })
    for (const [method, path] of [
      ['POST', '/internal/v1/status'],
      ['GET', '/internal/v1/reload/rules'],
      ['GET', `/internal/v1/agents/${AGENT}`],
      ['PATCH', `/internal/v1/servers/${SERVER}/data`],
    ] as const) {
      const wrong = await call(method, path)
      expect(wrong.status).toBe(405)
      expect(await errorOf(wrong)).toMatchObject({ code: 'method_not_allowed' })
    }
    expect((await call('GET', '/internal/v1/reload/everything')).status).toBe(404)
  })

  test('[REG-013] [ADM-001] [ADM-002] PUT /agents/{id} stores the record; a lower version gives applied=false', async () => {
    const pushed = await call('PUT', `/internal/v1/agents/${AGENT}`, agentRecord())
    expect(pushed.status).toBe(200)
    expect(await dataOf(pushed)).toEqual({ agent_id: AGENT, version: 3, applied: true })
    expect(registry.byTokenHash(HASH, Date.now())?.record.serverId).toBe(SERVER)
    const older = await call('PUT', `/internal/v1/agents/${AGENT}`, agentRecord({ version: 2 }))
    expect(await dataOf(older)).toMatchObject({ applied: false, version: 3 })
  })

  test('a record with a missing or malformed field answers 400 with the name of the field', async () => {
    for (const [body, field] of [
      ['{', 'body'],
      ['[]', 'body'],
      [agentRecord({ company_id: undefined }), 'company_id'],
      [agentRecord({ state: 'odd' }), 'state'],
      [agentRecord({ token_hash: 'A' }), 'token_hash'],
      [agentRecord({ version: '3' }), 'version'],
      [agentRecord({ server_status: 'asleep' }), 'server_status'],
      [agentRecord({ server_status: 5 }), 'server_status'],
      [agentRecord({ datacenter: 5 }), 'datacenter'],
    ] as const) {
      const response = await call('PUT', `/internal/v1/agents/${AGENT}`, body)
      expect(response.status).toBe(400)
      expect(await errorOf(response)).toMatchObject({ code: 'bad_request', message: expect.stringContaining(field) })
    }
    expect((await call('PUT', '/internal/v1/agents/none', agentRecord())).status).toBe(400)
  })

  test('[REG-015] [REG-016] DELETE /agents/{id} revokes and answers 204, again and for an unknown agent too', async () => {
    const id = 'cccccccc-0000-4000-8000-000000000002'
    await call('PUT', `/internal/v1/agents/${id}`, agentRecord({ server_id: SIBLING, token_hash: 'b'.repeat(64) }))
    for (const path of [id, id, 'cccccccc-0000-4000-8000-00000000000f']) {
      const response = await call('DELETE', `/internal/v1/agents/${path}`)
      expect(response.status).toBe(204)
      expect(await response.text()).toBe('')
    }
    expect(registry.byAgent(id)?.state).toBe('revoked')
  })

  test('[ADM-011] [ADM-012] [ADM-013] [ADM-014] a reload answers 202 with the name of the feed', async () => {
    for (const feed of ['rules', 'silences', 'checks', 'settings']) {
      const response = await call('POST', `/internal/v1/reload/${feed}`)
      expect(response.status).toBe(202)
      expect(await dataOf(response)).toEqual({ reload: feed, accepted: true })
    }
  })

  test('[ADM-015] [ADM-016] a reload without a hub: 501 for settings; 503 where the hub cannot be called', async () => {
    reloads.set('settings', 'not_configured').set('rules', 'unavailable')
    const settings = await call('POST', '/internal/v1/reload/settings')
    expect(settings.status).toBe(501)
    expect(await errorOf(settings)).toMatchObject({ code: 'not_implemented' })
    const rules = await call('POST', '/internal/v1/reload/rules')
    expect(rules.status).toBe(503)
    expect(await errorOf(rules)).toMatchObject({ code: 'unavailable' })
    reloads.clear()
  })

  test('[ADM-021] [ADM-022] [ADM-023] [ADM-024] [RET-016] [RET-017] GET /status has every section with its members', async () => {
    const status = await dataOf(await call('GET', '/internal/v1/status'))
    const at = '2023-11-14T22:13:20.000Z'
    expect(status).toEqual({
      version: '1.2.3',
      role: 'worker',
      started_at: at,
      bus_lag: 4,
      outbox_depth: 5,
      outbox_set_aside: 1,
      agents_online: 6,
      rules: {
        loaded: 1,
        invalid: 2,
        pending: 3,
        firing: 4,
        no_data: 5,
        flapping: 6,
        since: 7,
        last_sync_at: null,
        last_sync_error: 'refused',
        invalid_rules: [REJECTED],
      },
      silences: { active: 1, loaded: 2, since: 3, last_sync_at: at, last_sync_error: null },
      checks: {
        loaded: 1,
        invalid: 2,
        disabled: 3,
        servers: 4,
        truncated: 5,
        since: 6,
        last_sync_at: null,
        last_sync_error: null,
      },
      retention: {
        at,
        companies: 1,
        skipped: 2,
        days_deleted: 3,
        legacy_samples_moved: 0,
        errors: 4,
        dry_run: false,
        duration_seconds: 0.5,
      },
    })
  })

  test('[ADM-019] [ADM-020] the summary of a company has agents_total, online and offline, and nothing else', async () => {
    const response = await call('GET', `/internal/v1/companies/${COMPANY}/summary`)
    expect(await dataOf(response)).toEqual({ agents_total: 1, online: 0, offline: 1 })
    const empty = await call('GET', `/internal/v1/companies/${OTHER_COMPANY}/summary`)
    expect(await dataOf(empty)).toEqual({ agents_total: 0, online: 0, offline: 0 })
  })

  test('[ADM-017] [ADM-018] the status of a server has state, last_seen and its latest values; 404 for another company', async () => {
    const nowMs = Date.now()
    await store(COMPANY, SERVER, [
      [nowMs - 20 * MINUTE_MS, 1],
      [nowMs - 2 * MINUTE_MS, 7],
    ])
    const path = `/internal/v1/servers/${SERVER}/status?company_id=`
    const status = await dataOf(await call('GET', path + COMPANY))
    expect(status).toEqual({
      server_id: SERVER,
      company_id: COMPANY,
      state: 'online',
      last_seen: '2023-11-14T22:13:20.000Z',
      metrics: {
        cpu_usage_percent: [{ labels: {}, value: 7, ts_ms: nowMs - 2 * MINUTE_MS }],
        mem_used_percent: [],
        disk_used_percent: [{ labels: { mount: '/' }, value: 7, ts_ms: nowMs - 2 * MINUTE_MS }],
        cpu_load1: [],
        load_per_core_5m: [],
        uptime_seconds: [],
      },
    })
    expect((await call('GET', path + OTHER_COMPANY)).status).toBe(404)
    expect((await call('GET', path)).status).toBe(400)
  })

  test('the newest values of a metric on all servers of a company; of no other company, and of no unknown metric', async () => {
    const nowMs = Date.now()
    await store(COMPANY, SIBLING, [[nowMs - MINUTE_MS, 9]])
    await store(OTHER_COMPANY, FOREIGN, [[nowMs - MINUTE_MS, 99]])
    const values = async (companyId: string, metric: string) =>
      dataOf(await call('GET', `/internal/v1/companies/${companyId}/values?metric=${metric}`))
    const disks = await values(COMPANY, 'disk_used_percent')
    expect(disks).toMatchObject({ company_id: COMPANY, metric: 'disk_used_percent', truncated: false })
    const { ids = '', values: largest, label_sets: sets, label_at: at } = parseCompanyValues({ data: disks }) ?? {}
    const place = [...Array((largest ?? []).length).keys()].findIndex(each => packedId(ids, each) === SIBLING)
    expect([largest?.[place], sets?.[at?.[place] ?? -1]]).toEqual([9, { mount: '/' }])
    expect(disks.server_ids).not.toContain(FOREIGN)
    const packed = await dataOf(await call('GET', `/internal/v1${companyValuesPath(COMPANY, 'disk_used_percent')}`))
    // Servers come in no order: what is still buffered first, once it is stored as the store says it.
    const byServer = (data: Unchecked) => {
      const { ids = '', values: found = [], ts_ms = [] } = parseCompanyValues({ data }) ?? {}
      return Object.fromEntries([...found.keys()].map(index => [packedId(ids, index), [found[index], ts_ms[index]]]))
    }
    expect(byServer(packed)).toEqual(byServer(disks))
    expect(Object.keys(byServer(packed))).toHaveLength(2)
    expect(packed).not.toHaveProperty('server_ids')
    expect(await values(OTHER_COMPANY, 'disk_used_percent')).toMatchObject({ server_ids: [FOREIGN], values: [99] })
    const unknown = await call('GET', `/internal/v1/companies/${COMPANY}/values?metric=nonsense`)
    expect([unknown.status, faultyFields(unknown)]).toEqual([400, ['metric']])
  })

  test('[ADM-010] [QRY-001] [QRY-008] [QRY-009] [QRY-015] faults of a series query answer 400 and name the parameter', async () => {
    for (const [query, field] of [
      ['metric=cpu_usage_percent', 'company_id'],
      [`company_id=${COMPANY}`, 'metric'],
      [`company_id=${COMPANY}&metric=not_in_catalogue`, 'metric'],
      [`company_id=${COMPANY}&metric=cpu_usage_percent&agg=sum`, 'agg'],
      [`company_id=${COMPANY}&metric=cpu_usage_percent&step=29`, 'step'],
      [`company_id=${COMPANY}&metric=cpu_usage_percent&step=soon`, 'step'],
      [`company_id=${COMPANY}&metric=cpu_usage_percent&from=yesterday`, 'from'],
      [`company_id=${COMPANY}&metric=cpu_usage_percent&from=1700000000&to=1700000000`, 'from'],
      [`company_id=${COMPANY}&metric=cpu_usage_percent&from=1600000000&to=1700000000`, 'from'],
    ] as const) {
      const response = await call('GET', `/internal/v1/servers/${SERVER}/series?${query}`)
      expect(response.status).toBe(400)
      expect(await errorOf(response)).toMatchObject({ code: 'bad_request', message: expect.stringContaining(field) })
      // The hub puts each fault at its field by what is said of it, not by the words of the message.
      expect(faultyFields(response)).toEqual([field])
    }
    const both = await call('GET', `/internal/v1/servers/${SERVER}/series?company_id=${COMPANY}&metric=x&agg=sum`)
    expect(faultyFields(both)).toEqual(['metric', 'agg'])
  })

  test('[QRY-002] [QRY-003] [QRY-011] [QRY-025] the reply of a series query', async () => {
    const data = await dataOf(await call('GET', seriesPath(COMPANY, SERVER)))
    expect(Object.keys(data)).toEqual([
      'server_id',
      'company_id',
      'metric',
      'agg',
      'from',
      'to',
      'step_seconds',
      'series',
    ])
    expect(data).toMatchObject({ server_id: SERVER, company_id: COMPANY, metric: 'cpu_usage_percent', agg: 'avg' })
    expect(data.step_seconds).toBe(30)
    expect(Date.parse(String(data.to)) - Date.parse(String(data.from))).toBe(3_600_000)
    expect(data.series).toEqual([
      {
        labels: {},
        points: [
          [expect.any(Number), 1],
          [expect.any(Number), 7],
        ],
      },
    ])
  })

  test('[QRY-018] [QRY-019] [QRY-032] a server of another company, and an unknown one, give 200 with empty series', async () => {
    for (const path of [seriesPath(OTHER_COMPANY, SERVER), seriesPath(COMPANY, FOREIGN)]) {
      const response = await call('GET', path)
      expect(response.status).toBe(200)
      expect((await dataOf(response)).series).toEqual([])
    }
  })

  test('several metrics in one call, every series of each, and a list of the series that there are; the tenant wall holds', async () => {
    const path = (what: string, company: string) => `/internal/v1/servers/${SERVER}/${what}company_id=${company}`
    const two = 'series/by-metric?metrics=disk_used_percent,cpu_usage_percent&'
    const data = await dataOf(await call('GET', path(two, COMPANY)))
    expect(data).toMatchObject({ server_id: SERVER, company_id: COMPANY, agg: 'avg', step_seconds: 30, left_out: [] })
    const points = [
      [expect.any(Number), 1],
      [expect.any(Number), 7],
    ]
    expect(data.metrics).toEqual([
      { metric: 'disk_used_percent', series: [{ labels: { mount: '/' }, points }] },
      { metric: 'cpu_usage_percent', series: [{ labels: {}, points }] },
    ])
    const all = await dataOf(await call('GET', path('series/by-metric?', COMPANY)))
    expect(all.metrics).toHaveLength(catalogue.length)
    expect(await dataOf(await call('GET', path('metrics?', COMPANY)))).toEqual({
      server_id: SERVER,
      company_id: COMPANY,
      metrics: [
        { metric: 'cpu_usage_percent', labels: [{}] },
        { metric: 'disk_used_percent', labels: [{ mount: '/' }] },
      ],
      truncated: false,
    })
    const foreign = await dataOf(await call('GET', path(two, OTHER_COMPANY)))
    expect(foreign.metrics).toEqual([
      { metric: 'disk_used_percent', series: [] },
      { metric: 'cpu_usage_percent', series: [] },
    ])
    expect(await dataOf(await call('GET', path('metrics?', OTHER_COMPANY)))).toMatchObject({ metrics: [] })
    for (const [query, field] of [
      ['metrics=cpu_usage_percent', 'company_id'],
      [`company_id=${COMPANY}&metrics=cpu_usage_percent,odd`, 'metrics'],
      [`company_id=${COMPANY}&metrics=`, 'metrics'],
      [`company_id=${COMPANY}&agg=sum`, 'agg'],
      [`company_id=${COMPANY}&from=0&step=30`, 'from'],
    ] as const) {
      const refused = await call('GET', `/internal/v1/servers/${SERVER}/series/by-metric?${query}`)
      expect([refused.status, faultyFields(refused)]).toEqual([400, [field]])
    }
  })

  test('[QRY-004] [QRY-005] [QRY-006] [QRY-007] [QRY-026] [QRY-028] retention clamps from, and shows in the reply', async () => {
    const graceUntilMs = Date.now() + 5 * DAY_MS
    retention.set(COMPANY, { retentionDays: 1, previousDays: null, graceUntilMs: null })
    const wide = `&from=${Math.floor(Date.now() / 1000) - 3 * 86_400}`
    const limited = await dataOf(await call('GET', seriesPath(COMPANY, SERVER, wide)))
    expect(limited.retention_days).toBe(1)
    expect(limited).not.toHaveProperty('retention_grace_until')
    expect(Math.abs(Date.parse(String(limited.from)) - (Date.now() - DAY_MS))).toBeLessThan(10_000)
    const outside = await call(
      'GET',
      seriesPath(COMPANY, SERVER, `${wide}&to=${Math.floor(Date.now() / 1000) - 2 * 86_400}`),
    )
    expect(outside.status).toBe(200)
    expect((await dataOf(outside)).series).toEqual([])

    retention.set(COMPANY, { retentionDays: 1, previousDays: 2, graceUntilMs })
    const grace = await dataOf(await call('GET', seriesPath(COMPANY, SERVER, wide)))
    expect(grace).toMatchObject({
      retention_days: 1,
      retention_previous_days: 2,
      retention_grace_until: new Date(graceUntilMs).toISOString(),
    })
    expect(Math.abs(Date.parse(String(grace.retention_locked_before)) - (Date.now() - DAY_MS))).toBeLessThan(10_000)
    retention.set(COMPANY, { retentionDays: 1, previousDays: null, graceUntilMs })
    const unlimited = await dataOf(await call('GET', seriesPath(COMPANY, SERVER, wide)))
    expect(unlimited).not.toHaveProperty('retention_previous_days')
    expect(Math.abs(Date.parse(String(unlimited.from)) - (Date.now() - 3 * DAY_MS))).toBeLessThan(10_000)
    retention.clear()
  })

  test('[PUR-013] a purge whose tombstone cannot be written answers 503 and deletes nothing', async () => {
    canWriteTombstones = false
    const response = await call('DELETE', `/internal/v1/companies/${COMPANY}/data`)
    canWriteTombstones = true
    expect(response.status).toBe(503)
    expect(await errorOf(response)).toMatchObject({ code: 'unavailable' })
    expect(registry.agentsOfServer(SERVER)).toHaveLength(1)
    expect(faults.splice(0)).toEqual(['cannot write the tombstone of a purge'])
    expect((await dataOf(await call('GET', seriesPath(COMPANY, SERVER)))).series).not.toEqual([])
  })

  test('[PUR-002] [PUR-005] [PUR-006] [PUR-007] [PUR-012] [PUR-014] a purge of a server takes its data, and of no other', async () => {
    const nowMs = Date.now()
    await store(COMPANY, SIBLING, [[nowMs - MINUTE_MS, 5]])
    await store(OTHER_COMPANY, FOREIGN, [[nowMs - MINUTE_MS, 6]])
    expect((await call('DELETE', `/internal/v1/servers/${SERVER}/data`)).status).toBe(400)
    const response = await call('DELETE', `/internal/v1/servers/${SERVER}/data?company_id=${COMPANY}`)
    expect(response.status).toBe(200)
    const data = await dataOf(response)
    expect(data).toEqual({ scope: 'server', id: SERVER, registry_deleted: 1, tombstone_until: expect.any(String) })
    expect(Math.abs(Date.parse(String(data.tombstone_until)) - nowMs - 15 * MINUTE_MS)).toBeLessThan(10_000)
    expect(registry.agentsOfServer(SERVER)).toEqual([])
    const read = async (companyId: string, serverId: string) =>
      (await samples.latestValues(companyId, serverId, ['cpu_usage_percent'], nowMs - DAY_MS)).map(({ value }) => value)
    expect(await read(COMPANY, SERVER)).toEqual([])
    expect(await read(COMPANY, SIBLING)).toEqual([5])
    expect(await read(OTHER_COMPANY, FOREIGN)).toEqual([6])
  })

  test('[STO-007] [PUR-010] [PUR-003] what a purged server still has on the bus is dropped; a second purge answers 200', async () => {
    const before = await samples.stats()
    await store(COMPANY, SERVER, [[Date.now() - MINUTE_MS, 9]])
    const after = await samples.stats()
    expect(after.droppedPurged - before.droppedPurged).toBe(2)
    expect(after.rowsStored).toBe(before.rowsStored)
    const again = await call('DELETE', `/internal/v1/servers/${SERVER}/data?company_id=${COMPANY}`)
    expect(again.status).toBe(200)
    expect(await dataOf(again)).toMatchObject({ scope: 'server', registry_deleted: 0 })
  })

  test('[PUR-008] what was stored in spite of a purge is gone after the second deletion', async () => {
    const late = 'aaaaaaaa-0000-4000-8000-000000000003'
    const read = () => samples.latestValues(COMPANY, late, ['cpu_usage_percent'], Date.now() - DAY_MS)
    expect((await call('DELETE', `/internal/v1/servers/${late}/data?company_id=${COMPANY}`)).status).toBe(200)
    samples.setTombstones([])
    // The thread answers once it has taken what was sent before; it looks at the bus of its own accord, too.
    await samples.stats()
    await store(COMPANY, late, [[Date.now() - MINUTE_MS, 3]])
    expect(await read()).toHaveLength(1)
    await until('the second deletion', async () => (await read()).length === 0)
  })

  test('[PUR-001] [PUR-014] a purge of a company takes every server of it', async () => {
    const response = await call('DELETE', `/internal/v1/companies/${COMPANY}/data`)
    expect(response.status).toBe(200)
    expect(await dataOf(response)).toMatchObject({ scope: 'company', id: COMPANY })
    await until('no samples of the company', async () => !(await samples.companies()).includes(COMPANY))
    expect(await samples.companies()).toEqual([OTHER_COMPANY])
    expect(faults).toEqual([])
  })
})
