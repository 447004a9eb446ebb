// The all-in-one and the packages of the host that it runs on, without any network: from the first start to findings.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandOf, runCommand } from '../support/executable.ts'
import { runTool } from '../support/package-tools.ts'
import { type Json, type SiteProcess, startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)
const folder = mkdtempSync(join(tmpdir(), 'site-security-'))
let site: SiteProcess

/** A package of this host, as its own tool names it: every Debian has it. */
const PACKAGE = 'dpkg'
const CONFIG = 'rate: { default_per_minute: 1000000 }\n'

const data = async (path: string): Promise<Json> => (await site.api('GET', `/api/v1${path}`)).body.data
const localServer = async (): Promise<string> => (await data('/servers'))[0].id

async function matcher(...words: string[]): Promise<string> {
  const { code, out, err } = await runCommand('matcher', words)
  if (code !== 0) throw new Error(`matcher ${words.join(' ')} ended with ${code}: ${err}`)
  return out
}

/** A bundle with one vulnerability of the package, in the release of this host. */
async function bundle(name: string, codename: string, fixed: string): Promise<string> {
  const entry = {
    scope: 'local',
    releases: { [codename]: { status: 'resolved', fixed_version: fixed, urgency: 'high' } },
  }
  writeFileSync(join(folder, `${name}.json`), JSON.stringify({ [PACKAGE]: { 'CVE-2026-0001': entry } }))
  const out = join(folder, `${name}.zst`)
  await matcher('db', 'build', '--source', `debian=${join(folder, `${name}.json`)}`, '--out', out)
  return out
}

beforeAll(async () => {
  site = await startSiteProcess({ config: CONFIG, dataDir: join(folder, 'data') })
})

afterAll(async () => {
  await site.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('[MAT-251] [MAT-252] [MAT-254] the packages of this host are there without any action, and no database is said once', async () => {
  const { matcher_url, matcher_admin_url, matcher_admin_token, scan_host_id } = site.facts
  expect([matcher_url, matcher_admin_url]).toEqual([expect.stringMatching('http'), expect.stringMatching('http')])
  expect(matcher_admin_token).toMatch(/^[0-9a-f]{64}$/)
  const server = await localServer()
  const packages = await until('packages', async () => {
    const found = await data(`/servers/${server}/packages?q=${PACKAGE}`)
    return found.length > 0 ? found : null
  })
  expect(packages.map((one: Json) => one.name)).toContain(PACKAGE)
  const [host] = await data('/security/scan-hosts')
  expect(host).toMatchObject({ id: scan_host_id, server_id: server, state: 'active' })
  const status = await until('the scan at the hub', async () => {
    const { match_status } = await data('/security/overview')
    return match_status.no_db > 0 ? match_status : null
  })
  expect(status).toMatchObject({ no_db: 1, ok: 0 })
  expect(site.output().split('no vulnerability database')).toHaveLength(2)
})

test('[MAT-254] an imported bundle becomes findings, and a newer one resolves them', async () => {
  const [{ os }] = await data('/security/scan-hosts')
  const stateDir = join(site.dataDir, 'matcher')
  await matcher('db', 'import', await bundle('one', os.codename, '99.0'), '--data-dir', stateDir)
  const open = await until('a finding', async () => {
    const found = await data('/security/findings?status=open')
    return found.length > 0 ? found : null
  })
  expect(open).toMatchObject([{ vuln_id: 'CVE-2026-0001', package_key: PACKAGE, fixed_version: '99.0', kev: false }])
  expect(open[0].server.id).toBe(await localServer())
  expect((await data('/security/overview')).match_status).toMatchObject({ no_db: 0, ok: 1 })
  await matcher('db', 'import', await bundle('two', os.codename, '0.1'), '--force', '--data-dir', stateDir)
  await until('its end', async () => (await data('/security/findings?status=open')).length === 0)
  expect(await data('/security/findings?status=resolved')).toMatchObject([{ resolved_reason: 'advisory_changed' }])
})

test('a site that is killed goes on with the same scan host', async () => {
  const before = site.facts.scan_host_id
  await site.kill()
  site = await startSiteProcess({ config: CONFIG, dataDir: site.dataDir })
  expect(site.facts.scan_host_id).toBe(before)
})

test('over TLS the hub reaches the matcher and the collector of its site too', async () => {
  const cert = join(folder, 'tls.crt')
  const key = join(folder, 'tls.key')
  const subject = ['-subj', '/CN=site', '-addext', 'subjectAltName=IP:127.0.0.1']
  runTool(
    ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, ...subject],
    'openssl',
  )
  const secure = await startSiteProcess({
    config: `tls: { cert_file: ${cert}, key_file: ${key}, ca_file: ${cert} }\n`,
    command: ['env', `NODE_EXTRA_CA_CERTS=${cert}`, ...commandOf('standalone')],
  })
  const get = async (path: string): Promise<Json> => {
    const headers = { authorization: `Bearer ${secure.facts.api_token}` }
    const ca = readFileSync(cert, 'utf8')
    return (await fetch(`${secure.facts.hub_url}/api/v1${path}`, { headers, tls: { ca } })).json()
  }
  try {
    const server: string = (await get('/servers')).data[0].id
    const packages = await until('packages', async () => {
      const found = await get(`/servers/${server}/packages?q=${PACKAGE}`)
      return found.data.length > 0 ? found : null
    })
    expect(packages.matcher).toEqual({ available: true, reason: null })
    const from = new Date(Date.now() - 600_000).toISOString()
    const series = await get(`/servers/${server}/health/series?metric=uptime_seconds&from=${from}`)
    expect(series.collector).toMatchObject({ available: true })
  } finally {
    await secure.stop()
  }
})

test('[MAT-253] off fetches nothing; FILE is a bundle that is imported at the start', async () => {
  const updateOf = async ({ facts }: SiteProcess): Promise<Json> => {
    const headers = { authorization: `Bearer ${facts.matcher_admin_token}` }
    const answer = await fetch(`${facts.matcher_admin_url}/internal/v1/status`, { headers })
    return ((await answer.json()) as Json).data
  }
  // No fetch is planned, and none was made.
  expect((await updateOf(site)).update).toMatchObject({ state: 'idle', next_at_ms: null, fault: null })
  const [{ os }] = await data('/security/scan-hosts')
  const file = await bundle('three', os.codename, '99.0')
  const other = await startSiteProcess({ config: CONFIG, args: ['--security-db', file] })
  try {
    const open = await until('a finding', async () => {
      const { body } = await other.api('GET', '/api/v1/security/findings?status=open')
      return body.data.length > 0 ? body.data : null
    })
    expect(open).toMatchObject([{ vuln_id: 'CVE-2026-0001', package_key: PACKAGE }])
    expect((await updateOf(other)).db_version).toBeGreaterThan(0)
  } finally {
    await other.stop()
  }
})

test('[MAT-250] --no-matcher leaves it out', async () => {
  const other = await startSiteProcess({ args: ['--no-matcher'] })
  const { matcher_url, matcher_admin_url, scan_host_id } = other.facts
  const { body } = await other.api('GET', '/api/v1/security/overview')
  await other.stop()
  expect({ matcher_url, matcher_admin_url, scan_host_id }).toEqual({
    matcher_url: null,
    matcher_admin_url: null,
    scan_host_id: null,
  })
  expect(body.data.matcher).toMatchObject({ available: false, reason: 'not_configured', state: null })
})
