// What the all-in-one says of its addresses before anything starts.
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadSiteConfig, type SiteOptions } from '../../apps/standalone/config.ts'

const HERE = '127.0.0.1:0'
const BEYOND = '0.0.0.0:0'
const PLAIN = 'would serve plain HTTP beyond this host; set listen.insecure to allow it'
const LISTENERS: readonly (readonly [string, keyof SiteOptions])[] = [
  ['--hub-listen', 'hubListen'],
  ['--agent-listen', 'agentListen'],
  ['--matcher-listen', 'matcherListen'],
  ['--matcher-admin-listen', 'matcherAdminListen'],
  ['admin.listen', 'adminListen'],
  ['ops.listen', 'opsListen'],
]

const faultsOf = (options: Partial<SiteOptions>) =>
  loadSiteConfig({
    configFile: null,
    dataDir: '/nowhere',
    hubListen: HERE,
    agentListen: HERE,
    adminListen: HERE,
    opsListen: HERE,
    matcherListen: HERE,
    matcherAdminListen: HERE,
    matcher: true,
    securityDb: 'off',
    ...options,
  }).faults

/** The faults with these lines as the file of the configuration. */
function faultsWith(lines: string, options: Partial<SiteOptions>) {
  const folder = mkdtempSync(join(tmpdir(), 'site-config-'))
  try {
    const configFile = join(folder, 'site.yaml')
    writeFileSync(configFile, lines)
    return faultsOf({ ...options, configFile })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('an address that is none is named with its option or key, whichever listener it is of', () => {
  expect(faultsOf({})).toEqual([])
  for (const [key, option] of LISTENERS)
    for (const value of ['nonsense', '127.0.0.1:65536'])
      expect(faultsOf({ [option]: value })).toEqual([
        { key, value, message: 'must be HOST:PORT, for example 127.0.0.1:8080' },
      ])
})

test('the addresses of parts that the site starts itself are not asked for; a matcher of another host is', () => {
  const parts = 'matcher: { url: "http://10.0.0.5:8085" }\ncollector: { admin_url: "http://10.0.0.5:8082" }\n'
  expect(faultsWith(parts, {})).toEqual([])
  expect(faultsWith(parts, { matcher: false }).map(({ key }) => key)).toEqual(['matcher.url'])
})

test('plain HTTP beyond this host is a fault of each listener, unless it is allowed or goes over TLS', () => {
  for (const [key, option] of LISTENERS) {
    expect(faultsOf({ [option]: BEYOND })).toEqual([{ key, value: BEYOND, message: PLAIN }])
    expect(faultsWith('listen.insecure: true', { [option]: BEYOND })).toEqual([])
    // Health has no TLS.
    const overTls = faultsWith('tls: { cert_file: tls.crt, key_file: tls.key }', { [option]: BEYOND })
    expect(overTls.map(fault => fault.key)).toEqual(key === 'ops.listen' ? [key] : [])
  }
})

test('values of the hub out of their domain are faults of the whole', () => {
  const lines = 'public_url: not a url\noutbound.allowed_ranges: [300.1.1.1/8]\n'
  expect(faultsWith(lines, {}).map(fault => fault.key)).toEqual(['public_url', 'outbound.allowed_ranges'])
})
