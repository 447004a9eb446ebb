import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { setImmediate } from 'node:timers/promises'
import { sql } from 'drizzle-orm'
import { previewRule } from '../../apps/hub/rules/preview.ts'
import { previewSeries } from '../../apps/hub/rules/preview-series.ts'
import { conditionSchema } from '../../apps/hub/rules/rule-condition.ts'
import { firingsOf, replayRule } from '../../core/alerting/evaluate/backtest.ts'
import { ruleRecord } from '../support/rule-record.ts'
import { AdminListener } from './admin-listener.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
let admin: AdminListener
let collector: Awaited<ReturnType<TestHub['collector']>>

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  admin = new AdminListener()
  collector = await hub.collector(admin.url)
})
afterAll(async () => {
  await admin.stop()
  await hub.stop()
})

const draft = (more: Json = {}): Json => ({
  name: 'Draft',
  kind: 'threshold',
  severity: 'warning',
  metric: 'disk_used_percent',
  operator: '>',
  threshold: 90,
  scope: { all: true },
  ...more,
})
const post = (body: Json, by: Tenant = tenant) => by.call('POST', '/monitoring/rules', body)
const rule = async (more: Json = {}, by: Tenant = tenant): Promise<Json> => {
  const { status, body } = await post(draft(more), by)
  expect([status, body.errors]).toEqual([201, undefined])
  return body.data
}
const server = async (body: Json = {}, by: Tenant = tenant): Promise<string> =>
  (await by.call('POST', '/servers', { name: crypto.randomUUID(), ...body })).body.data.id
/** The rule as the feed has it. */
const inFeed = async (id: string): Promise<Json> => {
  for (let since = 0; ; ) {
    const { data } = (await collector.call('GET', `/rules?since=${since}&limit=500`)).body
    const found = data.rules.find((item: Json) => item.id === id)
    if (found || !data.more) return found
    since = data.next_since
  }
}

describe('the default set', () => {
  test('[HRL-018] [HRL-020] [HRL-021] [HRL-022] [HRL-023] [HRL-024] [HRL-025] [HRL-026] [HRL-027] a company starts with eight rules that can be toggled', async () => {
    const own = await hub.tenant()
    const { data } = (await own.call('GET', '/monitoring/rules')).body
    const brief = data.map((item: Json) => [
      item.name,
      item.kind,
      item.metric,
      item.operator,
      item.threshold,
      item.for_seconds,
      item.recover_threshold,
      item.severity,
      item.is_default,
    ])
    expect(new Set(brief.map((item: Json) => JSON.stringify(item)))).toEqual(
      new Set(
        [
          ['Lost signal', 'agent_down', null, null, null, null, null, 'critical', true],
          ['High CPU', 'threshold', 'cpu_usage_percent', '>', 90, 600, 80, 'warning', true],
          ['High RAM', 'threshold', 'mem_used_percent', '>', 90, 600, 85, 'warning', true],
          ['Disk filling', 'threshold', 'disk_used_percent', '>', 85, 300, null, 'warning', true],
          ['Disk nearly full', 'threshold', 'disk_used_percent', '>', 95, 300, null, 'critical', true],
          ['High load', 'threshold', 'load_per_core_5m', '>', 2, 900, null, 'warning', true],
          ['Certificate expiring', 'check', 'cert_days_left', '<', 14, 0, null, 'warning', true],
          ['Certificate expiring very soon', 'check', 'cert_days_left', '<', 3, 0, null, 'critical', true],
        ].map(item => JSON.stringify(item)),
      ),
    )
    const toggled = (await own.call('POST', `/monitoring/rules/${data[0].id}/disable`)).body.data
    expect([toggled.enabled, toggled.version]).toEqual([false, 2])
    expect((await own.call('POST', `/monitoring/rules/${data[0].id}/enable`)).body.data.enabled).toBe(true)
  })

  test('[HRL-003] missing defaults are created again, present ones are not', async () => {
    const own = await hub.tenant()
    const [first] = (await own.call('GET', '/monitoring/rules')).body.data
    expect((await own.call('POST', '/monitoring/rules/defaults')).body.created).toBe(0)
    await own.call('DELETE', `/monitoring/rules/${first.id}`)
    const again = (await own.call('POST', '/monitoring/rules/defaults')).body
    expect([again.created, again.data.length]).toEqual([1, 8])
  })
})

