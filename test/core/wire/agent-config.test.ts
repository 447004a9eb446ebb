import { expect, test } from 'bun:test'
import { configEtag, type ManagedConfig, managedInterval, matchesEtag } from '../../../core/wire/agent-config.ts'
import { type CheckRecord, CheckSet, compileCheck } from '../../../core/wire/checks-of-server.ts'

const record = (id: string, changes: Record<string, unknown> = {}): CheckRecord => ({
  id,
  company_id: 'company',
  sync_version: 1,
  scope: { all: true },
  type: 'service',
  name: 'a check',
  target: { name: 'sshd' },
  ...changes,
})
const idsOf = (set: CheckSet, company = 'company', server = 'server') =>
  set.checksOf(company, server).map(check => check.id)
const none = { name: '', target: '', port: 0, proto: '', url: '', expectStatus: 0, timeoutSeconds: 5 }

test('[CFG-007] [CFG-008] [CFG-009] a check carries the fields of its type only, with the defaults of the contract', () => {
  const f = (type: string, target: unknown, expected: Record<string, unknown>) =>
    expect(compileCheck(record('c', { type, target }))).toEqual({ ...none, id: 'c', type, ...expected } as never)
  f('service', { name: 'nginx@1.service', url: 'http://x' }, { name: 'nginx@1.service' })
  f('port', { port: 53, proto: 'udp', target: 'x:1' }, { port: 53, proto: 'udp' })
  f('tcp', { target: 'db.example.net:5432' }, { target: 'db.example.net:5432' })
  f('tcp', { target: '[2001:db8::1]:443' }, { target: '[2001:db8::1]:443' })
  f('cert', { target: 'example.net:443' }, { target: 'example.net:443' })
  f('http', { url: 'https://example.net/health' }, { url: 'https://example.net/health', expectStatus: 200 })
  f('http', { url: 'http://10.0.0.1:8080', expect_status: 204 }, { url: 'http://10.0.0.1:8080', expectStatus: 204 })
  expect(compileCheck(record('c', { timeout_seconds: 15 }))?.timeoutSeconds).toBe(15)
})

test('a check outside its domain is invalid', () => {
  const bad: [string, unknown][] = [
    ['service', { name: 'a b' }],
    ['service', { name: 'x'.repeat(129) }],
    ['port', { port: 0, proto: 'tcp' }],
    ['port', { port: 65_536, proto: 'tcp' }],
    ['port', { port: 22, proto: 'sctp' }],
    ['tcp', { target: 'host' }],
    ['tcp', { target: 'host:0' }],
    ['cert', { target: 'host:99999' }],
    ['http', { url: 'ftp://host' }],
    ['http', { url: 'https://user:secret@host/' }],
    ['http', { url: 'https://host/', expect_status: 42 }],
    ['ping', { target: 'host:1' }],
    ['service', null],
  ]
  for (const [type, target] of bad)
    expect(compileCheck(record('c', { type, target })), JSON.stringify(target)).toBeNull()
  for (const timeout of [0, 16, 1.5, 'x']) expect(compileCheck(record('c', { timeout_seconds: timeout }))).toBeNull()
})

test('[CFG-017] scope.all means every server of its company and none of another', () => {
  const set = new CheckSet([record('1')])
  expect(idsOf(set)).toEqual(['1'])
  expect(idsOf(set, 'other')).toEqual([])
})

test('[CFG-018] without scope.all the servers of server_ids and resolved_server_ids are meant', () => {
  const set = new CheckSet([
    record('1', { scope: { all: false, server_ids: ['a'], resolved_server_ids: ['b', 'a'] } }),
    record('2', { scope: { all: false }, resolved_server_ids: ['c'] }),
    record('3', { scope: {} }),
  ])
  expect(['a', 'b', 'c', 'd'].map(server => idsOf(set, 'company', server))).toEqual([['1'], ['1'], ['2'], []])
})

test('[CFG-015] [CFG-016] [SYNC-025] disabled and deleted checks are not given; enabled absent counts as enabled', () => {
  const set = new CheckSet([
    record('1'),
    record('2', { enabled: false }),
    record('3', { enabled: true }),
    record('4', { deleted: true }),
    record('5', { type: 'nonsense' }),
    record('6', { enabled: null }),
  ])
  expect(idsOf(set)).toEqual(['1', '3', '6'])
  expect(set.counts).toMatchObject({ loaded: 3, invalid: 1, disabled: 1 })
  expect(set.invalidIds).toEqual(['5'])
})

test('[CFG-004] [CFG-014] of more than 50 checks the first 50 by ascending id are given', () => {
  const name = (index: number) => `id-${String(index).padStart(3, '0')}`
  const records = Array.from({ length: 60 }, (_, index) =>
    record(name((index * 37) % 60), index % 2 ? {} : { scope: { all: false, server_ids: ['server'] } }),
  )
  const set = new CheckSet(records)
  expect(idsOf(set)).toEqual(Array.from({ length: 50 }, (_, index) => name(index)))
})

test('[ADM-024] servers counts the servers that have checks, truncated those that have more than they are given', () => {
  const all = Array.from({ length: 50 }, (_, index) => record(`all-${index}`))
  const set = new CheckSet([...all, record('own', { scope: { all: false, server_ids: ['a', 'gone'] } })])
  const server = (serverId: string, companyId = 'company') => ({ companyId, serverId })
  expect(set.coverage([server('a'), server('b'), server('a'), server('c', 'other')])).toEqual({
    servers: 2,
    truncated: 1,
  })
  expect(new CheckSet().coverage([server('a')])).toEqual({ servers: 0, truncated: 0 })
})

const config = (changes: Partial<ManagedConfig> = {}): ManagedConfig => ({
  intervalSeconds: 30,
  checks: [],
  limits: { maxSeries: 500, maxBatchBytes: 1, bufferBytes: 2 },
  minAgentVersion: '',
  collectorUrl: 'https://c',
  ...changes,
})

test('[CFG-010] [CFG-012] the ETag changes with the content and with nothing else', () => {
  const check = compileCheck(record('1'))!
  const same = configEtag(config({ checks: [check] }))
  expect(configEtag(config({ checks: [{ ...check }] }))).toBe(same)
  const others = [
    config(),
    config({ checks: [{ ...check, timeoutSeconds: 6 }] }),
    config({ checks: [{ ...check, name: 'other' }] }),
    config({ checks: [check], intervalSeconds: 31 }),
    config({ checks: [check], minAgentVersion: '1.0.0' }),
    config({ checks: [check], collectorUrl: 'https://d' }),
    config({ checks: [check], limits: { maxSeries: 501, maxBatchBytes: 1, bufferBytes: 2 } }),
  ].map(configEtag)
  expect(new Set([same, ...others]).size).toBe(8)
})

test('[CFG-002] If-None-Match is a list of quoted, weak or bare tags', () => {
  for (const header of ['"abc"', 'abc', 'W/"abc"', '"x", "abc"', '*', ' "abc" '])
    expect(matchesEtag(header, 'abc')).toBe(true)
  for (const header of [null, '', '"ab"', '"abcd"', 'W/"x"']) expect(matchesEtag(header, 'abc')).toBe(false)
})

test('[WIRE-019] an interval outside 10..300 is sent as unset', () => {
  expect([0, 9, 10, 300, 301, 30.5, -1].map(managedInterval)).toEqual([0, 0, 10, 300, 0, 0, 0])
})
