// What agents say of themselves: what collectors report of it, and what people are shown.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
let collector: Awaited<ReturnType<TestHub['collector']>>

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  collector = await hub.collector()
})
afterAll(() => hub.stop())

let servers = 0
async function enrolled(): Promise<{ agentId: string; serverId: string }> {
  const name = `m${++servers}`
  await tenant.call('POST', '/servers', { name, hostname: name })
  const license = (await tenant.call('POST', '/monitoring/licenses', { name })).body
  const body = { license: license.token, hostname: name, machine_id: name }
  const { data } = (await collector.call('POST', '/enroll', body)).body
  return { agentId: data.agent_id, serverId: data.server_id }
}

/** Reports agents as seen now, each with what it says. */
const report = (...said: readonly (readonly [agentId: string, more: Json])[]) =>
  collector.call('POST', '/agents/seen', {
    agents: said.map(([agent_id, more]) => ({ agent_id, last_seen_at: new Date().toISOString(), ...more })),
  })
const pick = ({ buffer_bytes, buffer_batches, last_warning, last_warning_at }: Json) => ({
  ...{ buffer_bytes, buffer_batches, last_warning, last_warning_at },
})
const shown = async (agentId: string) => pick((await tenant.call('GET', `/monitoring/agents/${agentId}`)).body.data)

const NOTHING = { buffer_bytes: null, buffer_batches: null, last_warning: null, last_warning_at: null }
const SAID = {
  buffer_bytes: 48_000_000_000,
  buffer_batches: 4_294_967_295,
  last_warning: 'remote config: interval_seconds 5 is not 10 to 300',
  last_warning_at: '2026-01-01T10:00:00.000Z',
}

test('[COL-045] [HAG-007] [HAG-008] buffer and last warning of an agent are shown as reported; what a report leaves out stays', async () => {
  const { agentId, serverId } = await enrolled()
  expect(await shown(agentId)).toEqual(NOTHING)
  // A collector of before says none of it, one of later may say more.
  expect((await report([agentId, { agent_version: '1.0.0', of_later: { a: 1 } }])).status).toBe(200)
  expect(await shown(agentId)).toEqual(NOTHING)
  expect((await report([agentId, SAID])).body.data).toEqual({ updated: 1, unknown: [] })
  expect(await shown(agentId)).toEqual(SAID)
  for (const path of [`/monitoring/agents?search=m${servers}`, `/servers/${serverId}/agents`])
    expect((await tenant.call('GET', path)).body.data.map(pick)).toEqual([SAID])
  await report([agentId, {}])
  expect(await shown(agentId)).toEqual(SAID)
  await report([agentId, { buffer_bytes: 0, buffer_batches: 0 }])
  expect(await shown(agentId)).toEqual({ ...SAID, buffer_bytes: 0, buffer_batches: 0 })

  // An older warning is not the last one, and none is of the future.
  await report([agentId, { last_warning: 'older', last_warning_at: '2025-12-31T10:00:00Z' }])
  expect(await shown(agentId)).toMatchObject({ last_warning: SAID.last_warning })
  await report([agentId, { last_warning: 'newer', last_warning_at: '2999-01-01T00:00:00Z' }])
  const newer = await shown(agentId)
  expect(newer.last_warning).toBe('newer')
  expect(Math.abs(Date.parse(newer.last_warning_at) - Date.now())).toBeLessThan(60_000)
})

test('[COL-045] what cannot be stored of what an agent says is left out, and costs nobody else of the report anything', async () => {
  const [odd, plain] = [await enrolled(), await enrolled()]
  const amounts = [-1, 1.5, 1e300, 2 ** 53, '7', true, null, [], {}]
  for (const [index, bad] of amounts.entries()) {
    const answer = await report(
      [odd.agentId, { buffer_bytes: bad, buffer_batches: bad, last_warning: bad, last_warning_at: bad }],
      [plain.agentId, { buffer_bytes: index }],
    )
    expect(answer.body.data).toEqual({ updated: 2, unknown: [] })
    expect((await shown(plain.agentId)).buffer_bytes).toBe(index)
    expect(await shown(odd.agentId)).toMatchObject({ buffer_bytes: null, buffer_batches: null })
  }
  const text = async (given: string) => {
    expect((await report([odd.agentId, { last_warning: given, last_warning_at: 'soon' }])).status).toBe(200)
    return (await shown(odd.agentId)).last_warning
  }
  const markup = '<script>alert(1)</script> & "co"'
  expect(await text(markup)).toBe(markup)
  // Nothing to show: the one before stays.
  expect(await text(' \u0007\u202e')).toBe(markup)
  expect(await text('a\u0000b\u001bc')).toBe('a\ufffdb c')
  expect(await text('\u202eevil\u2066 x')).toBe('evil x')
  expect(await text('x'.repeat(10_000))).toBe('x'.repeat(500))
  expect(await text('😀'.repeat(501))).toBe('😀'.repeat(500))
})

test('[COL-045] times of an offset that the database does not take are stored all the same', async () => {
  const { agentId } = await enrolled()
  const at = '2026-01-02T04:00:00+18:00'
  const answer = await report([agentId, { last_seen_at: at, last_warning: 'far', last_warning_at: at }])
  expect(answer.body.data).toEqual({ updated: 1, unknown: [] })
  expect(await shown(agentId)).toMatchObject({ last_warning: 'far', last_warning_at: '2026-01-01T10:00:00.000Z' })
})

test('[COL-045] an agent that was revoked says nothing more', async () => {
  const { agentId } = await enrolled()
  await report([agentId, SAID])
  await tenant.call('POST', `/monitoring/agents/${agentId}/revoke`, {})
  expect((await report([agentId, { buffer_bytes: 1, last_warning: 'x' }])).body.data).toEqual({
    updated: 0,
    unknown: [],
  })
  expect(await shown(agentId)).toEqual(SAID)
})
