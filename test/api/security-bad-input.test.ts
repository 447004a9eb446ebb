// Bad input of the security endpoints of people (decisions G-154, G-160, G-174 to G-176): the status, and the field
// that is named. What belongs to one endpoint alone stands in the tests of that endpoint.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { damaged, mutated } from '../fuzz/hostile-values.ts'
import { Random, runsOf, seedOf } from '../fuzz/seeded.ts'
import { until } from '../support/until.ts'
import { caller, type Json, type Tenant, TestHub } from './hub-harness.ts'
import { expectRefused, type RefusedRow } from './refused-rows.ts'
import { enroll, enrolling, eventOf, findingPayload, newServer, scannedPayload } from './security-event.ts'
import { finding, seedFindings, seedHost } from './security-rig.ts'

const NO = '3f2a7c1e-9b4d-4e8a-a1c5-6d7e8f901234'
const X = (length: number): string => 'x'.repeat(length)
const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString()

let hub: TestHub
let tenant: Tenant
let foreign: Tenant
/** A server, a host and a finding of a company. */
type Own = { readonly server: string; readonly host: string; readonly finding: string }
let own: Own
let theirs: Own

async function seeded(owner: Tenant): Promise<Own> {
  const server = (await owner.call('POST', '/servers', { name: crypto.randomUUID() })).body.data.id
  const host = await seedHost(hub, owner.companyId, server)
  const row = finding(owner.companyId, host, { server_id: server })
  await seedFindings(hub, [row])
  return { server, host, finding: row.id }
}

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  foreign = await hub.tenant()
  own = await seeded(tenant)
  theirs = await seeded(foreign)
})
afterAll(() => hub.stop())

const refuses = (rows: readonly RefusedRow[]): Promise<void> => expectRefused(tenant, rows)
const put = (path: string, rows: readonly (readonly [body: unknown, field: string])[]): Promise<void> =>
  refuses(rows.map(([body, field]) => ['PUT', path, body, 422, field]))
const post = (path: string, rows: readonly (readonly [body: unknown, field: string])[]): Promise<void> =>
  refuses(rows.map(([body, field]) => ['POST', path, body, 422, field]))

const LISTS: Readonly<Record<string, { readonly words: readonly string[]; readonly texts: readonly string[] }>> = {
  '/security/findings': {
    words: ['status', 'kind', 'priority', 'server_id', 'fix_status', 'kev'],
    texts: ['severity_label', 'vuln_id', 'search'],
  },
  '/security/secrets': { words: ['status', 'server_id'], texts: ['search'] },
  '/security/pii-map': { words: ['status', 'server_id'], texts: ['search'] },
  '/security/exceptions': { words: ['status', 'type'], texts: [] },
  '/security/scan-hosts': { words: ['state', 'server_id'], texts: ['search'] },
  '/security/services': { words: ['type'], texts: ['search'] },
  '/security/software': { words: [], texts: ['search'] },
}

test('[SECU-003] [SECU-007] [SECU-010] [SECU-011] [SECU-013] [SECU-014] each filter of each list names itself when its value is none', async () => {
  for (const [path, { words, texts }] of Object.entries(LISTS)) {
    const wrong = [
      ...['0', '-1', 'x', '1.5', '10000000'].map(page => ['page', page] as const),
      ...words.flatMap(name => ['x', 'OPEN', '%00', '%5B%5D', '%27%3B--', X(300)].map(value => [name, value] as const)),
      ...texts.flatMap(name => [X(257), 'a%00b'].map(value => [name, value] as const)),
    ]
    await refuses(wrong.map(([name, value]) => ['GET', `${path}?${name}=${value}`, undefined, 422, name]))
    const empty = [...words, ...texts, 'page'].map(name => `${name}=`).join('&')
    const hostile = texts.map(name => `${name}=%25_%5C%27%22%3Cscript%3E`).join('&')
    for (const query of [empty, hostile, 'unknown=1&sort=x', `page=1000000`])
      expect([path, query, (await tenant.call('GET', `${path}?${query}`)).status]).toEqual([path, query, 200])
  }
})

