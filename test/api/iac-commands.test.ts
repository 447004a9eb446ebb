// `hub iac` against a real hub: what it prints, and its exit codes.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { commandOf } from '../support/executable.ts'
import { TestHub } from './hub-harness.ts'
import { type Acme, acme, manifest, submit } from './iac-rig.ts'

let hub: TestHub
let own: Acme
let folder: string

beforeAll(async () => {
  hub = await TestHub.start()
  own = await acme(hub)
  folder = mkdtempSync(join(tmpdir(), 'iac-'))
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await hub.stop()
})

function put(path: string, contents: string): void {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, contents)
}

async function run(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const child = Bun.spawn([...commandOf('hub'), 'iac', ...words], {
    cwd: join(import.meta.dir, '..', '..'),
    env: { ...process.env, HUB_URL: hub.url, HUB_TOKEN: own.token },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, out, err }
}

test('a folder is validated, planned with exit code 2, applied, planned with 0, and exported', async () => {
  const readme = readFileSync(join(import.meta.dir, '..', '..', 'apps', 'hub', 'README.md'), 'utf8')
  const [, shown = ''] = /web-1\.yml\n(apiVersion[\s\S]*?)\$ hub/.exec(readme) ?? []
  const path = `server/${own.slug}/web-1.yml`
  const contents = shown.replace('acme', own.slug)
  /** What is printed, as the README has it. */
  const isShown = (out: string) => readme.includes(`\n${out.replaceAll(own.slug, 'acme').replaceAll(folder, 'infra')}`)
  put(path, `${contents}  colour: red\n`)
  const invalid = await run('validate', folder)
  expect([invalid.code, invalid.out]).toEqual([1, `${path}:6: spec.colour: unknown key\n`])
  expect(isShown(invalid.out)).toBe(true)
  put(path, contents)
  // What other tools keep beside manifests is none of them.
  for (const hidden of ['.github/workflows/ci.yml', '.gitlab-ci.yml']) put(hidden, 'on: push\n')
  expect(await run('plan', folder)).toEqual({ code: 2, out: '+ server web-1\nCreate server web-1\n', err: '' })
  expect(isShown('+ server web-1\nCreate server web-1\n')).toBe(true)
  const ahead = await run('plan', folder, '--json')
  expect([ahead.code, JSON.parse(ahead.out)]).toMatchObject([
    2,
    { exit_code: 2, items: [{ action: 'create', name: 'web-1' }], lines: ['+ server web-1', 'Create server web-1'] },
  ])
  const applied = await run('apply', folder, '--title', 'from git')
  expect([applied.code, applied.out]).toEqual([0, expect.stringContaining('+ server web-1  applied\nrun ')])
  const planned = await run('plan', folder, '--json')
  expect([planned.code, JSON.parse(planned.out)]).toMatchObject([0, { exit_code: 0, items: [{ action: 'none' }] }])
  const target = join(folder, 'out')
  expect((await run('export', target, '--kind', 'server')).out).toBe(`1 manifests written to ${target}\n`)
  expect(isShown('1 manifests written to infra\n')).toBe(true)
  expect(readFileSync(join(target, path), 'utf8')).toContain('hostname: web-1.example.com')
  const unknown = await run('export', target, '--kind', 'toaster')
  expect([unknown.code, unknown.err]).toEqual([1, expect.stringMatching(/no kind toaster: kinds are .*\bserver\b/)])
  const away = await run('plan', join(target), '--url', 'http://127.0.0.1:1/')
  expect([away.code, away.err]).toEqual([
    1,
    expect.stringMatching(/^hub: the hub cannot be reached at http:\/\/127\.0\.0\.1:1: ./),
  ])
})

test('with --json there is one object whatever the exit code is', async () => {
  const broken = join(folder, 'broken')
  put(`broken/server/${own.slug}/web-2.yml`, 'apiVersion: hub/v1\n')
  for (const command of ['validate', 'plan', 'apply']) {
    const { code, out } = await run(command, broken, '--json')
    const { exit_code: told, status, errors, lines } = JSON.parse(out)
    expect([command, code, told, status, errors.length]).toEqual([command, 1, 1, 'invalid', lines.length])
  }
  const [missing, refused] = [join(folder, 'nothing'), join(folder, 'token')]
  writeFileSync(refused, 'no-token')
  for (const words of [
    ['plan', missing, '--json'],
    ['plan', broken, '--json', '--token-file', refused],
  ]) {
    const { code, out, err } = await run(...words)
    const { exit_code: told, error } = JSON.parse(out)
    expect([code, told, err]).toEqual([1, 1, `hub: ${error}\n`])
  }
  rmSync(broken, { recursive: true })
})

test('a file of the token that cannot be read is said with its option', async () => {
  const { code, err } = await run('plan', folder, '--token-file', join(folder, 'no-token-here'))
  expect([code, err]).toEqual([1, expect.stringMatching(/^hub: cannot read --token-file: ENOENT.*no-token-here/)])
})

test('[G-15] a token is not sent over plain http to another host', async () => {
  let asked = 0
  const other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json({ data: [], n: ++asked }) })
  // Reached from here all the same, but no name of loopback.
  const url = `http://0.0.0.0:${other.port}`
  const said = await run('export', join(folder, 'plain'), '--url', url)
  await other.stop(true)
  expect([asked, said.code, said.err]).toEqual([0, 1, expect.stringContaining(`${url} is plain http to another host`)])
})

