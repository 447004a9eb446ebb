import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentRecord } from '../../apps/collector/store/registry/agent-record.ts'
import { isRecordFault, parseAgentRecord } from '../../apps/collector/store/registry/agent-record-faults.ts'
import { RegistryStore } from '../../apps/collector/store/registry/file-registry-store.ts'
import { type AgentChange, AgentRegistry } from '../../apps/collector/store/registry/registry.ts'
import { sha256Hex } from '../../core/series/hash.ts'
import { agentId, agentRecord, companyId, serverId, token } from './rig.ts'
import { id } from './scripted-hub.ts'

let directory = ''
const stores: RegistryStore[] = []
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-registry-'))
})
afterEach(() => {
  for (const store of stores.splice(0)) store.close()
  rmSync(directory, { recursive: true, force: true })
})

const path = () => join(directory, 'registry.sqlite')
function open(): AgentRegistry {
  const store = new RegistryStore(path())
  stores.push(store)
  return new AgentRegistry(store)
}

function record(changes: Record<string, unknown> = {}): AgentRecord {
  const parsed = parseAgentRecord(agentRecord(changes))
  if (isRecordFault(parsed)) throw new Error(`${parsed.field} must be ${parsed.expected}`)
  return parsed
}

const NOW_MS = 1_795_000_000_000
const inMs = (ms: number) => new Date(NOW_MS + ms).toISOString()

test('[REG-002] [REG-007] [REG-008] a token is found by its hash: the current one always, the previous one until it expires', () => {
  const registry = open()
  registry.apply([record({ prev_token_hash: sha256Hex('before'), prev_token_expires_at: inMs(1000) })])
  expect(registry.byTokenHash(sha256Hex(token), NOW_MS)).toMatchObject({
    isValid: true,
    record: { agentId, companyId, serverId },
  })
  expect(registry.byTokenHash(sha256Hex('before'), NOW_MS + 999)?.isValid).toBe(true)
  expect(registry.byTokenHash(sha256Hex('before'), NOW_MS + 1000)?.isValid).toBe(false)
  expect(registry.byTokenHash(sha256Hex('never'), NOW_MS)).toBeUndefined()
})

test('[REG-010] absent optional fields count as empty', () => {
  expect(
    record({ server_status: undefined, subnet_id: undefined, datacenter: null, interval_seconds: undefined }),
  ).toMatchObject({
    serverStatus: '',
    subnetId: '',
    datacenter: '',
    intervalSeconds: 0,
    prevTokenHash: '',
    prevTokenExpiresAtMs: 0,
  })
  expect(record({ server_status: 'maintenance' }).serverStatus).toBe('maintenance')
  expect(record({ server_status: 'active' }).serverStatus).toBe('')
})

test('[WIRE-022] [WIRE-023] [WIRE-024] a record with a missing or malformed field names the field', () => {
  const f = (changes: Record<string, unknown>, field: string) =>
    expect(parseAgentRecord(agentRecord(changes))).toMatchObject({ field })
  f({ agent_id: 'x' }, 'agent_id')
  f({ company_id: undefined }, 'company_id')
  f({ server_id: undefined }, 'server_id')
  f({ state: 'gone' }, 'state')
  f({ token_hash: 'ABC' }, 'token_hash')
  f({ token_hash: sha256Hex('x').toUpperCase() }, 'token_hash')
  f({ prev_token_hash: 'short' }, 'prev_token_hash')
  f({ prev_token_expires_at: 'tomorrow' }, 'prev_token_expires_at')
  f({ version: '1' }, 'version')
  f({ version: -1 }, 'version')
  f({ interval_seconds: 1.5 }, 'interval_seconds')
})

test('[REG-011] [REG-012] a lower version is ignored, an equal one unless the feed moved on', () => {
  const registry = open()
  registry.apply([record({ version: 5, sync_version: 10, datacenter: 'a' })])
  expect(registry.apply([record({ version: 4, sync_version: 99, datacenter: 'b' })])).toBe(0)
  expect(registry.apply([record({ version: 5, sync_version: 10, datacenter: 'c' })])).toBe(0)
  expect(registry.byAgent(agentId)?.datacenter).toBe('a')
  expect(registry.apply([record({ version: 5, sync_version: 11, datacenter: 'd' })])).toBe(1)
  expect(registry.apply([record({ version: 6, sync_version: 11, datacenter: 'e' })])).toBe(1)
  expect(registry.byAgent(agentId)?.datacenter).toBe('e')
})

test('[REG-013] a push is in force or is not, and says which', () => {
  const registry = open()
  expect(registry.push(record({ version: 2, sync_version: undefined }))).toBe(true)
  expect(registry.push(record({ version: 2, sync_version: undefined }))).toBe(true)
  expect(registry.push(record({ version: 1, sync_version: undefined, datacenter: 'x' }))).toBe(false)
  expect(registry.push(record({ version: 3, sync_version: undefined, datacenter: 'y' }))).toBe(true)
  expect(registry.byAgent(agentId)?.datacenter).toBe('y')
})