test('[SECU-004] [SECU-005] [SECU-006] what is not there, and what is another company’s, is not found', async () => {
  const made = { type: 'false_positive', reason: 'not ours', finding_ids: [theirs.finding] }
  const asked = (await foreign.call('POST', '/security/exceptions', made)).body.data.id
  const theirExport = (await foreign.call('POST', '/security/exports', { format: 'csv' })).body.data.id
  const rows: RefusedRow[] = []
  const all = (ids: readonly string[], row: (id: string) => readonly [string, string, unknown?]) => {
    for (const id of ids) {
      const [method, path, body] = row(id)
      rows.push([method, path, body, 404, null])
    }
  }
  all([theirs.finding, NO, 'x'], id => ['GET', `/security/findings/${id}`])
  for (const part of ['security', 'packages']) all([theirs.server, NO, 'x'], id => ['GET', `/servers/${id}/${part}`])
  all([asked, NO, 'x'], id => ['DELETE', `/security/exceptions/${id}`])
  for (const act of ['approve', 'reject']) all([asked, NO, 'x'], id => ['POST', `/security/exceptions/${id}/${act}`])
  all([theirExport, NO, 'x'], id => ['GET', `/security/exports/${id}/download`])
  // The host is looked for before the data are judged.
  all([theirs.host, NO, 'x'], id => ['POST', `/security/scan-hosts/${id}/attach`, { server_id: 5 }])
  all([theirs.host, NO, 'x'], id => ['POST', `/security/scan-hosts/${id}/revoke`])
  await refuses(rows)
  const upper = await tenant.call('GET', `/security/findings/${own.finding.toUpperCase()}`)
  expect([upper.status, upper.body.data.id]).toEqual([200, own.finding])
})

test('[SECU-005] [SECU-006] [SECU-025] packages and their search: bounds of pages and texts', async () => {
  const packages = `/servers/${own.server}/packages`
  const search = '/security/packages/search'
  const limits = (path: string): RefusedRow[] =>
    ['0', '-5', 'x', '1.5'].map(limit => ['GET', `${path}limit=${limit}`, undefined, 422, 'limit'])
  await refuses([
    ...limits(`${packages}?`),
    ...limits(`${search}?name=a&`),
    ['GET', `${packages}?q=${X(257)}`, undefined, 422, 'q'],
    ['GET', `${packages}?cursor=${X(8193)}`, undefined, 422, 'cursor'],
    ...['', '?name=', '?name=%20', `?name=${X(257)}`, '?name=a%00'].map(
      (query): RefusedRow => ['GET', `${search}${query}`, undefined, 422, 'name'],
    ),
    ...['version_lt', 'version_gte', 'ecosystem'].map(
      (name): RefusedRow => ['GET', `${search}?name=a&${name}=${X(257)}`, undefined, 422, name],
    ),
  ])
  expect((await tenant.call('GET', `${packages}?limit=501&q=&cursor=`)).status).toBe(200)
})

test('[SECU-015] a request for an exception names the member that is wrong', async () => {
  const good = { type: 'accepted', reason: 'known', expires_at: inDays(10), finding_ids: [own.finding] }
  const byFilter = (filter: unknown) => ({ ...good, finding_ids: undefined, filter })
  await post('/security/exceptions', [
    [null, 'body'],
    [[], 'body'],
    [{}, 'type'],
    ...[5, null, '', 'ACCEPTED'].map((type): [Json, string] => [{ ...good, type }, 'type']),
    ...[5, null, '', X(2001), 'a\0b'].map((reason): [Json, string] => [{ ...good, reason }, 'reason']),
    ...['tomorrow', 5, '2027-02-30T00:00:00Z', '', null, inDays(-1), inDays(366), '2026-12-31'].map(
      (expires_at): [Json, string] => [{ ...good, expires_at }, 'expires_at'],
    ),
    ...['x', own.finding, {}, null].map((finding_ids): [Json, string] => [{ ...good, finding_ids }, 'finding_ids']),
    ...['x', 5, null, theirs.finding].map((id): [Json, string] => [{ ...good, finding_ids: [id] }, 'finding_ids.0']),
    [{ ...good, finding_ids: [own.finding, NO] }, 'finding_ids.1'],
    [{ ...good, finding_ids: Array.from({ length: 10_001 }, () => NO) }, 'finding_ids'],
    ...[[], 'x', { vuln_id: 'none' }, { server_id: theirs.server }].map((filter): [Json, string] => [
      byFilter(filter),
      'filter',
    ]),
    [byFilter({ kev: 'x' }), 'filter.kev'],
    [byFilter({ server_id: 'x' }), 'filter.server_id'],
    [byFilter({ status: ['open'] }), 'filter.status'],
    [byFilter({ search: X(257) }), 'filter.search'],
  ])
})

