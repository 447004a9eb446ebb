import { afterEach, beforeEach, expect, test } from 'bun:test'
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import pino from 'pino'
import { InventoryForwarder } from '../../apps/collector/hub-link/forward-inventory.ts'
import { HubClient } from '../../apps/collector/hub-link/hub-client.ts'
import { createCollectorMetrics } from '../../apps/collector/telemetry.ts'
import { InventoryFactsSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { until } from '../support/until.ts'
import { agentId, agentRecord, companyId, errorOf, type Rig, serverId, startRig } from './rig.ts'
import { hubToken, id, ScriptedHub } from './scripted-hub.ts'

type FactsInit = Exclude<MessageInitShape<typeof InventoryFactsSchema>, { $typeName: string }>

const facts = (changes: Partial<FactsInit> = {}) =>
  toBinary(
    InventoryFactsSchema,
    create(InventoryFactsSchema, {
      os: { family: 'linux', name: 'Debian', version: '13', arch: 'x64' },
      cpu: { model: 'Some CPU', cores: 8, threads: 16 },
      memoryTotalBytes: 67_430_002_688n,
      disks: [{ mount: '/', fstype: 'ext4', totalBytes: 511_101_108_224n }],
      nics: [{ name: 'eth0', ips: ['10.0.0.5', 'fe80::1/64'] }],
      bootTimeMs: 1_790_000_000_000n,
      timezone: 'Europe/Berlin',
      agentBuild: { version: '1.2.3', commit: 'abc' },
      ...changes,
    }),
  ) as Uint8Array<ArrayBuffer>

let rig: Rig
beforeEach(async () => {
  rig = await startRig({
    agents: [
      agentRecord(),
      agentRecord({
        agent_id: id('pending'),
        server_id: id('draft'),
        state: 'pending',
        token_hash: new Bun.CryptoHasher('sha256').update('agt_pending').digest('hex'),
      }),
    ],
  })
})
afterEach(() => rig.stop())
const post = (body: Bun.BodyInit = facts(), token?: string) =>
  rig.call('/inventory', {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/x-protobuf' },
    ...(token ? { token } : {}),
  })

test('[ING-039] [ING-040] [ING-041] [ING-045] [ING-046] facts are queued with 202 and forwarded with the identity of the token', async () => {
  const response = await post()
  expect(response.status).toBe(202)
  expect(await response.text()).toBe('')
  await rig.ingest.stop()
  const [sent] = rig.hub.to('/inventory')
  expect(sent?.body).toEqual({
    items: [
      {
        agent_id: agentId,
        company_id: companyId,
        server_id: serverId,
        reported_at: expect.stringMatching(/^\d{4}-.*Z$/),
        facts: {
          os: { family: 'linux', name: 'Debian', version: '13', arch: 'x64' },
          cpu: { model: 'Some CPU', cores: 8, threads: 16 },
          memory_total_bytes: '67430002688',
          disks: [{ mount: '/', fstype: 'ext4', total_bytes: '511101108224' }],
          nics: [{ name: 'eth0', ips: ['10.0.0.5', 'fe80::1/64'] }],
          boot_time_ms: '1790000000000',
          timezone: 'Europe/Berlin',
          agent_build: { version: '1.2.3', commit: 'abc' },
        },
      },
    ],
  })
})

test('two reports a minute are taken, the third is 429; a pending agent may report', async () => {
  expect((await post()).status).toBe(202)
  expect((await post()).status).toBe(202)
  const third = await post()
  expect(third.headers.get('retry-after')).toBe('30')
  expect(await errorOf(third)).toBe('429 rate_limited')
  expect((await post(facts(), 'agt_pending')).status).toBe(202)
})

test('facts that do not hold answer 422 invalid_series, a body that is none 400', async () => {
  expect(await errorOf(await post(facts({ nics: [{ name: 'eth0', ips: ['not an address'] }] })))).toBe(
    '422 invalid_series',
  )
  expect(await errorOf(await post(new Uint8Array([0xff, 0xff])))).toBe('400 bad_request')
  const own = await startRig()
  const send = (body: Bun.BodyInit) => own.call('/inventory', { method: 'POST', body })
  expect(await errorOf(await send(facts({ timezone: 'x'.repeat(600) })))).toBe('422 invalid_series')
  expect(await errorOf(await send(facts({ bootTimeMs: -1n })))).toBe('422 invalid_series')
  await own.stop()
})

/** A forwarder on its own, with the hub's answer to its posts. */
function makeForwarder(answer: (hub: ScriptedHub, call: number) => Response) {
  const hub = new ScriptedHub()
  let calls = 0
  hub.script = ({ path }) => (path === '/inventory' ? answer(hub, calls++) : null)
  const log = pino({ level: 'silent' })
  const metrics = createCollectorMetrics('0', 'ingest')
  const clock = { nowMs: Date.now() }
  const client = new HubClient({
    url: hub.url,
    token: hubToken,
    collectorId: null,
    isPlainAllowed: false,
    log,
    nowMs: Date.now,
    onClockSkew: () => {},
  })
  const forwarder = new InventoryForwarder({ hub: client, log, metrics, nowMs: () => clock.nowMs, periodMs: 3_600_000 })
  const add = (name: string, size = 10) =>
    forwarder.add({
      agentId: id(name),
      companyId,
      serverId,
      reportedAtMs: clock.nowMs,
      facts: { text: 'x'.repeat(size) },
    })
  const items = () =>
    hub
      .to('/inventory')
      .map(request => (request.body as { items: { agent_id: string; facts: { text: string } }[] }).items)
  const stop = async () => {
    await forwarder.stop()
    await hub.stop()
  }
  return { hub, forwarder, clock, add, items, stop, metrics }
}

test('[ING-042] a 4xx other than 429 drops the batch', async () => {
  for (const status of [400, 404, 413, 422]) {
    const { forwarder, add, hub, metrics, stop } = makeForwarder(h => h.error(status, 'x'))
    add('a')
    await forwarder.flush()
    expect(forwarder.depth).toBe(0)
    expect(await metrics.scrape()).toContain('svc_inventory_items_total{result="dropped"} 1')
    expect(hub.to('/inventory')).toHaveLength(1)
    await stop()
  }
})

test('[ING-043] [ING-044] 5xx and 429 keep the batch for another try, and the newest of an agent is what goes', async () => {
  for (const status of [429, 500, 502, 503]) {
    const { forwarder, add, items, stop } = makeForwarder((h, call) =>
      call === 0 ? h.error(status, 'x') : h.ok({ accepted: 1, rejected: [] }),
    )
    add('a', 10)
    await forwarder.flush()
    expect(forwarder.depth).toBe(1)
    add('a', 20)
    expect(forwarder.depth).toBe(1)
    await forwarder.flush()
    expect(forwarder.depth).toBe(0)
    expect(items().map(batch => batch[0]?.facts.text.length)).toEqual([10, 20])
    await stop()
  }
})

test('[ING-047] at 100 items the queue is sent at once, at most 100 a request', async () => {
  const { forwarder, add, items, stop } = makeForwarder(h => h.ok({ accepted: 1, rejected: [] }))
  for (let index = 0; index < 250; index++) add(`agent ${index}`)
  await until('the queue is empty', () => forwarder.depth === 0)
  expect(items().every(batch => batch.length <= 100)).toBe(true)
  expect(items().flat()).toHaveLength(250)
  await stop()
})

test('[ING-048] a request has at most 1 MiB', async () => {
  const bodies: number[] = []
  const made = makeForwarder(h => h.ok({ accepted: 1, rejected: [] }))
  const { script } = made.hub
  made.hub.script = request => {
    if (request.path === '/inventory') bodies.push(Number(request.headers.get('content-length')))
    return script(request)
  }
  for (let index = 0; index < 9; index++) expect(made.add(`agent ${index}`, 300_000)).toBe(true)
  expect(made.add('too large', 600_000)).toBe(false)
  await made.forwarder.flush()
  expect(bodies).toHaveLength(3)
  for (const bytes of bodies) expect(bytes).toBeLessThanOrEqual(1_048_576)
  expect(made.items().flat()).toHaveLength(9)
  await made.stop()
})

test('what the hub could not take for a day is given up', async () => {
  const { forwarder, add, clock, hub, stop } = makeForwarder(h => h.error(503, 'x'))
  add('a')
  await forwarder.flush()
  clock.nowMs += 24 * 3_600_000 + 1
  await forwarder.flush()
  expect(forwarder.depth).toBe(0)
  expect(hub.to('/inventory')).toHaveLength(1)
  await stop()
})
