import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandOf, runCommand } from '../../support/executable.ts'
import { buildDeb, dpkg, dpkgRoot } from '../../support/package-tools.ts'
import { until } from '../../support/until.ts'
import { ScriptedMatcher, scanError } from './scripted-matcher.ts'

setDefaultTimeout(120_000)

const CODE = 'code-that-is-a-secret'
let folder: string
let matcher: ScriptedMatcher

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'scan-command-'))
  matcher = new ScriptedMatcher()
})
afterAll(async () => {
  await matcher.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** A configuration of an agent of its own. */
function configOf(name: string, scan: Record<string, string>): string {
  const path = join(folder, `${name}.yaml`)
  writeFileSync(path, JSON.stringify({ state_dir: join(folder, name), scan }))
  return path
}

test('[MAT-001] agent scan prints a summary, or the report, and leaves nothing behind', async () => {
  const config = configOf('print', {})
  using root = dpkgRoot()
  root.write('var/lib/dpkg/status', 'Package: a\nStatus: install ok installed\nVersion: 1\n\n')
  const words = ['scan', '--config', config, '--root', root.path]
  const said = await runCommand('agent', words)
  expect(said.out).toContain('packages           1\n')
  const json = await runCommand('agent', [...words, '--json'])
  expect(JSON.parse(json.out)).toMatchObject({ schema: 1, system: 'dpkg', packages: { name: ['a'] } })
  expect(existsSync(join(folder, 'print'))).toBe(false)
})

test('[MAT-001] agent scan --send enrolls and sends, then only the hash, and agent status tells', async () => {
  const config = configOf('send', { matcher_url: matcher.url, enrol_code: CODE })
  const first = await runCommand('agent', ['scan', '--send', '--json', '--config', config])
  expect(first).toMatchObject({ code: 0, err: 'taken: ok, 3 open findings\n' })
  expect(matcher.reports).toEqual([JSON.parse(first.out)])
  expect((await runCommand('agent', ['scan', '--send', '--config', config])).code).toBe(0)
  expect(matcher.of('/report').map(({ body }) => body.length > 0)).toEqual([true, false])
  expect(matcher.of('/enroll')).toHaveLength(1)
  const status = await runCommand('agent', ['status', '--json', '--config', config])
  expect(JSON.parse(status.out).scan).toMatchObject({ match_status: 'ok', open_findings: 3, reason: null })
  const words = await runCommand('agent', ['status', '--config', config])
  expect(words.out).toContain('scan match status  ok\n')
  matcher.next('/report', () => scanError(403, 'host_revoked'))
  const refused = await runCommand('agent', ['scan', '--send', '--config', config])
  expect(refused).toMatchObject({ code: 1 })
  expect(refused.err).toContain('host_revoked')
})

test('[MAT-001] agent scan --send --root sends what lies below a folder, under the machine-id of that folder', async () => {
  using root = dpkgRoot()
  root.write('etc/machine-id', `${'a1'.repeat(16)}\n`)
  dpkg(root, '--install', buildDeb(root.path, 'inside', { Package: 'inside', Version: '1.0-1', Architecture: 'all' }))
  const config = configOf('rooted', { matcher_url: matcher.url, enrol_code: CODE })
  const sent = await runCommand('agent', ['scan', '--send', '--json', '--root', root.path, '--config', config])
  expect(sent).toMatchObject({ code: 0, err: 'taken: ok, 3 open findings\n' })
  const report = matcher.reports.at(-1)
  expect(report).toEqual(JSON.parse(sent.out))
  const machineIdHash = new Bun.CryptoHasher('sha256').update(`svc-scan-v1\n${'a1'.repeat(16)}`).digest('hex')
  expect(report).toMatchObject({
    machine_id_hash: machineIdHash,
    os: { id: 'debian', version_id: '12' },
    kernel: { running: '', build: '', booted_at_ms: 0 },
    packages: { name: ['inside'], version: ['1.0-1'] },
  })
})

test('[MAT-001] agent scan --send says what it lacks', async () => {
  const without = await runCommand('agent', ['scan', '--send', '--config', configOf('without', {})])
  expect(without).toMatchObject({ code: 1, out: '' })
  expect(without.err).toContain('scan.matcher_url is not set')
  const plain = configOf('plain', { matcher_url: 'http://matcher.example.net', interval: '1m' })
  const faults = await runCommand('agent', ['check-config', '--config', plain])
  expect(faults.code).toBe(1)
  expect(faults.err).toContain('scan.matcher_url: http://matcher.example.net: must be https')
  expect(faults.err).toContain('scan.interval')
})

test('[MAT-002] [MAT-042] a running agent reports beside its collector, and tells its code and key to nobody', async () => {
  const config = configOf('run', { matcher_url: matcher.url, enrol_code: CODE })
  const reports = matcher.reports.length
  const child = Bun.spawn([...commandOf('agent'), 'run', '--config', config], { stdout: 'pipe', stderr: 'pipe' })
  try {
    await until('a report', () => matcher.reports.length > reports)
    const kept = await until('the matcher to be told of', async () => {
      const status = await runCommand('agent', ['status', '--json', '--config', config])
      return status.code === 0 && JSON.parse(status.out).scan?.match_status === 'ok' && status.out
    })
    expect(kept).not.toContain(CODE)
  } finally {
    child.kill('SIGTERM')
    await child.exited
  }
  const logged = (await new Response(child.stdout).text()) + (await new Response(child.stderr).text())
  expect(logged).not.toContain(CODE)
  expect(logged).not.toContain('PRIVATE')
  expect(
    readdirSync(join(folder, 'run'))
      .filter(name => name.startsWith('scan-'))
      .sort(),
  ).toEqual(['scan-host', 'scan-state'])
})
