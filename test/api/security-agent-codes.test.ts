// Codes that collectors hand to agents with their configuration, so that a fleet becomes scan hosts by itself.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { tokenHash } from '../../apps/hub/identity/token-forms.ts'
import { inviteAgents } from '../../apps/hub/security/scan-hosts/invite-agents.ts'
import { type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'
import { enrolling, newKey } from './security-event.ts'

const SCAN_URL = 'https://matcher.example.test'
let hub: TestHub
let owner: Tenant
let matcher: Call
let collector: Call

beforeAll(async () => {
  hub = await TestHub.start({ 'matcher.scan_url': SCAN_URL })
  owner = await hub.tenant(undefined, { planCode: 'business' })
  matcher = (await hub.matcher()).call
  collector = (await hub.collector()).call
})
afterAll(() => hub.stop())

let names = 0
async function newAgent(): Promise<{ agentId: string; serverId: string }> {
  const name = `fleet-${++names}`
  const server = await owner.call('POST', '/servers', { name, hostname: name })
  const license = await owner.call('POST', '/monitoring/licenses', { name, server_id: server.body.data.id })
  const { body } = await collector('POST', '/enroll', { license: license.body.token, hostname: name, machine_id: name })
  return { agentId: body.data.agent_id, serverId: server.body.data.id }
}
/** The newest record of an agent in the feed. */
async function recordOf(agentId: string): Promise<Json> {
  const { body } = await collector('GET', '/agents?limit=1000')
  return body.data.agents.find((agent: Json) => agent.agent_id === agentId)
}
const exchange = (code: string) => matcher('POST', '/scan-hosts/enroll', enrolling(code, newKey().publicKey))

test('[MAT-047] [SEC-053] an agent gets a code of its own, which attaches its host to its server, and none afterwards', async () => {
  const { agentId, serverId } = await newAgent()
  const before = await recordOf(agentId)
  expect(before.scan).toBeUndefined()
  await inviteAgents(hub.hub)
  const invited = await recordOf(agentId)
  expect(invited.sync_version).toBeGreaterThan(before.sync_version)
  expect(invited.scan).toEqual({ matcher_url: SCAN_URL, enrol_code: expect.stringMatching(/^scn_/) })
  const { enrol_code } = invited.scan
  // The look-up of one agent tells the same, and the database has no clear code.
  const [row] = await hub.hub.database.client`select * from scan_enrolment_codes where agent_id = ${agentId}`
  expect(row?.code_hash).toBe(tokenHash(enrol_code))
  expect(JSON.stringify(row)).not.toContain(enrol_code)
  expect((await collector('GET', `/agents/lookup?agent_id=${agentId}`)).body.data.agent.scan).toEqual(invited.scan)
  // Asked again at once nothing changes.
  await inviteAgents(hub.hub)
  expect(await recordOf(agentId)).toEqual(invited)
  const { status, body } = await exchange(enrol_code)
  expect([status, body.data.server_id]).toEqual([201, serverId])
  const enrolled = await recordOf(agentId)
  expect([enrolled.scan, enrolled.sync_version > invited.sync_version]).toEqual([undefined, true])
  // Revoked by somebody it stays revoked: the agent is not invited anew.
  await owner.call('POST', `/security/scan-hosts/${body.data.host_id}/revoke`)
  await inviteAgents(hub.hub)
  expect((await recordOf(agentId)).scan).toBeUndefined()
})

test('a code is replaced before it expires, and taken back where scanning is off', async () => {
  const { agentId } = await newAgent()
  await inviteAgents(hub.hub)
  const first = (await recordOf(agentId)).scan
  await hub.hub.database.client`
    update scan_enrolment_codes set expires_at = now() + interval '5 hours' where agent_id = ${agentId}`
  await inviteAgents(hub.hub)
  const second = (await recordOf(agentId)).scan
  expect(second.enrol_code).not.toBe(first.enrol_code)
  expect((await exchange(first.enrol_code)).status).toBe(401)
  await hub.hub.database.client`insert into security_settings (company_id, enabled) values (${owner.companyId}, false)`
  await inviteAgents(hub.hub)
  expect((await recordOf(agentId)).scan).toBeUndefined()
  expect((await exchange(second.enrol_code)).status).toBe(401)
  await hub.hub.database.client`delete from security_settings where company_id = ${owner.companyId}`
})

test('an agent whose server has a scan host by a code of a person is not invited', async () => {
  const { agentId, serverId } = await newAgent()
  const { body } = await owner.call('POST', '/security/scan-hosts/enrolment-codes', { server_id: serverId })
  expect((await exchange(body.data.code)).status).toBe(201)
  await inviteAgents(hub.hub)
  expect((await recordOf(agentId)).scan).toBeUndefined()
})

test('without an address that agents report to nobody is invited', async () => {
  const silent = await TestHub.start()
  try {
    const tenant = await silent.tenant()
    const license = await tenant.call('POST', '/monitoring/licenses', {
      name: 'x',
      server_id: (await tenant.call('POST', '/servers', { name: 'x' })).body.data.id,
    })
    const { call } = await silent.collector()
    await call('POST', '/enroll', { license: license.body.token, hostname: 'x' })
    await inviteAgents(silent.hub)
    const [row] = await silent.hub.database.client`select count(*)::int as count from scan_enrolment_codes`
    expect(row?.count).toBe(0)
  } finally {
    await silent.running.stop()
  }
})
