// Requests generated from the OpenAPI document, right and wrong ones, by an administrator, another tenant and nobody:
// every answer is one that the document has, none is a failure of the hub, and none tells what it should not.
// SVC_FUZZ_RUNS=50 runs long; `--seed N` repeats a run.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { tokenHash } from '../../apps/hub/identity/token-forms.ts'
import { isObject } from '../../core/json-object.ts'
import { runsOf, seedOf } from '../fuzz/seeded.ts'
import { disagreement, type Operation, operations, resolved } from './answers.ts'
import { acceptedBy, type Ids, oddText, oddValue, refusedBy } from './arbitrary.ts'
import { caller, type Json, type Tenant, TestHub } from './hub-harness.ts'
import { kindSamples } from './kind-samples.ts'
import { enroll, findingPayload, opened } from './security-event.ts'

const seed = seedOf('requests from the document')
const rounds = runsOf(1)
const NEVER_TOLD =
  /\/tmp\/|\/work\/|node_modules|\.ts:\d|\n\s+at |(select|insert into|update|delete from) [a-z_"]+[ .]|postgres|drizzle|(lic|agt|hub|adm|whs|ses|scn)_[0-9A-Za-z]{20}/i
/** Letters that English has not. */
const VIETNAMESE = /[à-ỹđ]/i
/** Long answers that end when the caller goes. */
const STREAMS = new Set(['getNotificationStream'])

let hub: TestHub
let owner: Tenant
let stranger: Tenant
let rootToken: string
let collectorToken: string
let matcherToken: string
const pool = new Map<string, string[]>()
/** Whoever asks must not take away what they may do. */
const untouchable = new Set<string>()
let turn = seed

beforeAll(async () => {
  hub = await TestHub.start({ 'webhooks.allow_private': true, 'webhooks.timeout': '500ms' })
  owner = await hub.tenant()
  stranger = await hub.tenant()
  const root = await hub.user(owner.companyId, ['*'], { superAdmin: true })
  rootToken = root.token
  untouchable.add(root.userId).add(owner.userId)
  const collector = await hub.collector()
  collectorToken = collector.token
  untouchable.add(collector.id)
  matcherToken = (await hub.matcher()).token
  await fill()
})
afterAll(() => hub.stop())

const remember = (name: string, id: string): void => {
  if (untouchable.has(id) || pool.get(name)?.includes(id)) return
  pool.set(name, [...(pool.get(name) ?? []), id].slice(-20))
}

/** Of a part: the ids in its path. */
const parents = new Map<string, Readonly<Record<string, string>>>()
const PARAMETER = /\{([a-z_]+)\}/g

/** Notes of what a part, made or listed at `path`, is one. */
function rememberParents(id: string, template: string, path: string): void {
  const found = new RegExp(`^${template.replace(PARAMETER, '(?<$1>[^/]+)')}$`).exec(path)?.groups
  if (found) parents.set(id, { ...found })
}

/** The company's first resources, so that the first requests find something. */
async function fill(): Promise<void> {
  const { call } = owner
  const make = async (name: string, path: string, body: unknown) => {
    const answer = await call('POST', path, body)
    expect(answer.status, `${path} ${JSON.stringify(answer.body)}`).toBe(201)
    remember(name, answer.body.data.id)
    for (const each of operations)
      if (each.method === 'POST') rememberParents(answer.body.data.id, each.path, `/api/v1${path}`)
    return answer.body
  }
  const collect = async (path: string, body: unknown): Promise<Json> =>
    (await caller(hub.url, collectorToken)('POST', `/monitoring/collector${path}`, body)).body
  for (let index = 0; index < 5; index++) {
    const { data } = await make('server', '/servers', { name: `web-${index}`, hostname: `web-${index}` })
    const { token } = await make('license', '/monitoring/licenses', { name: 'web', server_id: data.id })
    const agent = await collect('/enroll', { license: token, hostname: `web-${index}`, machine_id: randomUUID() })
    remember('agent', agent.data.agent_id)
    remember('agent_id', agent.data.agent_id)
    remember('text agent_id', agent.data.agent_id)
    remember('text token_hash', tokenHash(agent.data.agent_token))
  }
  const rule = { name: 'cpu', scope: { all: true }, severity: 'warning', metric: 'cpu_usage_percent', operator: '>' }
  await make('rule', '/monitoring/rules', { ...rule, threshold: 90 })
  await make('silence', '/monitoring/silences', {
    scope: { all: true },
    reason: 'work',
    ends_at: new Date(Date.now() + 3_600_000).toISOString(),
  })
  await make('check', '/monitoring/checks', {
    name: 'sshd',
    scope: { all: true },
    type: 'service',
    target: { name: 'ssh' },
  })
  await make('user', '/users', { name: 'Ada', email: `${randomUUID()}@example.test` })
  await make('role', '/roles', { name: 'watch', permissions: ['monitoring.view'] })
  await make('team', '/teams', { name: 'night' })
  await make('company', '/companies', { name: 'Child' })
  await make('channel', '/notifications/channels', { name: 'ops', address: 'ops@example.test' })
  await make('webhook', '/webhooks', { name: 'chat', url: 'http://127.0.0.1:1/' })
  for (const name of ['a.txt', 'b.txt']) await make('file', '/files', { name, content_base64: 'cGxhbg==' })
  for (const index of [1, 2]) {
    await make('ip', '/ips', { address: `10.${index}.0.7` })
    const { data } = await make('zone', '/dns/zones', { name: `zone-${index}.example`, verify_interval_minutes: 0 })
    // An address of each lies in a subnet: what is free in one is asked of subnets that hold something.
    await make('subnet', '/subnets', { cidr: `10.${index}.0.0/24` })
    await make('nameserver', '/dns/servers', { name: `ns-${index}`, host: '127.0.0.1', port: 1 })
    await make('record', `/dns/zones/${data.id}/records`, { type: 'A', name: 'www', value: '192.0.2.7' })
    const edge = await make('proxy', '/proxies', { name: `edge ${index}`, check_interval_seconds: 0 })
    await make('site', `/proxies/${edge.data.id}/sites`, { hostnames: ['a.example.com'] })
    const device = await make('device', '/load-balancers', { name: `lb ${index}`, vendor: 'haproxy' })
    const lb = `/load-balancers/${device.data.id}`
    const web = await make('pool', `${lb}/pools`, { name: 'web' })
    await make('member', `${lb}/pools/${web.data.id}/members`, { address: `10.9.0.${index}`, port: 80 })
    await make('vs', `${lb}/virtual-servers`, { name: 'www', address: '192.0.2.1', port: 80 })
    await make('certificate', '/certificates', await kindSamples.certificate?.body(index, call))
    const target = { kind: 'external', host: '127.0.0.1' }
    await make('connection', '/connections', { source: { kind: 'service', name: `shop ${index}` }, target, port: 1 })
  }
  for (const name of ['First say', 'Second say']) {
    const steps = [{ name: 'Only', user_ids: [String((await call('GET', '/me')).body.data.id)] }]
    const { data } = await make('workflow', '/approvals/workflows', { name, steps, enabled: false })
    remember('step', data.steps[0].id)
  }
  const schedule = { name: 'Night', resource: 'servers', every: 'day', at: '02:30', time_zone: 'UTC' }
  for (let count = 0; count < 2; count++) {
    await make('schedule', '/exports/schedules', schedule)
    remember('export', (await call('POST', '/exports', { resource: 'servers' })).body.data.id)
  }
  await call('PATCH', '/monitoring/settings', { auto_create_server: true })
  const many = await make('license', '/monitoring/licenses', { name: 'many', max_uses: 1000 })
  remember('text license', many.token)
  remember('company_id', owner.companyId)
  for (const kind of ['server', 'subnet']) remember('text kind', kind)
  await collect('/inventory', {
    items: (pool.get('agent') ?? []).map((agent_id, index) => ({
      agent_id,
      company_id: owner.companyId,
      server_id: pool.get('server')?.[index],
      reported_at: new Date().toISOString(),
      facts: { os: { name: 'Debian' }, cpu: { cores: 8 }, nics: [{ name: 'eth0', ips: ['192.0.2.7'] }] },
    })),
  })
  const events = (pool.get('server') ?? []).map((server_id, seq) => ({
    event_id: randomUUID(),
    type: 'alert.opened',
    seq: seq + 1,
    occurred_at: new Date().toISOString(),
    company_id: owner.companyId,
    server_id,
    rule_id: pool.get('rule')?.[0],
    rule_version: 1,
    series_key: 'cpu_usage_percent',
    severity: 'warning',
    value: 95,
    threshold: 90,
    suppressed: false,
    labels: {},
  }))
  await collect('/events', { events })
  const host = await enroll(owner, (method, path, body) =>
    caller(hub.url, matcherToken)(method, `/security/matcher${path}`, body),
  )
  for (const name of ['host', 'host_id']) remember(name, host.hostId)
  remember('text public_key', host.publicKey)
  await caller(hub.url, matcherToken)('POST', '/security/matcher/events', {
    events: [1, 2, 3].map(() => opened(host, findingPayload())),
  })
  for (const finding of (await call('GET', '/security/findings')).body.data) remember('finding', finding.id)
  for (const alert of (await call('GET', '/monitoring/alerts')).body.data) remember('alert', alert.id)
  for (const entry of (await call('GET', '/audit-log')).body.data) remember('entry', entry.id)
}

const ids: Ids = {
  text: name => (pool.has(`text ${name}`) ? fc.constantFrom(...(pool.get(`text ${name}`) ?? [])) : null),
  pick: name => {
    const known = pool.get(name.replace(/_id$/, '')) ?? pool.get(name) ?? [randomUUID()]
    return fc.constantFrom(...known)
  },
}

/** One value of an arbitrary; another with every call, the same ones with the same seed. */
function draw<T>(arbitrary: fc.Arbitrary<T>): T {
  const [value] = fc.sample(arbitrary, { seed: turn++, numRuns: 1 })
  return value as T
}

type Kind = 'right' | 'wrong'
type Sent = { readonly url: string; readonly init: RequestInit; readonly usesKnownIds: boolean }

const parametersOf = (operation: Operation) => {
  const list: unknown[] = Array.isArray(operation.content.parameters) ? operation.content.parameters : []
  return list.map(resolved)
}

function pathOf(operation: Operation, kind: Kind): { path: string; usesKnownIds: boolean } {
  let usesKnownIds = false
  const names = [...operation.path.matchAll(PARAMETER)].map(([, name]) => name ?? '')
  const last = names.at(-1) ?? ''
  // A part is asked for below what it is a part of.
  const part = names.length > 1 && pool.has(last) ? draw(ids.pick(last)) : null
  const ofPart = part === null ? {} : { ...parents.get(part), [last]: part }
  const path = operation.path.replace(PARAMETER, (_, name: string) => {
    const schema = resolved(parametersOf(operation).find(parameter => parameter.name === name)?.schema)
    if (kind === 'wrong' && draw(fc.integer({ min: 0, max: 2 })) === 0)
      return encodeURIComponent(
        draw(oddText.filter(text => text.trim() !== '' && text.isWellFormed() && !/^\.*$/.test(text))),
      )
    usesKnownIds ||= pool.has(name)
    if (ofPart[name] !== undefined) return ofPart[name]
    return encodeURIComponent(String(draw(schema.format === 'uuid' ? ids.pick(name) : acceptedBy(schema, ids, name))))
  })
  return { path, usesKnownIds }
}

function queryOf(operation: Operation, kind: Kind): string {
  const query = new URLSearchParams()
  for (const parameter of parametersOf(operation)) {
    if (parameter.in !== 'query') continue
    if (parameter.required !== true && draw(fc.boolean())) continue
    const name = String(parameter.name)
    const right = acceptedBy(parameter.schema, ids, name)
    const value = draw(
      kind === 'wrong' ? fc.oneof(right, oddValue) : name === 'metric' ? fc.constant('cpu_usage_percent') : right,
    )
    query.set(name, typeof value === 'string' ? value.toWellFormed() : JSON.stringify(value))
  }
  if (kind === 'wrong' && draw(fc.integer({ min: 0, max: 5 })) === 0) query.set('unknown', draw(oddText).toWellFormed())
  return query.size === 0 ? '' : `?${query}`
}

function bodyOf(operation: Operation, kind: Kind): { body?: string; type?: string } {
  const content = isObject(operation.content.requestBody) ? operation.content.requestBody.content : undefined
  const json = isObject(content) ? content['application/json'] : undefined
  if (!isObject(json)) return {}
  if (kind === 'right') return { body: JSON.stringify(draw(acceptedBy(json.schema, ids))), type: 'application/json' }
  const dice = draw(fc.integer({ min: 0, max: 11 }))
  if (dice === 0) return { body: '{"name":', type: 'application/json' }
  if (dice === 1) return { body: 'name=x', type: 'application/x-www-form-urlencoded' }
  if (dice === 2) return { body: `"${'x'.repeat(2_100_000)}"`, type: 'application/json' }
  return { body: JSON.stringify(draw(refusedBy(json.schema, ids))) ?? 'null', type: 'application/json' }
}

function requestFor(operation: Operation, kind: Kind, token: string | null): Sent {
  const { path, usesKnownIds } = pathOf(operation, kind)
  const { body, type } = bodyOf(operation, kind)
  const headers: Record<string, string> = { Accept: 'application/json' }
  if (token !== null) headers.Authorization = `Bearer ${token}`
  if (type !== undefined) headers['Content-Type'] = type
  if (kind === 'wrong') {
    const dice = draw(fc.integer({ min: 0, max: 19 }))
    if (dice === 0) headers['X-Company-Id'] = draw(fc.constantFrom('x', randomUUID(), stranger.companyId))
    if (dice === 1) headers.Accept = 'text/html'
    headers['Accept-Language'] = draw(fc.constantFrom('vi', 'en', 'vi;q=0.5, en;q=x', '*', ',;q='))
  }
  const init: RequestInit = { method: operation.method, headers, ...(body === undefined ? {} : { body }) }
  return { url: `${hub.url}${path}${queryOf(operation, kind)}`, init, usesKnownIds }
}

/** What a refusal says to people. */
function sentencesOf(body: unknown): string[] {
  if (!isObject(body)) return []
  const own = typeof body.message === 'string' ? [body.message] : []
  const fields = isObject(body.errors) ? Object.values(body.errors).flat() : []
  return [...own, ...fields.map(String)]
}

type Received = { readonly status: number; readonly body: unknown; readonly what: string }

async function send(operation: Operation, { url, init }: Sent): Promise<Received> {
  const response = await fetch(url, init)
  const text = await response.text()
  const body: unknown = text === '' ? null : JSON.parse(text)
  const what = `--seed ${seed}: ${init.method} ${url.slice(hub.url.length)} ${String(init.body ?? '').slice(0, 400)} -> ${response.status} ${text.slice(0, 400)}`
  // Without a matcher there is nobody to ask, and that is a documented answer.
  if (response.status !== 503 || !operation.path.endsWith('/security/resync'))
    expect(response.status, what).toBeLessThan(500)
  const fault = disagreement(operation, response.status, response.headers.get('content-type'), body)
  if (fault) throw new Error(`${fault}: ${what}`)
  if (response.status >= 400) expect(text, what).not.toMatch(NEVER_TOLD)
  if (response.status >= 400 && new Headers(init.headers).get('accept-language') === 'vi')
    for (const sentence of sentencesOf(body)) expect(sentence, what).toMatch(VIETNAMESE)
  return { status: response.status, body, what }
}

/** What was made can be asked for, and what is gone is not asked for again. */
function learn(operation: Operation, { url, init }: Sent, { status, body }: Received): void {
  // What was made in another company is not the owner's.
  if (new Headers(init.headers).has('x-company-id')) return
  const data: unknown = status < 300 && isObject(body) ? body.data : undefined
  const rows: unknown[] = Array.isArray(data) ? data : [data]
  const child = operations.find(each => each.path.startsWith(`${operation.path}/{`))
  const name = child && /\{([a-z_]+)\}/.exec(child.path.slice(operation.path.length))?.[1]
  // Built-in roles are everybody's.
  if (name && (status === 201 || operation.method === 'GET'))
    for (const row of rows)
      if (isObject(row) && typeof row.id === 'string' && !row.built_in) {
        remember(name, row.id)
        rememberParents(row.id, operation.path, new URL(url).pathname)
      }
  if (status !== 204) return
  for (const [name, known] of pool)
    if (known.length > 1) pool.set(name, known.filter(id => !url.endsWith(id)).slice(-20))
}

/** What holds for everybody would be in the way of every request after it. */
async function leaveAsItWas(): Promise<void> {
  const { client } = hub.hub.database
  await client`delete from maintenance`
  await client`delete from setting_values`
  await hub.hub.state.refresh()
}

const tokenFor = (path: string): string =>
  path.startsWith('/api/v1/monitoring/collector/')
    ? collectorToken
    : path.startsWith('/api/v1/security/matcher/')
      ? matcherToken
      : rootToken
const tried = operations.filter(
  ({ path, content }) => !STREAMS.has(String(content.operationId)) && !/\/(download|export|chain)$/.test(path),
)
/** What takes things away comes last in every round. */
const ordered = [...tried].sort((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'))

describe('requests made from the document', () => {
  test('[HUB-045] [HUB-046] [HUB-043] [HUB-030] whoever asks for whatever, the answer is a documented one and tells nothing of the inside', async () => {
    const seen = new Map<string, Set<number>>()
    for (let round = 0; round < rounds; round++)
      for (const operation of ordered) {
        const token = tokenFor(operation.path)
        for (const kind of ['right', 'wrong', 'wrong', 'right'] as const) {
          const request = requestFor(operation, kind, token)
          const answer = await send(operation, request)
          if (operation.path.startsWith('/api/v1/system/')) await leaveAsItWas()
          learn(operation, request, answer)
          const name = String(operation.content.operationId)
          seen.set(name, (seen.get(name) ?? new Set()).add(answer.status))
        }
      }
    // The requests are worth something only if most of them do what they are for.
    const fruitless = [...seen].filter(([, statuses]) => [...statuses].every(status => status >= 300))
    if (process.env.SVC_FUZZ_SHOW) for (const [name, statuses] of fruitless) console.log(name, ...statuses)
    expect(fruitless.length / seen.size).toBeLessThan(0.3)
  }, 240_000)

  test('[HUB-033] [HUB-034] of another company nothing is found, whatever is sent', async () => {
    for (let round = 0; round < rounds; round++)
      for (const operation of tried) {
        const request = requestFor(operation, 'right', stranger.token)
        const { status, what } = await send(operation, request)
        if (request.usesKnownIds) expect([403, 404], what).toContain(status)
      }
  }, 240_000)

  test('[HUB-035] without a token every operation answers 401, before it looks at anything', async () => {
    for (const operation of tried) {
      const { status, what } = await send(operation, requestFor(operation, 'wrong', null))
      expect(status, what).toBe(401)
    }
  }, 240_000)
})
