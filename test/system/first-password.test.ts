// The first password of a site: a terminal shows it, everything else is told of the file that holds it.
import { afterAll, expect, test } from 'bun:test'
import { chownSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDataDir } from '../../apps/standalone/data-dir.ts'
import { commandOf } from '../support/executable.ts'
import { newTempDir, startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'

const root = newTempDir()
afterAll(() => rmSync(root, { recursive: true, force: true }))

test('redirected output names the file with the first password, which is readable by its user only, and tells it never', async () => {
  const dataDir = join(root, 'redirected')
  const site = await startSiteProcess({ dataDir, args: ['--no-local-agent'] })
  const { user_password, hub_url } = site.facts
  await until('the end of the start', () => site.output().includes('\nready\n'))
  await site.stop()
  expect(user_password).toBeString()
  const file = join(dataDir, 'first-password')
  expect(site.output()).toContain(`password: in ${file}`)
  expect(readFileSync(file, 'utf8').trim()).toBe(user_password!)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(hub_url).toStartWith('http://')
  for (const name of ['site.log', 'postgres.log'])
    expect(readFileSync(join(dataDir, 'logs', name), 'utf8')).not.toContain(user_password!)
  expect(site.output()).not.toContain(user_password!)
}, 90_000)

test('a terminal shows the first password, and then it is in no file', async () => {
  const dataDir = join(root, 'terminal')
  let output = ''
  const decoder = new TextDecoder()
  const listen = ['hub', 'agent', 'admin', 'ops'].flatMap(name => [`--${name}-listen`, '127.0.0.1:0'])
  const child = Bun.spawn([...commandOf('standalone'), '--data-dir', dataDir, '--no-local-agent', ...listen], {
    cwd: root,
    terminal: {
      cols: 200,
      data: (_terminal, data) => {
        output += decoder.decode(data, { stream: true })
      },
    },
  })
  try {
    await until('the end of the start', () => /^ready\r?$/m.test(output) || child.exitCode !== null, 60_000)
    expect(output).toMatch(/Login {11}admin@localhost {3}password: [A-Za-z0-9]{16,} {3}\(shown this once\)/)
    expect(existsSync(join(dataDir, 'first-password'))).toBe(false)
  } finally {
    child.kill('SIGTERM')
    await child.exited
  }
}, 90_000)

test("root takes an empty folder for its data directory, and none that another user's files are in", () => {
  // An ordinary user is refused by the system in the folder of another.
  if (process.geteuid?.() !== 0) return
  const empty = join(root, 'empty')
  mkdirSync(empty)
  chownSync(empty, 65_534, 65_534)
  openDataDir(empty).unlock()
  expect(statSync(empty).uid).toBe(0)
  const filled = join(root, 'filled')
  mkdirSync(filled)
  writeFileSync(join(filled, 'secrets.json'), '{}')
  chownSync(filled, 65_534, 65_534)
  expect(() => openDataDir(filled)).toThrow('belongs to user 65534: start as that user')
  expect(statSync(filled).uid).toBe(65_534)
})
