import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { sha256Hex } from '../../core/series/hash.ts'
import { EnrollRequestSchema, EnrollResponseSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { ackOf, agentRecord, companyId, errorOf, type Rig, someSeries, startRig } from './rig.ts'
import { id } from './scripted-hub.ts'

let rig: Rig
beforeAll(async () => {
  rig = await startRig({ agents: [], keys: { trusted_proxies: '127.0.0.1' } })
})
afterAll(() => rig.stop())
beforeEach(() => {
  rig.hub.script = () => null
  rig.hub.requests.length = 0
})

const newAgent = id('enrolled agent')
const newServer = id('enrolled server')
const newToken = `agt_${'n'.repeat(43)}`

const enroll = (changes: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
  rig.call('/enroll', {
    method: 'POST',
    token: null,
    headers: { 'content-type': 'application/x-protobuf', ...headers },
    body: toBinary(
      EnrollRequestSchema,
      create(EnrollRequestSchema, {
        license: 'lic_secret',
        hostname: 'web-1',
        ipAddresses: ['10.0.0.5'],
        machineId: 'machine-1',
        os: { family: 'linux', name: 'Debian', version: '13', kernel: '6.12', arch: 'x64' },
        agentVersion: '1.2.3',
        ...changes,
      }),
    ) as Uint8Array<ArrayBuffer>,
  })

const accept = (state = 'active') => {
  rig.hub.script = ({ path }) => {
    if (path !== '/enroll') return null
    rig.hub.feeds.agents!.push(
      agentRecord({
        agent_id: newAgent,
        server_id: newServer,
        token_hash: sha256Hex(newToken),
        state,
        sync_version: 9,
      }),
    )
    const data = { agent_id: newAgent, company_id: companyId, server_id: newServer, agent_token: newToken }
    return rig.hub.ok({ ...data, config: { interval_seconds: 0 } }, 201)
  }
}

test('[ENR-001] [ENR-004] [ENR-005] [ENR-041] [WIRE-013] [WIRE-031] an enrollment is forwarded, and its token works at once', async () => {
  accept()
  const response = await enroll({}, { 'x-forwarded-for': '203.0.113.9' })
  expect(response.status).toBe(200)
  const answer = fromBinary(EnrollResponseSchema, await response.bytes())
  expect(answer).toMatchObject({ agentId: newAgent, agentToken: newToken, collectorUrl: rig.ingest.url })
  expect(answer.config?.limits?.maxSeries).toBe(500)
  expect(answer.config?.etag).toMatch(/^[0-9a-f]{16}$/)
  expect(Math.abs(Number(answer.serverTimeMs) - Date.now())).toBeLessThan(5000)

  const [forwarded] = rig.hub.to('/enroll')
  expect(forwarded?.headers.get('x-forwarded-for')).toBe('203.0.113.9')
  expect(forwarded?.body).toEqual({
    license: 'lic_secret',
    hostname: 'web-1',
    ip_addresses: ['10.0.0.5'],
    machine_id: 'machine-1',
    os: { family: 'linux', name: 'Debian', version: '13', kernel: '6.12', arch: 'x64' },
    agent_version: '1.2.3',
    proto_version: 1,
    collector_id: id('collector'),
  })
  const ack = await ackOf(await rig.send({ seq: 1n, series: someSeries(2) }, { token: newToken }))
  expect(ack.acceptedPoints).toBe(2)
  const published = await rig.published()
  expect(published.at(-1)).toMatchObject({ agentId: newAgent, serverId: newServer, companyId })
})

test('[WIRE-037] what an agent does not say of its system is left out of what the hub is asked', async () => {
  accept()
  for (const [os, told] of [
    [undefined, {}],
    [
      { family: 'linux', arch: 'arm64' },
      { family: 'linux', arch: 'arm64' },
    ],
  ] as const) {
    expect((await enroll({ os, machineId: '', agentVersion: '' })).status).toBe(200)
    expect(rig.hub.to('/enroll').at(-1)?.body).toEqual({
      license: 'lic_secret',
      hostname: 'web-1',
      ip_addresses: ['10.0.0.5'],
      os: told,
      proto_version: 1,
      collector_id: id('collector'),
    })
  }
})

test('[ENR-041] a hub that finds the new agent a moment late does not lock its token out', async () => {
  const token = `agt_${'l'.repeat(43)}`
  const late = {
    agent_id: id('late agent'),
    server_id: id('late server'),
    token_hash: sha256Hex(token),
    sync_version: 10,
  }
  rig.hub.script = ({ path }) =>
    path === '/enroll'
      ? rig.hub.ok({ ...late, company_id: companyId, agent_token: token, config: { interval_seconds: 0 } }, 201)
      : null
  expect((await enroll()).status).toBe(200)
  rig.hub.feeds.agents!.push(agentRecord(late))
  expect((await rig.send({}, { token })).status).toBe(200)
})

test('[ENR-041] every agent of a fleet that enrolls at once is taken with its first batch', async () => {
  // Beyond what a flood of tokens that nobody knows may ask of the hub.
  const fleet = Array.from({ length: 260 }, (_, index) => `agt_${String(index).padStart(43, 'f')}`)
  const idsOf = (token: string) => ({ agent_id: id(`agent of ${token}`), server_id: id(`server of ${token}`) })
  let enrolled = 0
  rig.hub.script = ({ path }) => {
    if (path !== '/enroll') return null
    const token = fleet[enrolled++]!
    const sync_version = 100 + enrolled
    rig.hub.feeds.agents!.push(agentRecord({ ...idsOf(token), token_hash: sha256Hex(token), sync_version }))
    const data = { ...idsOf(token), company_id: companyId, agent_token: token }
    return rig.hub.ok({ ...data, config: { interval_seconds: 0 } }, 201)
  }
  for (const _ of fleet) expect((await enroll()).status).toBe(200)
  for (const token of fleet) expect((await rig.send({}, { token })).status).toBe(200)
})

test('the clear licence and token stand in no log line', () => {
  const log = JSON.stringify(rig.logLines)
  expect(log).toContain('an agent is enrolled')
  expect(log).not.toContain('lic_secret')
  expect(log).not.toContain(newToken)
})

const refusals: [string, number, string, string][] = [
  ['[ENR-008]', 401, 'invalid_token', '401 invalid_token'],
  ['[ENR-009]', 401, 'token_revoked', '401 token_revoked'],
  ['[ENR-011]', 401, 'token_expired', '401 token_expired'],
  ['[ENR-012] [ENR-038]', 409, 'token_used', '409 token_used'],
  ['[ENR-013] [ENR-038]', 409, 'already_enrolled', '409 already_enrolled'],
  ['[ENR-014]', 422, 'binding_failed', '422 binding_failed'],
  ['[ENR-015] [ENR-037]', 422, 'quota_exceeded', '422 quota_exceeded'],
  ['[ENR-036]', 422, 'something_else', '422 binding_failed'],
  ['[ENR-035] [WIRE-041]', 429, 'rate_limited', '429 rate_limited'],
  ['[WIRE-045]', 401, 'unauthorized', '503 unavailable'],
  ['[WIRE-045]', 403, 'forbidden', '503 unavailable'],
  ['[WIRE-045]', 404, 'not_found', '503 unavailable'],
  ['[WIRE-045]', 500, 'server_error', '503 unavailable'],
]
for (const [ids, status, code, expected] of refusals)
  test(`${ids} ${status} ${code} of the hub reaches the agent as ${expected}`, async () => {
    rig.hub.script = ({ path }) => (path === '/enroll' ? rig.hub.error(status, code, { 'retry-after': '17' }) : null)
    const response = await enroll()
    if (status === 429) expect(response.headers.get('retry-after')).toBe('17')
    expect(await errorOf(response)).toBe(expected)
    expect(rig.hub.to('/enroll')).toHaveLength(1)
  })

test('[ENR-003] the former field enroll_token counts as no licence', async () => {
  expect(await errorOf(await enroll({ license: '' }))).toBe('400 bad_request')
  expect(rig.hub.to('/enroll')).toHaveLength(0)
})

test('[WIRE-042] a body that is no EnrollRequest answers 400', async () => {
  const response = await rig.call('/enroll', { method: 'POST', token: null, body: new Uint8Array([0xff, 0xff, 0xff]) })
  expect(await errorOf(response)).toBe('400 bad_request')
})

test('[ENR-039] an enrollment while the hub cannot be reached answers 503 unavailable', async () => {
  await rig.hub.stop()
  expect(await errorOf(await enroll())).toBe('503 unavailable')
  rig.hub.restart()
})