describe('create, show, change, delete', () => {
  test('[HRL-001] [HRL-002] a rule is stored with every field, absent ones with their defaults', async () => {
    expect(await rule()).toMatchObject({
      company_id: tenant.companyId,
      version: 1,
      name: 'Draft',
      kind: 'threshold',
      scope: { all: true, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] },
      metric: 'disk_used_percent',
      matchers: {},
      operator: '>',
      threshold: 90,
      for_seconds: 0,
      recover_threshold: null,
      recover_for_seconds: 0,
      severity: 'warning',
      no_data: 'ignore',
      renotify_seconds: 0,
      enabled: true,
      is_default: false,
      created_by: { id: tenant.userId, name: 'Test user' },
    })
  })

  test('every member of a condition that can be given is answered, and stands in the feed and in a copy', async () => {
    const given = await rule({ for_seconds: 60, recover_threshold: 80, recover_for_seconds: 30, no_data: 'alert' })
    const copy = (await tenant.call('POST', `/monitoring/rules/${given.id}/duplicate`)).body.data
    for (const [shown, fed] of [
      [given, await inFeed(given.id)],
      [copy, await inFeed(copy.id)],
    ])
      for (const member of Object.keys(conditionSchema)) {
        expect([member, shown[member]]).toEqual([member, given[member] ?? null])
        expect([member, fed[member]]).toEqual([member, given[member] ?? null])
      }
  })

  test('[HRL-006] [HRL-034] [HRL-007] every edit raises version and number, and the collector is told to reload', async () => {
    const { id } = await rule()
    const before = await inFeed(id)
    const told = admin.count('POST', '/reload/rules')
    const edits: [string, string, Json][] = [
      ['PATCH', '', { threshold: 91 }],
      ['PUT', '', draft({ threshold: 92, for_seconds: 60 })],
      ['POST', '/disable', undefined],
      ['POST', '/enable', undefined],
    ]
    for (const [index, [method, path, body]] of edits.entries()) {
      const { data } = (await tenant.call(method, `/monitoring/rules/${id}${path}`, body)).body
      expect(data.version).toBe(2 + index)
    }
    const after = await inFeed(id)
    expect(after.sync_version).toBeGreaterThan(before.sync_version)
    expect(after).toMatchObject({ version: 5, threshold: 92, for_seconds: 60 })
    await until('the collector is told', async () => admin.count('POST', '/reload/rules') > told)
    expect(admin.asked.findLast(asked => asked.path === '/reload/rules')?.token).toBe(collector.adminToken)
  })

  test('[HRL-003] a duplicate is a disabled copy', async () => {
    const { id } = await rule({ name: 'Original', threshold: 77 })
    const { status, body } = await tenant.call('POST', `/monitoring/rules/${id}/duplicate`)
    expect([status, body.data.name, body.data.enabled, body.data.threshold, body.data.version]).toEqual([
      201,
      'Original (copy)',
      false,
      77,
      1,
    ])
  })

  test('[HRL-004] [HRL-005] rules need monitoring.manage, deleting monitoring.delete', async () => {
    const { id } = await rule()
    const viewer = await hub.user(tenant.companyId, ['monitoring.view'])
    for (const [method, path] of [
      ['GET', ''],
      ['POST', ''],
      ['GET', `/${id}`],
      ['PATCH', `/${id}`],
      ['POST', `/${id}/enable`],
      ['POST', '/preview'],
      ['GET', '/metrics'],
    ])
      expect((await viewer.call(method!, `/monitoring/rules${path}`, method === 'GET' ? undefined : {})).status).toBe(
        403,
      )
    const manager = await hub.user(tenant.companyId, ['monitoring.manage'])
    expect((await manager.call('DELETE', `/monitoring/rules/${id}`)).status).toBe(403)
    const deleter = await hub.user(tenant.companyId, ['monitoring.delete'])
    expect((await deleter.call('DELETE', `/monitoring/rules/${id}`)).status).toBe(204)
    expect((await tenant.call('GET', `/monitoring/rules/${id}`)).status).toBe(404)
  })

  test('a filtered list and the metric catalogue', async () => {
    const own = await hub.tenant()
    const names = async (query: string) =>
      (await own.call('GET', `/monitoring/rules?${query}`)).body.data.map((item: Json) => item.name)
    expect(await names('metric=cpu_usage_percent')).toEqual(['High CPU'])
    expect(await names('kind=agent_down')).toEqual(['Lost signal'])
    expect(await names('search=high ra')).toEqual(['High RAM'])
    expect(await names('severity=critical')).toHaveLength(3)
    expect(await names('enabled=0')).toEqual([])
    expect((await own.call('GET', '/monitoring/rules/metrics')).body.data).toHaveLength(61)
  })
})