test('[SECU-015] [SECU-009] a filter of a body takes what the list takes: words of kev, and nothing for empty ones', async () => {
  const asked = { type: 'false_positive', reason: 'by filter', status: 'approved', company_id: foreign.companyId }
  for (const kev of [false, 'false', '0']) {
    const filter = { kev, status: '', priority: null, unknown: 1 }
    const { status, body } = await tenant.call('POST', '/security/exceptions', { ...asked, filter })
    expect([status, body.data]).toMatchObject([201, { status: 'pending', company_id: tenant.companyId }])
    expect(body.data.finding_ids).toEqual([own.finding])
    const exported = await tenant.call('POST', '/security/exports', { format: 'csv', filters: filter })
    expect([exported.status, exported.body.data.filters]).toEqual([202, { kev: false }])
  }
  const none = await tenant.call('POST', '/security/exceptions', { ...asked, filter: { kev: '1' } })
  expect([none.status, Object.keys(none.body.errors)]).toEqual([422, ['filter']])
})

test('[SECU-008] [SECU-012] settings, ports and the scan of contents: a member of another type or beyond its bounds', async () => {
  await put('/security/settings', [
    [null, 'body'],
    [[], 'body'],
    ...[1, null, 'true'].map((enabled): [Json, string] => [{ enabled }, 'enabled']),
    ...['24', 1.5, null, -1, 721, 1e308].map((scan_interval_hours): [Json, string] => [
      { scan_interval_hours },
      'scan_interval_hours',
    ]),
    ...['', 5, 'UTC+25', X(65), '../etc'].map((time_zone): [Json, string] => [{ time_zone }, 'time_zone']),
  ])
  await put('/security/expected-ports', [
    [[], 'body'],
    ...[null, {}, 'x'].map((ports): [Json, string] => [{ ports }, 'ports']),
    [{ ports: [80] }, 'ports.0'],
    ...[undefined, '80', 80.5, 65_536, -1].map((port): [Json, string] => [
      { ports: [{ port, proto: 'tcp' }] },
      'ports.0.port',
    ]),
    ...[undefined, null, 'TCP'].map((proto): [Json, string] => [{ ports: [{ port: 80, proto }] }, 'ports.0.proto']),
    [{ ports: Array.from({ length: 2001 }, (_, index) => ({ port: index + 1, proto: 'tcp' })) }, 'ports'],
  ])
  await put('/security/content-scan-settings', [
    [[], 'body'],
    ...['x', null].map((enabled): [Json, string] => [{ enabled }, 'enabled']),
    ...['secret', null, ['secret', 'secret', 'secret']].map((kinds): [Json, string] => [{ kinds }, 'kinds']),
    ...['/srv', null, Array.from({ length: 101 }, () => '/srv')].map((paths): [Json, string] => [{ paths }, 'paths']),
    ...['', '/a\0', `/${X(1024)}`, 5].map((path): [Json, string] => [{ paths: [path] }, 'paths.0']),
    ...['1', 1025, 0.5, null].map((max_file_mb): [Json, string] => [{ max_file_mb }, 'max_file_mb']),
  ])
  // What the hub computes is not taken.
  const { body } = await tenant.call('PUT', '/security/settings', { version: 99, history_days: 5, content_scan: true })
  expect(body.data).toMatchObject({ version: 2, content_scan: false })
})

