// What an operator meets when something is wrong at the start: a clear message, an exit code, no damage.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandOf } from '../support/executable.ts'
import { newTempDir, type SiteProcess, startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'

const dir = newTempDir()
let site: SiteProcess
beforeAll(async () => {
  site = await startSiteProcess({ args: ['--no-local-agent'] })
}, 120_000)
afterAll(async () => {
  await site.stop()
  rmSync(dir, { recursive: true, force: true })
}, 120_000)

const FREE = ['hub', 'agent', 'admin', 'ops'].flatMap(name => [`--${name}-listen`, '127.0.0.1:0'])

/** Starts the all-in-one where it cannot start: exit code and what it says. */
async function refused(...args: string[]): Promise<{ code: number; said: string }> {
  const child = Bun.spawn([...commandOf('standalone'), ...args], { stdout: 'pipe', stderr: 'pipe' })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, said: out + err }
}

test('a second start on a data directory that is in use is refused, and the first goes on', async () => {
  const { code, said } = await refused('--data-dir', site.dataDir, ...FREE)
  expect(code).toBe(1)
  expect(said).toContain('another standalone runs on this directory')
  expect((await fetch(`${site.facts.ops_url}/readyz`)).status).toBe(200)
})

for (const option of ['--hub-listen', '--agent-listen', '--admin-listen', '--ops-listen'])
  test(`a taken port is refused by the name of its option: ${option}`, async () => {
    const taken = new URL(site.facts.hub_url).host
    const dataDir = join(dir, `taken${option}`)
    const { code, said } = await refused('--data-dir', dataDir, ...FREE, option, taken)
    expect(code).toBe(1)
    expect(said).toContain(`${option} ${taken} cannot be served: another process has it`)
    expect(existsSync(dataDir)).toBe(false)
  })

test('a data directory of a newer version is refused and not touched', async () => {
  const dataDir = join(dir, 'newer')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'format.json'), '{"format": 99}')
  const { code, said } = await refused('--data-dir', dataDir, ...FREE)
  expect(code).toBe(1)
  expect(said).toContain('is of format 99, this program knows 1')
  expect(readFileSync(join(dataDir, 'format.json'), 'utf8')).toBe('{"format": 99}')
})

test('unknown keys and values out of their domain are all said, with what is allowed', async () => {
  const file = join(dir, 'bad.yaml')
  writeFileSync(file, 'alerting:\n  no_data_afer: 5m\ningest:\n  limits:\n    max_points: -1\nbus: { kind: kafka }\n')
  const { code, said } = await refused('--data-dir', join(dir, 'bad'), '--config', file, ...FREE)
  expect(code).toBe(1)
  expect(said).toContain('alerting.no_data_afer is not a known key')
  expect(said).toContain('ingest.limits.max_points = -1 must be a whole number, 1 to 1000000')
  expect(said).toContain('bus.kind = kafka must be one of sqlite, redis')
  writeFileSync(file, 'bus: { kind: redis }\nredis: { url: "redis://127.0.0.1:1" }\n')
  const redis = await refused('--data-dir', join(dir, 'bad'), '--config', file, ...FREE)
  expect([redis.code, redis.said.includes('bus.kind = redis must be sqlite')]).toEqual([1, true])
})

test('what it keeps is readable by its user only', () => {
  expect(statSync(site.dataDir).mode & 0o777).toBe(0o700)
  for (const name of ['secrets.json', 'format.json', 'lock', 'collector/bus.sqlite'])
    expect(statSync(join(site.dataDir, name)).mode & 0o077).toBe(0)
})

test('[OPS-020] health, readiness and metrics of the whole answer without authentication', async () => {
  const get = (path: string) => fetch(`${site.facts.ops_url}${path}`)
  expect((await get('/healthz')).status).toBe(200)
  expect((await get('/readyz')).status).toBe(200)
  const metrics = await (await get('/metrics')).text()
  for (const name of [
    'svc_build_info',
    'svc_rules_loaded',
    'svc_bus_lag',
    'svc_outbox_depth',
    'hub_http_requests_total',
    'svc_matcher_hosts',
  ])
    expect(metrics).toContain(name)
  // What a metric is may be said once only, or scrapers refuse the page.
  const types = metrics.split('\n').filter(line => line.startsWith('# TYPE '))
  expect(types).toHaveLength(new Set(types).size)
})

test('a second start goes on where the first stopped: the same company, tokens that still work, no password again', async () => {
  const first = site.facts
  const dataDir = join(dir, 'again')
  const once = await startSiteProcess({ dataDir, args: ['--no-local-agent'] })
  expect(once.facts.user_password).not.toBeNull()
  expect((await once.api('POST', '/api/v1/servers', { name: 'kept' })).status).toBe(201)
  expect(await once.stop()).toBe(0)
  const twice = await startSiteProcess({ dataDir, args: ['--no-local-agent'] })
  expect(twice.facts.user_password).toBeNull()
  for (const name of ['company_id', 'api_token', 'admin_token', 'collector_token', 'matcher_token', 'license'] as const)
    expect(twice.facts[name]).toBe(once.facts[name])
  expect((await twice.api('GET', '/api/v1/servers')).body.data.map((server: { name: string }) => server.name)).toEqual([
    'kept',
  ])
  expect(twice.facts.company_id).not.toBe(first.company_id)
  expect(await twice.stop()).toBe(0)
}, 120_000)

test('where its PostgreSQL ends by itself the site ends too, says so, and goes on at its next start', async () => {
  const dataDir = join(dir, 'without-postgres')
  const start = () => startSiteProcess({ dataDir, args: ['--no-local-agent', '--no-matcher'] })
  const first = await start()
  const server = Number(readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0])
  process.kill(server, 'SIGKILL')
  await until('the site to end', () => first.output().includes('PostgreSQL ended'))
  expect(first.output()).toContain(`failed: PostgreSQL ended; ${join(dataDir, 'logs', 'postgres.log')} says why`)
  expect(await first.stop()).toBe(70)
  const second = await start()
  expect((await fetch(`${second.facts.ops_url}/readyz`)).status).toBe(200)
  expect(await second.stop()).toBe(0)
  expect(second.output()).not.toContain('PostgreSQL ended')
}, 120_000)