describe('validation', () => {
  test.each([
    ['[HRL-008] [HRL-009] kind', { kind: 'other' }, 'kind'],
    ['[HRL-010] operator', { operator: '=~' }, 'operator'],
    ['[HRL-010] a missing operator', { operator: undefined }, 'operator'],
    ['[HRL-011] a missing threshold', { threshold: undefined }, 'threshold'],
    ['[HRL-011] a threshold that is no number', { threshold: '90' }, 'threshold'],
    ['[HRL-012] recover_threshold above the threshold of >', { recover_threshold: 91 }, 'recover_threshold'],
    [
      '[HRL-012] recover_threshold below the threshold of <',
      { operator: '<', recover_threshold: 89 },
      'recover_threshold',
    ],
    ['[HRL-013] severity', { severity: 'fatal' }, 'severity'],
    ['[HRL-014] no_data', { no_data: 'panic' }, 'no_data'],
    ['[HRL-015] a metric outside the catalogue', { metric: 'nope' }, 'metric'],
    ['[HRL-016] a label that the metric does not have', { matchers: { interface: 'eth0' } }, 'matchers.interface'],
    ['[HRL-017] a list of 65', { matchers: { mount: Array(65).fill('/') } }, 'matchers.mount'],
    ['[HRL-017] a regex of 129 characters', { matchers: { mount: { regex: 'x'.repeat(129) } } }, 'matchers.mount'],
    ['[HRL-017] a regex that RE2 does not know', { matchers: { mount: { regex: '(?=x)' } } }, 'matchers.mount'],
    ['[HRL-017] a number as matcher', { matchers: { mount: 5 } }, 'matchers.mount'],
    ['for_seconds over a day', { for_seconds: 86_401 }, 'for_seconds'],
    ['renotify_seconds under a minute', { renotify_seconds: 30 }, 'renotify_seconds'],
    ['a scope that names nothing', { scope: {} }, 'scope'],
    ['an unknown server', { scope: { server_ids: [crypto.randomUUID()] } }, 'scope.server_ids'],
  ])('%s is refused with 422 on the field', async (_name, more, field) => {
    const { status, body } = await post(draft(more))
    expect(status).toBe(422)
    expect(Object.keys(body.errors)).toContain(field)
  })

  const REQUIRED = ['metric', 'name', 'operator', 'scope', 'severity', 'threshold']
  const faultsOf = async (method: string, path: string, body: Json): Promise<string[]> => {
    const answered = await tenant.call(method, `/monitoring/rules${path}`, body)
    expect(answered.status).toBe(422)
    return Object.keys(answered.body.errors).sort()
  }

  test('[RUL-026] [HUB-043] everything that is required and missing is told in one answer', async () => {
    expect(await faultsOf('POST', '', {})).toEqual(REQUIRED)
    const { id } = await rule()
    expect(await faultsOf('PUT', `/${id}`, {})).toEqual(REQUIRED)
    expect(await faultsOf('POST', '/preview', {})).toEqual(REQUIRED.filter(field => !/name|severity/.test(field)))
    expect(await faultsOf('POST', '', { kind: 'agent_down' })).toEqual(['name', 'scope', 'severity'])
  })

  test('[HUB-043] faults of form and of meaning are told beside each other, each field once', async () => {
    const bad = { metric: 'nope', operator: '=~', for_seconds: -1, renotify_seconds: 30, name: '', threshold: 90 }
    const fields = ['for_seconds', 'metric', 'name', 'operator', 'renotify_seconds', 'scope', 'severity']
    expect(await faultsOf('POST', '', { ...bad, scope: {} })).toEqual(fields)
    const unknown = crypto.randomUUID()
    expect(await faultsOf('POST', '', { ...draft({ scope: { server_ids: [unknown] } }), name: 5 })).toEqual([
      'name',
      'scope.server_ids',
    ])
    const matchers = draft({ matchers: 'mount', scope: { tags: [5] } })
    expect(await faultsOf('POST', '', matchers)).toEqual(['matchers', 'scope.tags.0'])
  })

  test('[HUB-043] a change is told of everything that would be wrong after it', async () => {
    const { id } = await rule()
    const fields = await faultsOf('PATCH', `/${id}`, { severity: 'fatal', recover_threshold: 91, metric: '' })
    expect(fields).toEqual(['metric', 'recover_threshold', 'severity'])
    expect(await faultsOf('PATCH', `/${id}`, { severity: 'fatal' })).toEqual(['severity'])
  })

  test('[HRL-012] [HRL-017] what is on the right side, 64 values and 128 characters are fine', async () => {
    await rule({ recover_threshold: 90 })
    await rule({ operator: '<', recover_threshold: 90 })
    await rule({
      matchers: {
        mount: Array(64).fill('/'),
        fstype: { regex: `x{${'1'.repeat(1)}}${'y'.repeat(120)}` },
        device: 'sda',
      },
    })
  })

  test('[HRL-019] kind agent_down has no condition, and there is one in a company', async () => {
    const own = await hub.tenant()
    const body = { name: 'Second', kind: 'agent_down', severity: 'info', scope: { all: true } }
    expect((await post(body, own)).body.errors.kind).toHaveLength(1)
    const [first] = (await own.call('GET', '/monitoring/rules?kind=agent_down')).body.data
    await own.call('DELETE', `/monitoring/rules/${first.id}`)
    const { data } = (await post({ ...body, metric: 'ignored' }, own)).body
    expect(data).toMatchObject({ kind: 'agent_down', metric: null, threshold: null, for_seconds: null })
  })
})

