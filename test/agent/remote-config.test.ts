// Remote configuration over local configuration, key by key.
import { expect, test } from 'bun:test'
import type { RawCheck } from '../../core/agent/check.ts'
import {
  type AgentSettings,
  mergeRemoteConfig,
  type RemoteConfig,
  settingsFault,
} from '../../core/agent/remote-config.ts'

const ALL_ON = { cpu: true, memory: true, disk: true, net: true, uptime: true }
const LOCAL: AgentSettings = {
  intervalMs: 20_000,
  switches: ALL_ON,
  diskInclude: [],
  diskExclude: ['/mnt/.*'],
  netInclude: ['eth0'],
  netExclude: [],
  checks: [{ id: 'local', type: 'service', name: 'ssh', timeoutMs: 5000 }],
  seriesMax: 500,
  batchBytesMax: 1_048_576,
  bufferBytesMax: 67_108_864,
}
const UNSET: RemoteConfig = {
  etag: 'e',
  intervalSeconds: 0,
  collectors: null,
  checks: [],
  seriesMax: 0,
  batchBytesMax: 0,
  bufferBytesMax: 0,
  minAgentVersion: '',
}
const COLLECTORS = { switches: ALL_ON, diskInclude: [], diskExclude: [], netInclude: [], netExclude: [] }
const CHECK: RawCheck = {
  id: 'c1',
  type: 'http',
  name: '',
  target: '',
  port: 0,
  proto: '',
  url: 'https://example.com/',
  expectStatus: 0,
  timeoutSeconds: 0,
}

const merge = (remote: Partial<RemoteConfig>, allowRemoteConfig = true, local = LOCAL) =>
  mergeRemoteConfig(local, { ...UNSET, ...remote }, { allowRemoteConfig, version: '1.2.0' })

test('a config without any value changes nothing', () => {
  expect(merge({})).toEqual({ settings: LOCAL, isApplied: true, warnings: [] })
})

test('[CFG-019] interval_seconds 0 keeps the local interval; 10 to 300 replaces it', () => {
  expect(merge({ intervalSeconds: 0 }).settings.intervalMs).toBe(20_000)
  expect(merge({ intervalSeconds: 10 }).settings.intervalMs).toBe(10_000)
  expect(merge({ intervalSeconds: 300 }).settings.intervalMs).toBe(300_000)
})

test('[CFG-028 AGT-011] an interval out of its domain is dropped with a warning, and the other keys apply', () => {
  for (const intervalSeconds of [1, 9, 301, 4_000_000_000]) {
    const merged = merge({ intervalSeconds, seriesMax: 100 })
    expect(merged.settings.intervalMs).toBe(20_000)
    expect(merged.settings.seriesMax).toBe(100)
    expect(merged.warnings.join()).toContain('interval_seconds')
  }
})

test('[CFG-020] without collectors the local switches stay', () => {
  const local = { ...LOCAL, switches: { ...ALL_ON, disk: false } }
  expect(merge({}, true, local).settings.switches).toEqual({ ...ALL_ON, disk: false })
})

test('[CFG-021] collectors replace all five switches', () => {
  const switches = { cpu: true, memory: false, disk: true, net: false, uptime: false }
  const local = { ...LOCAL, switches: { cpu: false, memory: true, disk: false, net: true, uptime: true } }
  expect(merge({ collectors: { ...COLLECTORS, switches } }, true, local).settings.switches).toEqual(switches)
})

test('[CFG-022] empty filter lists keep the local lists; filled ones replace them', () => {
  expect(merge({ collectors: COLLECTORS }).settings).toEqual(LOCAL)
  const { settings } = merge({ collectors: { ...COLLECTORS, diskExclude: ['/data'], netExclude: ['wlan.*'] } })
  expect(settings.diskExclude).toEqual(['/data'])
  expect(settings.netExclude).toEqual(['wlan.*'])
  expect(settings.netInclude).toEqual(['eth0'])
})

test('[CFG-023 CFG-024] limits.max_series is a ceiling: 0 keeps, the smaller value wins', () => {
  expect(merge({ seriesMax: 0 }).settings.seriesMax).toBe(500)
  expect(merge({ seriesMax: 100 }).settings.seriesMax).toBe(100)
  expect(merge({ seriesMax: 9_000 }).settings.seriesMax).toBe(500)
})

test('limits of batch and buffer are ceilings too; a batch too small for one cycle is dropped with a warning', () => {
  expect(merge({ batchBytesMax: 65_536 }).settings.batchBytesMax).toBe(65_536)
  expect(merge({ bufferBytesMax: 2_000_000 }).settings.bufferBytesMax).toBe(2_000_000)
  expect(merge({ bufferBytesMax: 1e12 }).settings.bufferBytesMax).toBe(LOCAL.bufferBytesMax)
  const small = merge({ batchBytesMax: 100 })
  expect(small.settings.batchBytesMax).toBe(LOCAL.batchBytesMax)
  expect(small.warnings.join()).toContain('max_batch_bytes')
})

