import { afterEach, beforeEach, expect, test } from 'bun:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { isRecordFault, parseAgentRecord } from '../../apps/collector/store/registry/agent-record-faults.ts'
import { sha256Hex } from '../../core/series/hash.ts'
import { EnrollRequestSchema, RenewResponseSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { until } from '../support/until.ts'
import { agentId, agentRecord, errorOf, type Rig, someSeries, startRig, token } from './rig.ts'
import { id } from './scripted-hub.ts'

let rig: Rig
beforeEach(async () => {
  rig = await startRig({ keys: { 'ingest.limits.metrics_burst': 1000 } })
  rig.hub.requests.length = 0
})
afterEach(() => rig.stop())

const newToken = 'agt_a_token_that_the_feed_did_not_bring'
const late = () =>
  agentRecord({ agent_id: id('late'), server_id: id('late server'), token_hash: sha256Hex(newToken), sync_version: 2 })
const lookups = () => rig.hub.to('/agents').filter(request => request.query.has('token_hash'))
const status = async (asToken = newToken) => {
  const response = await rig.send({}, { token: asToken })
  return response.status === 200 ? '200' : errorOf(response)
}

test('[REG-001] [REG-003] [REG-004] [SYNC-026] [SYNC-027] a token that is not known is looked up at the hub by its hash, once', async () => {
  rig.hub.feeds.agents!.push(late())
  expect(await status()).toBe('200')
  expect(await status()).toBe('200')
  expect(lookups()).toHaveLength(1)
  expect(lookups()[0]?.query.get('token_hash')).toBe(sha256Hex(newToken))
  expect(JSON.stringify(rig.hub.requests.map(request => [...request.query]))).not.toContain(newToken)
})

test('many calls with one unknown token are one look-up', async () => {
  let release = () => {}
  const held = new Promise<void>(settle => {
    release = settle
  })
  rig.hub.feeds.agents!.push(late())
  rig.hub.script = ({ query }) => (query.has('token_hash') ? held.then(() => rig.hub.ok({ agent: late() })) : null)
  const calls = Promise.all(Array.from({ length: 20 }, () => status()))
  await until('the look-up', () => lookups().length > 0)
  release()
  expect(new Set(await calls)).toEqual(new Set(['200']))
  expect(lookups()).toHaveLength(1)
})

test('[REG-005] [REG-006] [REG-020] a "no" of the hub is remembered for 60 s, then asked again', async () => {
  rig.clock.nowMs = Date.now()
  expect(await status()).toBe('401 unauthorized')
  rig.hub.feeds.agents!.push(late())
  rig.clock.nowMs += 59_999
  expect(await status()).toBe('401 unauthorized')
  expect(lookups()).toHaveLength(1)
  rig.clock.nowMs += 1
  expect(await status()).toBe('200')
  expect(lookups()).toHaveLength(2)
})

test('[REG-014] a push ends a remembered "no" at once, without a look-up', async () => {
  expect(await status()).toBe('401 unauthorized')
  const record = parseAgentRecord(late())
  if (isRecordFault(record)) throw new Error(record.field)
  rig.registry.push(record)
  expect(await status()).toBe('200')
  expect(lookups()).toHaveLength(1)
})

test('[REG-021] while the hub cannot be reached an unknown token is 503, a known one goes on, and nothing is remembered', async () => {
  await rig.hub.stop()
  const response = await rig.send({}, { token: newToken })
  expect(response.headers.get('retry-after')).toBe('30')
  expect(await errorOf(response)).toBe('503 unavailable')
  expect(await status(token)).toBe('200')
  rig.hub.restart()
  rig.hub.feeds.agents!.push(late())
  expect(await status()).toBe('200')
})

test('a hub that fails is no "no"', async () => {
  for (const code of [500, 401, 403, 429]) {
    rig.hub.script = ({ query }) => (query.has('token_hash') ? rig.hub.error(code, 'x') : null)
    expect(await status()).toBe('503 unavailable')
  }
})

test('[REG-017] [REG-015] a revoked agent gets 403 on its next call, on every endpoint', async () => {
  expect(await status(token)).toBe('200')
  rig.registry.revoke(agentId)
  expect(await status(token)).toBe('403 agent_revoked')
  for (const [method, path] of [
    ['GET', '/config'],
    ['POST', '/inventory'],
    ['POST', '/credentials/renew'],
    ['GET', '/update?os=linux&arch=x64&version=1.0.0&channel=stable'],
  ] as const)
    expect(await errorOf(await rig.call(path, { method })), path).toBe('403 agent_revoked')
})

test('the log says once which agent is refused, and why, without its token', async () => {
  const init = { method: 'POST', headers: { 'content-encoding': 'zstd' }, body: 'no frame' }
  for (let index = 0; index < 2; index++) expect((await rig.call('/metrics', init)).status).toBe(400)
  rig.registry.revoke(agentId)
  for (let index = 0; index < 3; index++) expect(await status(token)).toBe('403 agent_revoked')
  // Lines of other threads come when they come.
  const told = () => rig.logLines.filter(line => line.agent_id === agentId)
  await until('both lines', () => told().length >= 2)
  expect(
    told()
      .map(({ status: answered, code, msg }) => [answered, code, msg])
      .sort(),
  ).toEqual([
    [400, 'bad_request', 'an agent is refused: the body is no whole zstd frame'],
    [403, 'agent_revoked', 'an agent is refused: this agent was revoked; enroll it again'],
  ])
  expect(JSON.stringify(rig.logLines)).not.toContain(token)
})

test('[SYNC-028] [SYNC-029] [REG-019] the agents feed is read page by page, revoked ones too', async () => {
  for (let index = 0; index < 4500; index++)
    rig.hub.feeds.agents!.push(
      agentRecord({
        agent_id: id(`a${index}`),
        server_id: id(`s${index}`),
        token_hash: sha256Hex(`t${index}`),
        sync_version: 10 + index,
      }),
    )
  rig.hub.feeds.agents!.push(agentRecord({ state: 'revoked', version: 2, sync_version: 9000 }))
  expect(await rig.agentsSync.reload()).toBe('applied')
  const pages = rig.hub.to('/agents')
  expect(pages.map(page => [page.query.get('since'), page.query.get('limit')])).toEqual([
    ['1', '1000'],
    ['1009', '1000'],
    ['2009', '1000'],
    ['3009', '1000'],
    ['4009', '1000'],
  ])
  expect(rig.registry.size).toBe(4501)
  expect(rig.agentsSync.status().since).toBe(9000)
  expect(await status(token)).toBe('403 agent_revoked')
  expect(await status('t4499')).toBe('200')
})

test('[REG-007] [REG-008] a previous token works until it expires', async () => {
  rig.clock.nowMs = Date.now()
  rig.hub.feeds.agents!.push(
    agentRecord({
      version: 2,
      sync_version: 2,
      token_hash: sha256Hex(newToken),
      prev_token_hash: sha256Hex(token),
      prev_token_expires_at: new Date(rig.clock.nowMs + 60_000).toISOString(),
    }),
  )
  expect(await status(token)).toBe('200')
  await rig.agentsSync.reload()
  expect(await status(token)).toBe('200')
  expect(await status(newToken)).toBe('200')
  rig.clock.nowMs += 60_000
  expect(await status(token)).toBe('401 unauthorized')
  expect(await status(newToken)).toBe('200')
})

/** Serves rotation as the hub does: the record that it returns has the new pair. */
function serveRotation(fresh: string, previous: string): void {
  rig.hub.script = ({ path, body }) => {
    if (path !== `/agents/${agentId}/renew`) return null
    expect(body).toEqual({ token_hash: sha256Hex(previous), collector_id: id('collector') })
    const validUntil = new Date(Date.now() + 86_400_000).toISOString()
    const {
      server_status: _status,
      interval_seconds: _interval,
      subnet_id: _subnet,
      datacenter: _dc,
      ...agent
    } = agentRecord({
      version: 7,
      sync_version: undefined,
      token_hash: sha256Hex(fresh),
      prev_token_hash: sha256Hex(token),
      prev_token_expires_at: validUntil,
    })
    return rig.hub.ok({ agent_token: fresh, old_token_valid_until: validUntil, agent })
  }
}

test('[REG-022] [REG-009] [REG-024] [ENR-002] renewal gives a token that works at once, and the old one can renew again', async () => {
  rig.registry.apply([{ ...rig.registry.byAgent(agentId)!, version: 2, datacenter: 'fra', intervalSeconds: 60 }])
  serveRotation('agt_fresh', token)
  const response = await rig.call('/credentials/renew', { method: 'POST' })
  expect(response.status).toBe(200)
  const renewed = fromBinary(RenewResponseSchema, await response.bytes())
  expect(renewed.agentToken).toBe('agt_fresh')
  expect(Number(renewed.oldTokenValidUntilMs - renewed.serverTimeMs)).toBeWithin(86_390_000, 86_400_001)
  expect(await status('agt_fresh')).toBe('200')
  expect(await status(token)).toBe('200')
  expect(lookups()).toHaveLength(0)
  // What the answer left out stays as it was known.
  expect(rig.registry.byAgent(agentId)).toMatchObject({ datacenter: 'fra', intervalSeconds: 60, version: 7 })
  expect(JSON.stringify(rig.logLines)).not.toContain('agt_fresh')

  serveRotation('agt_fresher', token)
  expect((await rig.call('/credentials/renew', { method: 'POST' })).status).toBe(200)
})

test('[REG-023] what the hub refuses of a renewal: 404 is 401, 429 is 429, everything else 503', async () => {
  const f = async (answer: () => Response, expected: string) => {
    rig.hub.script = ({ path }) => (path.endsWith('/renew') ? answer() : null)
    const response = await rig.call('/credentials/renew', { method: 'POST' })
    if (expected.startsWith('429')) expect(response.headers.get('retry-after')).toBe('1200')
    expect(await errorOf(response)).toBe(expected)
  }
  await f(() => rig.hub.error(404, 'not_found'), '401 unauthorized')
  await f(() => rig.hub.error(429, 'rate_limited', { 'retry-after': '1200' }), '429 rate_limited')
  await f(() => rig.hub.error(500, 'server_error'), '503 unavailable')
  await f(() => rig.hub.error(401, 'unauthorized'), '503 unavailable')
  await f(() => new Response('<html>no such route</html>', { status: 404 }), '503 unavailable')
  await f(() => rig.hub.ok({ agent_token: 'x' }), '503 unavailable')
  await rig.hub.stop()
  expect(await errorOf(await rig.call('/credentials/renew', { method: 'POST' }))).toBe('503 unavailable')
  rig.hub.restart()
})

test('without a hub pushed agents can send, and enrollment says that it cannot', async () => {
  const own = await startRig({ withoutHub: true, agents: [] })
  const record = parseAgentRecord(agentRecord())
  if (isRecordFault(record)) throw new Error(record.field)
  own.registry.push(record)
  expect((await own.send({ series: someSeries(1) })).status).toBe(200)
  expect(await errorOf(await own.send({}, { token: 'agt_stranger' }))).toBe('401 unauthorized')
  const body = toBinary(EnrollRequestSchema, create(EnrollRequestSchema, { license: 'lic' })) as Uint8Array<ArrayBuffer>
  expect(await errorOf(await own.call('/enroll', { method: 'POST', token: null, body }))).toBe('503 unavailable')
  await own.stop()
})

test('an agent that moves to another server writes to that one, and defines its series again', async () => {
  await rig.send({ series: someSeries(2) })
  rig.registry.push({ ...rig.registry.byAgent(agentId)!, version: 2, serverId: id('moved') })
  await rig.send({ series: someSeries(2) })
  const published = await rig.published()
  expect(published.at(-1)?.serverId).toBe(id('moved'))
  expect(published.at(-1)?.keys).toHaveLength(2)
})