describe('scope', () => {
  test('[RUL-004] [HRL-028] [HRL-029] tags, environments, roles and datacenters become servers of the own company, together with those that are named, or all', async () => {
    const own = await hub.tenant()
    const other = await hub.tenant()
    const tagged = await server({ tags: ['web', 'x'] }, own)
    const environment = await server({ environment: 'prod' }, own)
    const role = await server({ role: 'db' }, own)
    const datacenter = await server({ datacenter: 'dc1' }, own)
    const named = await server({}, own)
    const plain = await server({ tags: ['mail'], environment: 'test', role: 'cache', datacenter: 'dc2' }, own)
    await server({ tags: ['web'], environment: 'prod', role: 'db', datacenter: 'dc1' }, other)
    const { id, resolved_server_count } = await rule(
      { scope: { tags: ['web'], environments: ['prod'], roles: ['db'], datacenters: ['dc1'], server_ids: [named] } },
      own,
    )
    const expected = [tagged, environment, role, datacenter, named].sort()
    expect((await inFeed(id)).resolved_server_ids.sort()).toEqual(expected)
    expect(resolved_server_count).toBe(5)
    const covered = (await own.call('GET', `/monitoring/rules/${id}/servers`)).body
    expect(covered.data.map((item: Json) => item.id).sort()).toEqual(expected)
    const everywhere = await rule({ scope: { all: true, tags: ['web'], server_ids: [named] } }, own)
    const all = (await own.call('GET', `/monitoring/rules/${everywhere.id}/servers`)).body
    expect(all.data.map((item: Json) => item.id).sort()).toEqual([...expected, plain].sort())
    const foreign = await post(draft({ scope: { server_ids: [await server({}, other)] } }), own)
    expect(foreign.status).toBe(422)
  })

  test('[HRL-030] [HRL-031] [HRL-032] [HRL-033] a change of servers raises sync_version exactly when the set changes, never version', async () => {
    const own = await hub.tenant()
    const target = await server({ tags: ['a'] }, own)
    const { id } = await rule({ scope: { tags: ['b'] } }, own)
    let last = await inFeed(id)
    const step = async (act: () => Promise<unknown>, expected: string[] | null) => {
      await act()
      const now = await inFeed(id)
      expect(now.version).toBe(1)
      if (expected === null) expect(now.sync_version).toBe(last.sync_version)
      else {
        expect(now.sync_version).toBeGreaterThan(last.sync_version)
        expect(now.resolved_server_ids).toEqual(expected)
      }
      last = now
    }
    const patch = (body: Json) => () => own.call('PATCH', `/servers/${target}`, body)
    await step(patch({ tags: ['a', 'b'] }), [target])
    await step(patch({ tags: ['b', 'c'] }), null)
    await step(patch({ environment: 'prod', notes: 'x' }), null)
    await step(patch({ tags: ['c'] }), [])
    const second = await server({ tags: ['b'] }, own)
    await step(async () => {}, [second])
    await step(() => own.call('DELETE', `/servers/${second}`), [])
    await step(() => own.call('POST', `/servers/${second}/restore`), [second])
    await step(() => server({ tags: ['z'] }, own), null)
  })
})

