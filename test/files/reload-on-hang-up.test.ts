// SIGHUP while a process starts, and while a command runs.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const apps = resolve(import.meta.dir, '../../apps')
const module = join(apps, 'process/reload-on-hang-up.ts')

/** Runs a script that has the module imported; `hangUp` sends SIGHUP. Resolves to what was printed and how it ended. */
async function outcomeOf(script: string): Promise<{ said: string; signal: unknown }> {
  const text = `const { endOnHangUp, reloadOnHangUp } = await import(${JSON.stringify(module)})
    const hangUp = () => new Promise(resolve => {
      process.once('SIGHUP', resolve)
      process.kill(process.pid, 'SIGHUP')
    })
    ${script}`
  const child = Bun.spawn([process.execPath, '-e', text], { stdout: 'pipe', stderr: 'inherit' })
  const said = (await new Response(child.stdout).text()).trim()
  await child.exited
  return { said, signal: child.signalCode }
}

test('a SIGHUP of the start is one reload after it, and each later one another', async () => {
  expect(
    await outcomeOf(`await hangUp(); await hangUp()
      console.log('started')
      reloadOnHangUp(() => console.log('reload'))
      await hangUp()
      process.exit(0)`),
  ).toEqual({ said: 'started\nreload\nreload', signal: null })
})

test('a command that serves nothing ends by SIGHUP, also by one that came before', async () => {
  const now = `process.kill(process.pid, 'SIGHUP'); setInterval(() => {}, 1000)`
  expect(await outcomeOf(`endOnHangUp(); ${now}`)).toEqual({ said: '', signal: 'SIGHUP' })
  expect(await outcomeOf(`await hangUp(); endOnHangUp(); setInterval(() => {}, 1000)`)).toEqual({
    said: '',
    signal: 'SIGHUP',
  })
})

test('every executable that reads its configuration again holds SIGHUP before it loads anything else', () => {
  for (const name of ['collector/ingest', 'collector/worker', 'hub', 'matcher', 'standalone']) {
    const [first] = /^import .*$/m.exec(readFileSync(join(apps, name, 'main.ts'), 'utf8')) ?? []
    expect(first).toMatch(/^import '(\.\.\/)+process\/reload-on-hang-up\.ts'$/)
  }
})