test('a hub that had too many submissions is asked again as it says, twice, and not after an hour', async () => {
  put('many/server/acme/web-3.yml', 'apiVersion: hub/v1\n')
  /** A hub that answers 429 so often, with this Retry-After; what the command said, and when it asked. */
  async function asked(times: number, retryAfter: string) {
    const atMs: number[] = []
    const other = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () =>
        atMs.push(performance.now()) <= times
          ? Response.json({ message: 'Too many.' }, { status: 429, headers: { 'retry-after': retryAfter } })
          : Response.json({ data: { status: 'planned', items: [], errors: [] } }),
    })
    const said = await run('validate', join(folder, 'many'), '--url', `http://127.0.0.1:${other.port}`)
    await other.stop(true)
    return { ...said, atMs }
  }
  const later = 'hub: too many requests (429): trying again in'
  const once = await asked(1, '1')
  expect(once).toMatchObject({ code: 0, out: 'valid\n', err: `${later} 1 s\n` })
  // A timer may be a little early.
  expect((once.atMs[1] ?? 0) - (once.atMs[0] ?? 0)).toBeGreaterThan(990)
  const refused = 'hub: POST /iac/validate answered 429: Too many.\n'
  const always = await asked(9, '0')
  expect([always.code, always.err, always.atMs.length]).toEqual([1, `${later} 0 s\n`.repeat(2) + refused, 3])
  const long = await asked(9, '3600')
  expect([long.code, long.err, long.atMs.length]).toEqual([1, refused, 1])
})

test('what an approver rejected is exit code 1: nothing waits for it any more', async () => {
  const approver = await hub.user(own.companyId, ['approvals.view', 'approvals.decide', 'iac.view'])
  const flow = {
    name: 'asked',
    kinds: ['server'],
    match: { tags: ['asked'] },
    steps: [{ user_ids: [approver.userId] }],
  }
  expect((await own.call('POST', '/approvals/workflows', flow)).status).toBe(201)
  const { id } = await submit(hub, own, [manifest(own.slug, 'server', 'asked-1', { tags: ['asked'] })])
  const waiting = await run('apply', folder, '--run', id)
  expect([waiting.code, waiting.out]).toEqual([
    2,
    `+ server asked-1\nrun ${id}: planned\nnothing was applied: 1 item waited for approval\n`,
  ])
  const { code, out } = await run('apply', folder, '--run', id, '--json')
  expect([code, JSON.parse(out)]).toMatchObject([
    2,
    { id, exit_code: 2, items: [{ name: 'asked-1', status: 'planned' }] },
  ])
  const [ticket] = (await own.call('GET', `/approvals/tickets?run_id=${id}`)).body.data
  const rejected = await approver.call('POST', `/approvals/tickets/${ticket.id}/reject`, { comment: 'no' })
  expect(rejected.status).toBe(200)
  const ended = await run('apply', folder, '--run', id)
  expect([ended.code, ended.out]).toEqual([1, expect.stringContaining('+ server asked-1  skipped: rejected')])
})