describe('preview', () => {
  /** What a collector says of the disks of any server. */
  const answered = (series: Json, heard: Json = []) => ({
    status: 200,
    body: {
      data: {
        ...{ from: 'x', to: 'x', step_seconds: 30, left_out: [] },
        metrics: [
          { metric: 'disk_used_percent', series },
          { metric: 'uptime_seconds', series: [{ labels: {}, points: heard }] },
        ],
      },
    },
  })

  test('[HRL-003] a draft shows what it covers and violates, and is not stored', async () => {
    const own = await hub.tenant()
    const target = await server({ tags: ['p'] }, own)
    await server({}, own)
    const point = (value: number) => [
      [Date.now() - 60_000, 1],
      [Date.now() - 1000, value],
    ]
    const mounts = { '/': 95, '/data': 50, '/skip': 99 }
    const series = Object.entries(mounts).map(([mount, value]) => ({ labels: { mount }, points: point(value) }))
    admin.answer = () => answered(series)
    const body = draft({ scope: { tags: ['p'] }, matchers: { mount: { regex: '/(data)?' } } })
    const answer = (await own.call('POST', '/monitoring/rules/preview', body)).body
    expect(answer.data).toMatchObject({ matched_servers: 1, violating: 1, servers: [{ id: target }] })
    expect(answer.data.series).toEqual([
      { server_id: target, series_key: 'disk_used_percent{mount="/"}', value: 95, violating: true },
      { server_id: target, series_key: 'disk_used_percent{mount="/data"}', value: 50, violating: false },
    ])
    expect(answer.collector).toEqual({ available: true, reason: null })
    expect((await own.call('GET', '/monitoring/rules')).body.meta.total).toBe(8)
    admin.answer = () => ({ status: 503, body: {} })
    expect((await own.call('POST', '/monitoring/rules/preview', body)).body).toMatchObject({
      data: { matched_servers: 1, series: [], history: null },
      collector: { available: false, reason: 'unavailable' },
    })
    admin.answer = () => ({ status: 200, body: { data: {} } })
  })

  test('[HRL-003] a draft says when it would have fired over the last hours, server by server', async () => {
    const own = await hub.tenant()
    const [calm, busy] = [await server({ name: 'calm' }, own), await server({ name: 'busy' }, own)]
    const stepMs = 30_000
    const lastMs = Math.floor(Date.now() / stepMs) * stepMs
    /** Two hours of values, the newest last; `high` are steps before the end. */
    const points = (high: readonly number[]) =>
      Array.from({ length: 240 }, (_, index) => [lastMs - (239 - index) * stepMs, high.includes(239 - index) ? 97 : 40])
    admin.answer = asked => {
      const high = asked.path.includes(busy) ? [200, 199, 198, 197, 100, 50, 49, 48, 47, 46] : [120]
      return answered([{ labels: { mount: '/' }, points: points(high) }])
    }
    const body = { ...draft({ scope: { all: true }, threshold: 90, for_seconds: 60 }), hours: 3 }
    const { data } = (await own.call('POST', '/monitoring/rules/preview', body)).body
    const asked = admin.asked.filter(each => each.path.endsWith('/by-metric')).at(-1)
    expect([asked?.query.get('step'), asked?.query.get('agg')]).toEqual(['30', 'last'])
    expect(Number(asked?.query.get('to')) - Number(asked?.query.get('from'))).toBe(3 * 3600)
    expect(data.history).toMatchObject({ step_seconds: 30, servers_read: 2, servers_fired: 1, alerts: 2 })
    const [first, second] = data.history.servers
    expect([first.server, first.alerts, first.firing_now]).toEqual([{ id: busy, name: 'busy' }, 2, false])
    expect([second.server.id, second.alerts, second.firings]).toEqual([calm, 0, []])
    const [firing] = first.firings
    const at = (steps: number) => new Date(lastMs - steps * stepMs).toISOString()
    expect([firing.opened_at, firing.resolved_at, firing.reason]).toEqual([at(198), at(196), 'recovered'])
    expect(first.firing_seconds).toBe(60 + 90)
    admin.answer = () => ({ status: 200, body: { data: {} } })
    const wrong = await own.call('POST', '/monitoring/rules/preview', { ...body, hours: 1000 })
    expect([wrong.status, Object.keys(wrong.body.errors)]).toEqual([422, ['hours']])
  })

  test('[HRL-003] a preview and the rule editor read the same servers and find the same alerts, also where data ends', async () => {
    const own = await hub.tenant()
    for (let at = 0; at < 25; at++) await server({ name: `a-${at}` }, own)
    const last = await server({ name: 'z' }, own)
    await hub.hub.database.db.execute(sql`
      insert into monitoring_alerts (id, company_id, type, server_id, rule_key, series_key, severity, state, opened_at, last_event_seq)
      values (${crypto.randomUUID()}, ${own.companyId}, 'threshold', ${last}, 'x', 'x', 'critical', 'open', now(), 1)`)
    const stepMs = 30_000
    const lastMs = Math.floor(Date.now() / stepMs) * stepMs
    const steps = Array.from({ length: 240 }, (_, index) => lastMs - (239 - index) * stepMs)
    // High for half an hour, and then the disk is gone while its server goes on sending.
    const points = steps.slice(0, 120).map((at, index) => [at, index >= 60 ? 97 : 40])
    admin.answer = asked => {
      const series = asked.path.includes(last) ? [{ labels: { mount: '/' }, points }] : []
      return asked.path.endsWith('/series')
        ? { status: 200, body: { data: { series } } }
        : answered(series, asked.path.includes(last) ? steps.map(at => [at, 1]) : [])
    }
    const condition = { threshold: 90, for_seconds: 60, no_data: 'resolve' as const }
    const input = { ...draft({ scope: { all: true }, ...condition }), hours: 3 }
    const { data } = (await own.call('POST', '/monitoring/rules/preview', input)).body
    const [first] = data.history.servers
    expect([data.history.servers_read, first.server.id, first.alerts]).toEqual([25, last, 1])
    expect(first.firings[0].reason).toBe('no_data')

    const shown = await previewSeries(
      { hub: hub.hub, companyId: own.companyId },
      { metric: 'disk_used_percent', matchers: {}, scope: { all: true }, worst: 'high', hours: 3 },
    )
    const rule = ruleRecord({ ...condition, metric: 'disk_used_percent', operator: '>' })
    const judged = shown.series.flatMap(({ server: of, labels, points: own, heardAtMs }) =>
      firingsOf(
        replayRule({
          rule,
          serverId: of.id,
          series: [{ labels, points: own }],
          heardAtMs,
          stepMs,
          toMs: shown.range.toMs,
        }),
      ),
    )
    const at = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
    expect(judged.map(({ openedAtMs, resolvedAtMs }) => [at(openedAtMs), at(resolvedAtMs)])).toEqual(
      data.history.servers.flatMap(({ firings }: Json) =>
        firings.map(({ opened_at, resolved_at }: Json) => [opened_at, resolved_at]),
      ),
    )
    admin.answer = () => ({ status: 200, body: { data: {} } })
  })

  test('[HRL-003] a week of 25 servers takes a hundred questions, few at once, and ends when a user has waited enough', async () => {
    const own = await hub.tenant()
    for (let at = 0; at < 26; at++) await server({ name: `b-${at}` }, own)
    let [open, openMax, nowMs, eachMs] = [0, 0, Date.now(), 0]
    admin.answer = async () => {
      openMax = Math.max(openMax, ++open)
      await setImmediate()
      nowMs += eachMs
      open--
      return answered([{ labels: { mount: '/' }, points: [[nowMs, 50]] }])
    }
    const slow = { hub: { ...hub.hub, now: () => nowMs }, companyId: own.companyId }
    const preview = () => previewRule(slow, { ...draft({ scope: { all: true } }), hours: 168 })
    const asked = async (look: () => ReturnType<typeof preview>) => {
      const before = admin.asked.length
      const { data, collector } = await look()
      return [admin.asked.length - before, data.history?.servers_read, collector.available]
    }
    expect(await asked(preview)).toEqual([100, 25, true])
    expect(openMax).toBeLessThanOrEqual(5)
    eachMs = 500
    // Fifteen seconds: seven servers whole and questions about further ones, which count as not answered.
    const [count, read, isAvailable] = await asked(preview)
    expect(isAvailable).toBe(false)
    expect(Number(count)).toBeGreaterThanOrEqual(30)
    expect(Number(count)).toBeLessThan(35)
    expect(Number(read)).toBeLessThan(10)
    admin.answer = () => ({ status: 200, body: { data: {} } })
  })

  test('[HRL-003] long previews of one company leave those of another their time', async () => {
    const [greedy, modest] = [await hub.tenant(), await hub.tenant()]
    for (let at = 0; at < 8; at++) await server({ name: `c-${at}` }, greedy)
    await server({ name: 'd' }, modest)
    const held = Promise.withResolvers<void>()
    let open = 0
    admin.answer = async ({ query }) => {
      if (query.get('company_id') === greedy.companyId) {
        open++
        await held.promise
      }
      return answered([{ labels: { mount: '/' }, points: [[Date.now(), 50]] }])
    }
    const preview = ({ companyId }: typeof greedy) =>
      previewRule({ hub: hub.hub, companyId }, { ...draft({ scope: { all: true } }), hours: 168 })
    const long = Array.from({ length: 3 }, () => preview(greedy))
    await until('the places of the company are taken', async () => open === 5)
    const { data, collector } = await preview(modest)
    expect([data.history?.servers_read, collector.available, open]).toEqual([1, true, 5])
    held.resolve()
    for (const { data: own } of await Promise.all(long)) expect(own.history?.servers_read).toBe(8)
    admin.answer = () => ({ status: 200, body: { data: {} } })
  })
})
