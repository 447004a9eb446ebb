// The worker as a process of its own, without a hub: what its operator changes while it runs.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Executable, runCommand } from '../../support/executable.ts'
import { until } from '../../support/until.ts'

setDefaultTimeout(60_000)
const directory = mkdtempSync(join(tmpdir(), 'svc-worker-'))
const path = (name: string): string => join(directory, name)
const worker = new Executable('collector-worker', ['--config', path('worker.yaml')], path('ready'))
let adminUrl = ''

const setToken = (token: string): void => writeFileSync(path('admin.token'), token, { mode: 0o600 })
const call = async (method: string, where: string, token: string): Promise<number> =>
  (await fetch(`${adminUrl}/internal/v1${where}`, { method, headers: { authorization: `Bearer ${token}` } })).status
/** SIGHUP, and the word of the log that answers it. */
async function hangUp(word: string): Promise<void> {
  const from = worker.output.length
  process.kill(worker.pid, 'SIGHUP')
  await until(word, () => worker.output.slice(from).includes(word))
}

beforeAll(async () => {
  writeFileSync(
    path('worker.yaml'),
    `data_dir: ${path('data')}\nadmin: { listen: "127.0.0.1:0", token_file: ${path('admin.token')} }\n`,
  )
  setToken('first-token\n')
  adminUrl = String((await worker.start()).admin_url)
})
afterAll(async () => {
  await worker.kill()
  rmSync(directory, { recursive: true, force: true })
})

test('[ADM-007] [ADM-005] a new admin token is in force after SIGHUP; an empty file changes nothing, and is refused at a start', async () => {
  expect(await call('GET', '/status', 'first-token')).toBe(200)
  setToken('second-token\n')
  await hangUp('are read again')
  expect(await call('GET', '/status', 'second-token')).toBe(200)
  expect(await call('GET', '/status', 'first-token')).toBe(401)
  setToken('\n')
  await hangUp('cannot reload')
  expect(await call('GET', '/status', 'second-token')).toBe(200)
  expect(await call('GET', '/status', '')).toBe(401)
  const { code, out, err } = await runCommand('collector-worker', ['check-config', '--config', path('worker.yaml')])
  expect(code).toBe(1)
  expect(out + err).toContain('admin.token is needed')
})

test('[ADM-015] [ADM-016] without a hub a reload of settings answers 501, of a feed 503', async () => {
  expect(await call('POST', '/reload/settings', 'second-token')).toBe(501)
  for (const feed of ['rules', 'silences', 'checks'])
    expect(await call('POST', `/reload/${feed}`, 'second-token')).toBe(503)
})