test('[REG-015] [REG-016] revoked is for good: no later record takes an agent out of it, known before or not', () => {
  const registry = open()
  registry.apply([record()])
  registry.revoke(agentId)
  registry.revoke(agentId)
  registry.revoke(id('unknown'))
  registry.apply([
    record({ version: 9, sync_version: 9 }),
    record({ agent_id: id('unknown'), token_hash: sha256Hex('u'), sync_version: 10 }),
  ])
  expect(registry.byAgent(agentId)?.state).toBe('revoked')
  expect(registry.byTokenHash(sha256Hex('u'), NOW_MS)?.record.state).toBe('revoked')
  expect(registry.countOf('revoked')).toBe(2)
  expect(open().byAgent(agentId)?.state).toBe('revoked')
  expect(open().byTokenHash(sha256Hex('u'), NOW_MS)?.record.state).toBe('revoked')
})

test('a change of token leaves only the tokens of the record', () => {
  const registry = open()
  registry.apply([record()])
  registry.apply([
    record({
      version: 2,
      token_hash: sha256Hex('new'),
      prev_token_hash: sha256Hex(token),
      prev_token_expires_at: inMs(5),
    }),
  ])
  expect(registry.byTokenHash(sha256Hex('new'), NOW_MS)?.isValid).toBe(true)
  expect(registry.byTokenHash(sha256Hex(token), NOW_MS)?.isValid).toBe(true)
  registry.apply([record({ version: 3, token_hash: sha256Hex('newest') })])
  expect(registry.byTokenHash(sha256Hex('new'), NOW_MS)).toBeUndefined()
  expect(registry.byTokenHash(sha256Hex(token), NOW_MS)).toBeUndefined()
})

test('the latest non-revoked agent stands for a server', () => {
  const registry = open()
  const agent = (name: string, changes: Record<string, unknown>) =>
    record({ agent_id: id(name), token_hash: sha256Hex(name), ...changes })
  registry.apply([
    agent('old', { sync_version: 5, enrolled_at: inMs(-5000), datacenter: 'old' }),
    agent('new', { sync_version: 4, enrolled_at: inMs(-1000), datacenter: 'new' }),
    agent('gone', { sync_version: 6, enrolled_at: inMs(0), state: 'revoked' }),
  ])
  expect(registry.agentsOfServer(serverId)).toHaveLength(3)
  expect(registry.latestOfServer(companyId, serverId)?.agentId).toBe(id('new'))
  expect(registry.latestOfServer(id('other company'), serverId)).toBeUndefined()
  registry.revoke(id('new'))
  expect(registry.latestOfServer(companyId, serverId)?.agentId).toBe(id('old'))
  registry.apply([agent('old', { version: 2, sync_version: 7, server_id: id('moved') })])
  expect(registry.latestOfServer(companyId, serverId)).toBeUndefined()
  expect(registry.latestOfServer(companyId, id('moved'))?.agentId).toBe(id('old'))
})

test('listeners hear what changed, and nothing when nothing did', () => {
  const registry = open()
  const heard: AgentChange[] = []
  const stop = registry.onChange(changes => heard.push(...changes))
  registry.apply([record()])
  registry.apply([record({ sync_version: 2 })])
  registry.apply([record({ sync_version: 3, version: 2, server_status: 'maintenance' })])
  registry.removeServer(companyId, serverId)
  expect(heard.map(change => [change.before?.serverStatus ?? null, change.record?.serverStatus ?? null])).toEqual([
    [null, ''],
    ['', 'maintenance'],
    ['maintenance', null],
  ])
  stop()
  registry.apply([record()])
  expect(heard).toHaveLength(3)
})

test('a summary counts the agents of a company that are not revoked', () => {
  const registry = open()
  registry.apply([
    record(),
    record({ agent_id: id('b'), server_id: id('b'), token_hash: sha256Hex('b'), state: 'pending' }),
    record({ agent_id: id('c'), server_id: id('c'), token_hash: sha256Hex('c'), state: 'revoked' }),
    record({ agent_id: id('d'), server_id: id('d'), token_hash: sha256Hex('d'), company_id: id('other') }),
  ])
  expect(registry.companySummary(companyId, r => r.agentId === agentId)).toEqual({
    agentsTotal: 2,
    online: 1,
    offline: 1,
  })
})

test('[SYNC-013] a restart has records and cursor as they were; the file is the owner’s alone', () => {
  const before = open()
  before.apply([record({ subnet_id: 's', datacenter: 'd', interval_seconds: 60, server_status: 'decommissioned' })], {
    since: 42,
    syncedAtMs: NOW_MS,
  })
  const after = open()
  expect(after.byAgent(agentId)).toEqual(before.byAgent(agentId)!)
  expect(after.cursor).toEqual({ since: 42, syncedAtMs: NOW_MS })
  expect(after.isFilled).toBe(true)
  expect(statSync(path()).mode & 0o077).toBe(0)
})

