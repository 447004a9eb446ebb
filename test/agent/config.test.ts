// The agent's own configuration: keys, domains, what is refused.
import { expect, test } from 'bun:test'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AgentOptions, loadAgentOptions, resolveAgentOptions } from '../../apps/agent/config.ts'
import { collectorUrlFault } from '../../apps/agent/transport/collector-address.ts'

const resolve = (
  file: unknown,
  environment: Record<string, string> = {},
): { options: AgentOptions; faults: { key: string; value: string; message: string }[] } =>
  resolveAgentOptions({ file, environment, options: {}, readSecretFile: path => `secret of ${path}\n` })

test('[AGT-010] without any value the interval is 30 s, everything is collected, and remote config is allowed', () => {
  const { options, faults } = resolve(undefined)
  expect(faults).toEqual([])
  expect(options.settings.intervalMs).toBe(30_000)
  expect(options.settings.switches).toEqual({ cpu: true, memory: true, disk: true, net: true, uptime: true })
  expect(options.settings.bufferBytesMax).toBe(64 * 1024 * 1024)
  expect(options.settings.checks).toEqual([])
  expect(options.isCpuPerCore).toBe(false)
  expect(options.allowRemoteConfig).toBe(true)
  expect(options.renewPeriodMs).toBe(30 * 86_400_000)
})

test('[AGT-011] an interval outside 10 to 300 seconds is refused', () => {
  for (const interval of ['9s', '301s', '0s']) expect(resolve({ interval }).faults[0]?.key).toBe('interval')
  for (const interval of ['10s', '300s']) expect(resolve({ interval }).faults).toEqual([])
})

test('plain http is for this host only, and an address carries no credentials', () => {
  const f = (url: string, isGood: boolean) =>
    expect(`${url} ${collectorUrlFault(url) === null}`).toBe(`${url} ${isGood}`)
  f('https://collector.example.com', true)
  f('https://collector.example.com:8443/base', true)
  f('http://127.0.0.1:8081', true)
  f('http://127.8.9.10:8081', true)
  f('http://localhost:8081', true)
  f('http://[::1]:8081', true)
  f('http://collector.example.com', false)
  f('http://10.0.0.1:8081', false)
  f('http://127.0.0.1.example.com', false)
  f('http://localhost.example.com', false)
  f('https://user:word@collector.example.com', false)
  f('https://collector.example.com/?a=b', false)
  f('ftp://127.0.0.1', false)
  f('collector', false)
  expect(resolve({ collector_url: 'http://10.0.0.1' }).faults[0]?.key).toBe('collector_url')
})

test('the key of releases is a public Ed25519 key, and their hosts are hosts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'config-key-'))
  const faultOf = (key: KeyObject) => {
    const isPublic = key.type === 'public'
    writeFileSync(join(folder, 'key.pem'), key.export({ type: isPublic ? 'spki' : 'pkcs8', format: 'pem' }))
    return resolve({ update: { public_key_file: join(folder, 'key.pem') } }).faults.map(
      ({ key, message }) => `${key} ${message}`,
    )
  }
  try {
    const good = generateKeyPairSync('ed25519')
    expect(faultOf(good.publicKey)).toEqual([])
    const expected = ['update.public_key_file must hold an Ed25519 public key in PEM form']
    expect(faultOf(good.privateKey)).toEqual(expected)
    expect(faultOf(generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).publicKey)).toEqual(expected)
  } finally {
    rmSync(folder, { recursive: true })
  }
  const hosts = (...given: string[]) => resolve({ update: { hosts: given } })
  expect(hosts('dl.example.com', 'DL.example.com:8443', '[::1]:9').options.update.hosts).toEqual([
    'dl.example.com',
    'dl.example.com:8443',
    '[::1]:9',
  ])
  for (const wrong of ['https://dl.example.com', 'dl.example.com/path', 'dl.example.com:443', 'a b', ''])
    expect(hosts(wrong).faults.map(({ key }) => key)).toEqual(['update.hosts'])
})

test('file, environment and secret files are read; a licence never shows in a fault', () => {
  const file = {
    collector_url: 'https://c.example.com',
    collectors: { disk: false, net_exclude: ['wlan.*'] },
    buffer: { max_bytes: '8 MiB' },
  }
  const { options, faults } = resolve(file, { SVC_INTERVAL: '60s', SVC_LICENSE_FILE: '/run/license' })
  expect(faults).toEqual([])
  expect(options.settings.intervalMs).toBe(60_000)
  expect(options.settings.switches.disk).toBe(false)
  expect(options.settings.netExclude).toEqual(['wlan.*'])
  expect(options.settings.bufferBytesMax).toBe(8 * 1024 * 1024)
  expect(options.license).toBe('secret of /run/license')
  expect(JSON.stringify(resolve({ license: ['lic_secret'] }).faults)).not.toContain('lic_secret')
})

test('checks of this host are read from the file, and faulty ones are named', () => {
  const checks = { web: { type: 'http', url: 'http://127.0.0.1/', expect_status: 204, timeout_seconds: 3 } }
  expect(resolve({ checks }).options.settings.checks).toEqual([
    { id: 'web', type: 'http', timeoutMs: 3_000, url: 'http://127.0.0.1/', expectStatus: 204 },
  ])
  expect(resolve({ checks: { web: { type: 'ping' } } }).faults[0]?.key).toBe('checks.web')
})

test('an unknown key of a check is a fault, as one of the whole is', () => {
  const checks = { web: { type: 'http', url: 'http://127.0.0.1/', expected_status: 204 } }
  expect(resolve({ checks }).faults).toEqual([
    { key: 'checks.web.expected_status', value: '', message: 'is not a known key' },
  ])
})

test('no fault of an address shows its password', () => {
  for (const start of ['https:', 'https://', 'HTTPS:\\\\', '', 'ftp://', 'https:///'])
    for (const key of ['collector_url', 'scan.matcher_url']) {
      const { faults } = resolve({ [key]: `${start}user:sek/ret@host` })
      expect([start, faults.length]).toEqual([start, 1])
      expect(JSON.stringify(faults)).not.toMatch(/sek|ret@/)
    }
})

test('unknown keys, bad filters and unreadable files are named with their key', () => {
  const f = (file: unknown, key: string) => expect(resolve(file).faults.map(fault => fault.key)).toContain(key)
  f({ intervall: '30s' }, 'intervall')
  f({ collectors: { disk_exclude: ['('] } }, 'collectors.disk_exclude')
  f({ collectors: { cpu: 'maybe' } }, 'collectors.cpu')
  f({ tls: { ca_file: '/no/such/file' } }, 'tls.ca_file')
  f({ buffer: { max_bytes: 10 } }, 'buffer.max_bytes')
  f({ log: { level: 'loud' } }, 'log.level')
})

test('a named file that is missing or no YAML is a fault', () => {
  const folder = mkdtempSync(join(tmpdir(), 'config-test-'))
  try {
    expect(loadAgentOptions(join(folder, 'none.yaml'), {}).faults[0]?.key).toBe('(file)')
    writeFileSync(join(folder, 'bad.yaml'), 'a: [')
    expect(loadAgentOptions(join(folder, 'bad.yaml'), {}).faults[0]?.key).toBe('(file)')
    writeFileSync(join(folder, 'good.yaml'), 'interval: 45s\n')
    const { options, faults } = loadAgentOptions(join(folder, 'good.yaml'), { state_dir: folder })
    expect(faults).toEqual([])
    expect(options.settings.intervalMs).toBe(45_000)
    expect(options.stateDir).toBe(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