test('[CFG-025] an empty list of checks keeps the local ones; a filled one replaces them', () => {
  expect(merge({ checks: [] }).settings.checks).toEqual(LOCAL.checks)
  expect(merge({ checks: [CHECK] }).settings.checks.map(({ id }) => id)).toEqual(['c1'])
})

test('[AGT-067 AGT-068] a check without timeout has 5 seconds, an http check without expected status expects 200', () => {
  expect(merge({ checks: [CHECK] }).settings.checks).toEqual([
    { id: 'c1', type: 'http', timeoutMs: 5_000, url: 'https://example.com/', expectStatus: 200 },
  ])
})

test('a check that cannot be understood is left out with a warning; the others run', () => {
  const bad: Partial<RawCheck>[] = [
    { type: 'ping' },
    { url: 'ftp://example.com' },
    { url: 'https://user:word@example.com/' },
    { type: 'tcp', target: 'example.com' },
    { type: 'cert', target: 'example.com:70000' },
    { type: 'port', port: 80, proto: 'icmp' },
    { type: 'port', port: 0, proto: 'tcp' },
    { type: 'service', name: '-rf /' },
    { timeoutSeconds: 16 },
    { expectStatus: 42 },
  ]
  for (const fields of bad) {
    const merged = merge({ checks: [CHECK, { ...CHECK, ...fields, id: 'c2' }] })
    expect(merged.settings.checks.map(({ id }) => id)).toEqual(['c1'])
    expect(merged.warnings.length).toBe(1)
    expect(merged.warnings[0]).toContain('c2')
  }
})

test('at most 50 checks run, the first by id, none twice', () => {
  const many = Array.from({ length: 60 }, (_, index) => ({ ...CHECK, id: `c${String(99 - index)}` }))
  const merged = merge({ checks: [...many, { ...CHECK, id: 'c40' }] })
  expect(merged.settings.checks.length).toBe(50)
  expect(merged.settings.checks[0]?.id).toBe('c40')
  expect(merged.warnings.length).toBe(11)
})

test('[CFG-029] an invalid filter expression is dropped with a warning, and the other keys apply', () => {
  const merged = merge({ intervalSeconds: 60, collectors: { ...COLLECTORS, diskExclude: ['(', '/data'] } })
  expect(merged.settings.diskExclude).toEqual(['/data'])
  expect(merged.settings.intervalMs).toBe(60_000)
  expect(merged.warnings.length).toBe(1)
  expect(merged.isApplied).toBe(true)
  expect(merge({ collectors: { ...COLLECTORS, diskExclude: ['('] } }).settings.diskExclude).toEqual(['/mnt/.*'])
})

test('[CFG-030] a filter expression of more than 200 characters is dropped with a warning', () => {
  expect(merge({ collectors: { ...COLLECTORS, netInclude: ['e'.repeat(200)] } }).warnings).toEqual([])
  const merged = merge({ collectors: { ...COLLECTORS, netInclude: ['e'.repeat(201)] } })
  expect(merged.settings.netInclude).toEqual(['eth0'])
  expect(merged.warnings.join()).toContain('200')
})

test('[CFG-031] a config that makes the whole invalid is discarded, valid keys included', () => {
  const merged = merge({ intervalSeconds: 60, bufferBytesMax: 4_096 })
  expect(merged.settings).toEqual(LOCAL)
  expect(merged.isApplied).toBe(false)
  expect(merged.warnings.join()).toContain('discarded')
  const filters = Array.from({ length: 70 }, (_, index) => `/m${index}`)
  expect(merge({ collectors: { ...COLLECTORS, diskExclude: filters } }).isApplied).toBe(false)
})

test('[CFG-032] min_agent_version above the running version leads to a warning only', () => {
  const merged = merge({ minAgentVersion: '2.0.0', intervalSeconds: 60 })
  expect(merged.warnings.length).toBe(1)
  expect(merged.warnings[0]).toContain('2.0.0')
  expect(merged.settings.intervalMs).toBe(60_000)
  expect(merge({ minAgentVersion: '1.2.0' }).warnings).toEqual([])
  expect(merge({ minAgentVersion: '1.1.9' }).warnings).toEqual([])
  expect(merge({ minAgentVersion: 'newest' }).warnings.length).toBe(1)
})

test('[CFG-033 CFG-034] locked, an agent ignores all but min_agent_version', () => {
  const remote = {
    intervalSeconds: 60,
    collectors: COLLECTORS,
    checks: [CHECK],
    seriesMax: 1,
    minAgentVersion: '2.0.0',
  }
  const merged = merge(remote, false)
  expect(merged.settings).toBe(LOCAL)
  expect(merged.isApplied).toBe(false)
  expect(merged.warnings.length).toBe(1)
  expect(merged.warnings[0]).toContain('2.0.0')
})

test('settings whose buffer cannot hold a batch do not work', () => {
  expect(settingsFault(LOCAL)).toBeNull()
  expect(settingsFault({ ...LOCAL, bufferBytesMax: 1_000 })).toContain('1000')
})