test('[HAL-039] the hostname of a server is kept; a file from before it is completed by the same records of the feed', () => {
  expect(record({ hostname: undefined }).hostname).toBe('')
  const named = record({ hostname: 'web-1.example.net' })
  expect(named.hostname).toBe('web-1.example.net')
  open().apply([named], { since: 42, syncedAtMs: NOW_MS })
  expect(open().byAgent(agentId)?.hostname).toBe('web-1.example.net')
  for (const store of stores.splice(0)) store.close()
  const old = new Database(path())
  old.run('ALTER TABLE agents DROP COLUMN hostname')
  old.run('PRAGMA user_version = 1')
  old.close()
  const after = open()
  expect(after.cursor.since).toBe(0)
  expect(after.isFilled).toBe(true)
  expect(after.byAgent(agentId)?.hostname).toBe('')
  expect(after.apply([named])).toBe(1)
  expect(open().byAgent(agentId)?.hostname).toBe('web-1.example.net')
  // A push without a hostname does not take it away.
  after.push(record({ version: 9 }))
  expect(after.byAgent(agentId)).toMatchObject({ version: 9, hostname: 'web-1.example.net' })
})

test('[MAT-047] where an agent is to report its packages to is kept, comes to files from before it, and goes only with the feed', () => {
  const scan = { matcher_url: 'https://matcher.example.net', enrol_code: 'scn_abc' }
  const invited = { matcherUrl: scan.matcher_url, enrolCode: scan.enrol_code }
  open().apply([record({ sync_version: 40 })], { since: 40, syncedAtMs: NOW_MS })
  for (const store of stores.splice(0)) store.close()
  const old = new Database(path())
  old.run('ALTER TABLE agents DROP COLUMN scan')
  old.run('PRAGMA user_version = 2')
  old.close()
  const after = open()
  expect(after.byAgent(agentId)?.scan).toBeUndefined()
  // The version of the agent is the same: only the feed moved on.
  after.apply([record({ sync_version: 41, scan })])
  expect(open().byAgent(agentId)?.scan).toEqual(invited)
  after.push(record({ version: 9, sync_version: undefined }))
  expect(after.byAgent(agentId)).toMatchObject({ version: 9, scan: invited })
  for (const wrong of [
    { ...scan, matcher_url: 'http://x.example/' },
    { ...scan, enrol_code: 'a b' },
    'x',
    { matcher_url: 5 },
  ])
    expect(record({ scan: wrong }).scan).toBeUndefined()
  after.apply([record({ version: 9, sync_version: 42 })])
  expect(open().byAgent(agentId)?.scan).toBeUndefined()
})

test('processes that share the file see each other’s pushes, revocations and removals', () => {
  const ingest = open()
  const worker = open()
  const heard: AgentChange[] = []
  ingest.onChange(changes => heard.push(...changes))
  worker.push(record())
  expect(ingest.byAgent(agentId)).toBeUndefined()
  ingest.refresh()
  expect(ingest.byTokenHash(sha256Hex(token), NOW_MS)?.isValid).toBe(true)
  worker.revoke(agentId)
  ingest.refresh()
  expect(ingest.byAgent(agentId)?.state).toBe('revoked')
  ingest.apply([record({ agent_id: id('b'), server_id: id('b'), token_hash: sha256Hex('b') })])
  worker.refresh()
  expect(worker.byAgent(id('b'))).toBeDefined()
  expect(worker.removeCompany(companyId)).toBe(2)
  ingest.refresh()
  expect(ingest.size).toBe(0)
  expect(ingest.countOf('revoked')).toBe(0)
  expect(heard.map(change => change.record?.state ?? 'removed')).toEqual([
    'active',
    'revoked',
    'active',
    'removed',
    'removed',
  ])
  expect(open().size).toBe(0)
})

test('[REG-012] an older record of a slower process never replaces a newer one on disk', () => {
  const fast = open()
  const slow = open()
  fast.apply([record({ version: 5, sync_version: 50, datacenter: 'new' })])
  slow.apply([record({ version: 4, sync_version: 40, datacenter: 'old' })])
  slow.refresh()
  fast.refresh()
  for (const registry of [fast, slow, open()]) expect(registry.byAgent(agentId)?.datacenter).toBe('new')
})

test('after a purge a company can come back', () => {
  const registry = open()
  registry.apply([record({ version: 7 })])
  expect(registry.removeCompany(companyId)).toBe(1)
  expect(registry.byTokenHash(sha256Hex(token), NOW_MS)).toBeUndefined()
  registry.apply([record({ version: 1 })])
  expect(registry.byAgent(agentId)?.version).toBe(1)
  expect(open().byAgent(agentId)?.version).toBe(1)
})

test('a registry of a newer program is refused', () => {
  open()
  const database = new Database(path())
  database.run('PRAGMA user_version = 99')
  database.close()
  expect(() => new RegistryStore(path())).toThrow('use the newer program')
})
