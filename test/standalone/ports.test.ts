// Ports that are chosen before anything listens on them.
import { expect, test } from 'bun:test'
import { freePort } from '../../apps/standalone/ports.ts'

const module = new URL('../../apps/standalone/ports.ts', import.meta.url).href
/** Looks at every place from this port on, as a process whose turn it is there does. */
const FIRST_IN_CHILD = `
  Object.defineProperty(process, 'pid', { value: Number(process.argv[1]) })
  const { freePort } = await import(${JSON.stringify(module)})
  console.log(freePort())`

test('a port that a process was given, and that nothing listens on yet, is given to no other one', async () => {
  const port = freePort()
  Bun.gc(true)
  // A pid whose places begin with that port: sixteen ports each, from 15,000 on.
  const pid = (port - 15_000) / 16
  const given = await Promise.all(
    [0, 1].map(async () => {
      const child = Bun.spawn(['bun', '-e', FIRST_IN_CHILD, String(pid)], { stdout: 'pipe' })
      return Number(await new Response(child.stdout).text())
    }),
  )
  for (const other of given) {
    expect(other).toBeGreaterThan(port)
  }
})
