// A matcher whose disk is full: a file system of its own that is small, in a name space of its own (`unshare`).
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { packagesOf, reportOf, ScanClient } from '../matcher/scan-client.ts'
import { sourceCommand } from '../support/executable.ts'
import { until } from '../support/until.ts'
import { Place } from './matcher-place.ts'

setDefaultTimeout(120_000)

const HAS_NAME_SPACES =
  Bun.which('unshare') !== null && Bun.spawnSync(['unshare', '-rm', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).success

const place = new Place(sourceCommand('matcher'), (command, dataDir) => [
  'unshare',
  '-rm',
  'sh',
  '-c',
  'mkdir -p "$0" && mount -t tmpfs -o size=16m tmpfs "$0" && exec "$@"',
  dataDir,
  ...command,
])
afterAll(async () => {
  await place.end('SIGKILL')
  await place.hub.stop()
  place.remove()
})

/** Writes until there is no room. */
function fill(path: string): void {
  const file = openSync(path, 'w')
  try {
    for (const size of [1 << 20, 4096, 1]) {
      const bytes = Buffer.alloc(size)
      try {
        for (;;) writeSync(file, bytes)
      } catch (error) {
        if (!String(error).includes('ENOSPC')) throw error
      }
    }
  } finally {
    closeSync(file)
  }
}

/** Packages that nobody has told of: an inventory that needs room. */
const packages = (round: string) =>
  packagesOf(...Array.from({ length: 500 }, (_, index) => [`package-${round}-${index}`, '1.0-1'] as const))

test.skipIf(!HAS_NAME_SPACES)(
  '[MAT-032] [MAT-160] with a full disk reports are answered 5xx and nothing of them is kept; with room again they are taken, and the hub is told of each once',
  async () => {
    const ready = await place.start()
    // What the matcher sees of its data directory.
    const filler = join('/proc', String(ready.pid), 'root', place.dir, 'data', 'filler')
    await until('the hub', async () => (await fetch(`${ready.ops_url}/readyz`)).status === 200)
    const [one, two] = ['one', 'two'].map(name => new ScanClient(String(ready.scan_url), name)) as [
      ScanClient,
      ScanClient,
    ]
    for (const client of [one, two]) expect((await client.enroll('code')).status).toBe(201)
    expect((await one.report(reportOf('one', { packages: packages('first') }))).status).toBe(200)
    await until('the first scan', () => place.hub.taken.length === 1)

    fill(filler)
    for (let round = 0; round < 3; round++)
      for (const client of [one, two]) {
        const answer = await client.report(reportOf(client.name, { packages: packages(`${client.name}-${round}`) }))
        expect([answer.status >= 500, JSON.stringify(answer.body).includes(place.dir)]).toEqual([true, false])
      }
    expect((await fetch(`${ready.ops_url}/healthz`)).status).toBe(200)
    expect(place.output).toContain('disk is full')
    expect(place.hub.taken).toHaveLength(1)

    rmSync(filler)
    await until('a report to be taken', async () => {
      const { status } = await two.report(reportOf('two', { packages: packages('last') }))
      return status === 200
    })
    await until('the second scan', () => place.hub.taken.length === 2)
    expect(place.hub.taken.map(({ type, host_id: id }) => [type, id])).toEqual([
      ['server.scanned', one.hostId],
      ['server.scanned', two.hostId],
    ])
    const response = await fetch(`${ready.admin_url}/internal/v1/status`, {
      headers: { authorization: 'Bearer admin-secret' },
    })
    const { data } = (await response.json()) as { data: Record<string, unknown> }
    // Of what was refused no package was kept.
    expect(data).toMatchObject({ instances: 1_000, outbox: { depth: 0, dead_letters: 0 } })
    expect(await place.end()).toBe(0)
  },
)