test('[SECU-009] [SEC-053] exports, codes and attachments: a member of another type, and another company’s server', async () => {
  await post('/security/exports', [
    [null, 'body'],
    [{}, 'format'],
    ...[null, 5, 'CSV', 'json'].map((format): [Json, string] => [{ format }, 'format']),
    ...[[], 'x'].map((filters): [Json, string] => [{ format: 'csv', filters }, 'filters']),
    [{ format: 'csv', filters: { kev: 'yes' } }, 'filters.kev'],
    [{ format: 'csv', filters: { server_id: 'x' } }, 'filters.server_id'],
    [{ format: 'csv', filters: { status: ['open'] } }, 'filters.status'],
    [{ format: 'csv', filters: { search: X(257) } }, 'filters.search'],
  ])
  const servers = ['x', 5, NO, theirs.server]
  await post('/security/scan-hosts/enrolment-codes', [
    [[], 'body'],
    ...servers.map((server_id): [Json, string] => [{ server_id }, 'server_id']),
    ...[0, 10_001, 1.5, '2'].map((max_uses): [Json, string] => [{ max_uses }, 'max_uses']),
  ])
  const other = await seedHost(hub, tenant.companyId)
  const attach = `/security/scan-hosts/${other}/attach`
  await post(attach, [
    [[], 'body'],
    [{}, 'server_id'],
    ...[...servers, own.server].map((server_id): [Json, string] => [{ server_id }, 'server_id']),
  ])
  for (const server_id of [null, '']) expect((await tenant.call('POST', attach, { server_id })).status).toBe(200)
})

test('an export that is not ready is refused with its state', async () => {
  const { id } = (await tenant.call('POST', '/security/exports', { format: 'csv' })).body.data
  const download = `/api/v1/security/exports/${id}/download`
  const headers = { authorization: `Bearer ${tenant.token}` }
  await until('it is ready', async () => (await fetch(`${hub.url}${download}`, { headers })).status === 200)
  await hub.hub.database.client`update security_exports set status = 'failed' where id = ${id}`
  await refuses([['GET', `/security/exports/${id}/download`, undefined, 422, 'status']])
})

/** What the matcher and people send, and what should be there in a path. */
async function wellMeant(): Promise<readonly (readonly [method: string, path: string, body: Json, token: string])[]> {
  const { token, call } = await hub.matcher()
  const sender = await hub.tenant()
  const host = await enroll(sender, call, { serverId: await newServer(sender) })
  const exceptional = { type: 'accepted', reason: 'known', expires_at: inDays(10), finding_ids: [own.finding] }
  const events = [eventOf(host, 'finding.opened', findingPayload()), eventOf(host, 'server.scanned', scannedPayload())]
  const matcher = (method: string, path: string, body: Json) =>
    [method, `/security/matcher${path}`, body, token] as const
  const person = (method: string, path: string, body: Json) => [method, path, body, tenant.token] as const
  return [
    matcher('POST', '/events', { events }),
    matcher('POST', '/events', { events: events.toReversed() }),
    matcher('PUT', '/vulnerabilities', { items: [{ vuln_id: 'CVE-2026-0001', aliases: [], title: 'x' }] }),
    matcher('GET', `/settings/${sender.companyId}`, undefined),
    matcher('POST', '/scan-hosts/enroll', enrolling('code', host.publicKey)),
    matcher('GET', '/scan-hosts?since=0&limit=10', undefined),
    matcher('POST', `/scan-hosts/${host.hostId}/rotate`, { public_key: host.publicKey, signature: 'AAAA' }),
    matcher('POST', `/scan-hosts/${host.hostId}/seen`, { last_seen_at: inDays(0) }),
    matcher('POST', '/heartbeat', { version: '1.0.0', db_version: 2026060101, queue_depth: 0 }),
    person('GET', `/security/findings?status=open&search=a&page=2`, undefined),
    person('GET', `/security/findings/${own.finding}`, undefined),
    person('GET', `/security/packages/search?name=openssl&limit=5`, undefined),
    person('GET', `/servers/${own.server}/packages?q=ssl`, undefined),
    person('POST', '/security/exceptions', exceptional),
    person('POST', '/security/exports', { format: 'csv', filter: { status: 'open', kev: true } }),
    person('PUT', '/security/expected-ports', { ports: [{ port: 22, proto: 'tcp' }] }),
    person('PUT', '/security/settings', (await tenant.call('GET', '/security/settings')).body.data),
    person('POST', `/security/scan-hosts/${own.host}/attach`, { server_id: own.server }),
    person('POST', '/security/scan-hosts/enrolment-codes', { server_id: null, max_uses: 3 }),
  ]
}

const RUNS = 300
/** So much more memory than before the hub may keep, however many requests there were. */
const RESIDENT_GROWTH_MAX = 400 * 1024 * 1024
const NEVER_TOLD = /(select|insert into|update) [a-z_"]+|postgres|drizzle|node_modules|\.ts:\d|\n\s+at /i

test('hostile requests of matchers and of people: none is a failure of the hub, none hangs, none tells of the inside', async () => {
  const random = new Random(seedOf('hostile security requests'))
  const meant = await wellMeant()
  // As they are, all but these are taken: a used code, a signature that is none, packages without a matcher.
  const refused = ['enroll', 'rotate', 'packages']
  for (const [method, path, body, token] of meant) {
    const { status } = await caller(hub.url, token)(method, path, body)
    if (!refused.some(word => path.includes(word))) expect([path, Math.floor(status / 100)]).toEqual([path, 2])
  }
  const odd = ['x', '%00', '..%2F', '0', '-1', '%F0%9F%92%A9', X(3000), NO, "' or 1=1--", '%E0%A4%A']
  const statuses = new Map<number, number>()
  const before = process.memoryUsage().rss
  for (let run = 0; run < runsOf(RUNS); run++) {
    const [usual, place, good, token] = random.pick(meant)
    let body: unknown = good
    for (let times = random.below(4); times > 0; times--) body = mutated(body, random)
    const depth = random.chance(0.02) ? 5_000 : 0
    const text = `${'['.repeat(depth)}${JSON.stringify(body) ?? ''}${']'.repeat(depth)}`
    const bytes = random.chance(0.15) ? damaged(Buffer.from(text), random) : Buffer.from(text)
    const segments = place.split(/(?=[/?&=])/)
    if (random.chance(0.3)) segments[random.below(segments.length)] = `/${random.pick(odd)}`
    const method = random.chance(0.1) ? random.pick(['POST', 'PUT', 'DELETE', 'PATCH']) : usual
    const response = await fetch(`${hub.url}/api/v1${segments.join('')}`, {
      method,
      headers: {
        authorization: random.chance(0.05) ? 'Bearer nobody' : `Bearer ${token}`,
        accept: 'application/json',
        'content-type': random.chance(0.1) ? random.pick(['text/plain', 'application/xml', 'x']) : 'application/json',
        ...(random.chance(0.05) && { 'content-encoding': random.pick(['zstd', 'gzip', 'x']) }),
        ...(random.chance(0.1) && { 'idempotency-key': random.pick(['', X(300), 'a b']) }),
      },
      ...(method !== 'GET' && bytes.length > 0 && { body: new Uint8Array(bytes) }),
      signal: AbortSignal.timeout(30_000),
    })
    const answer = await response.text()
    // Without a matcher's address the hub cannot ask for packages.
    const isUnlinked = response.status === 503 && /packages/.test(place)
    if (response.status >= 500 && !isUnlinked)
      throw new Error(`run ${run}: ${method} ${place} ${response.status} ${text}`)
    if (NEVER_TOLD.test(answer)) throw new Error(`run ${run}: ${method} ${place} tells ${answer}`)
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
  }
  console.log(
    [...statuses]
      .toSorted(([a], [b]) => a - b)
      .map(each => each.join(': '))
      .join(', '),
  )
  expect([200, 401, 404, 422].filter(status => !statuses.has(status))).toEqual([])
  expect(process.memoryUsage().rss - before).toBeLessThan(RESIDENT_GROWTH_MAX)
  expect((await tenant.call('GET', '/security/findings')).status).toBe(200)
})
