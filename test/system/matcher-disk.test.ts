// A matcher whose disk is full: a file system of its own that is small, in a name space of its own (`unshare`).
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { packagesOf, reportOf, ScanClient } from '../matcher/scan-client.ts'
import { sourceCommand } from '../support/executable.ts'
import { fillDisk, HAS_NAME_SPACES, onSmallDisk } from '../support/full-disk.ts'
import { until } from '../support/until.ts'
import { Place } from './matcher-place.ts'

setDefaultTimeout(120_000)

const place = new Place(sourceCommand('matcher'), (command, dataDir) => onSmallDisk(dataDir, 16, command))
let ready: Record<string, string | number>
beforeAll(async () => {
  if (HAS_NAME_SPACES) ready = await place.start()
})
afterAll(async () => {
  await place.end('SIGKILL')
  await place.hub.stop()
  place.remove()
})

/** Packages that nobody has told of: an inventory that needs room. */
const packages = (round: string) =>
  packagesOf(...Array.from({ length: 500 }, (_, index) => [`package-${round}-${index}`, '1.0-1'] as const))

test.skipIf(!HAS_NAME_SPACES)(
  '[MAT-032] [MAT-160] with a full disk reports are answered 5xx and nothing of them is kept; with room again they are taken, and the hub is told of each once',
  async () => {
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

    fillDisk(filler)
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
    const status = async () => {
      const response = await fetch(`${ready.admin_url}/internal/v1/status`, {
        headers: { authorization: 'Bearer admin-secret' },
      })
      return ((await response.json()) as { data: { outbox: { depth: number; dead_letters: number } } }).data
    }
    // An event leaves the outbox once the matcher has read the hub's answer.
    await until('the outbox to be empty', async () => (await status()).outbox.depth === 0)
    // Of what was refused no package was kept.
    expect(await status()).toMatchObject({ instances: 1_000, outbox: { depth: 0, dead_letters: 0 } })
  },
)

/** A bundle in which all packages of a host have a vulnerability that is fixed in `fixed`. */
async function bundle(fixed: string): Promise<string> {
  const names = packages('imported').name
  const tracker = place.write(
    'tracker.json',
    JSON.stringify(
      Object.fromEntries(
        names.map(name => [
          name,
          {
            [`CVE-2026-1${name.slice(name.lastIndexOf('-') + 1).padStart(3, '0')}`]: {
              releases: { bookworm: fixedIn(fixed) },
            },
          },
        ]),
      ),
    ),
  )
  const out = join(place.dir, `${fixed}.zst`)
  expect(await place.run('db', 'build', '--source', `debian=${tracker}`, '--out', out)).toMatchObject({ code: 0 })
  return out
}

const fixedIn = (version: string) => ({ status: 'resolved', fixed_version: version, urgency: 'medium' })

test.skipIf(!HAS_NAME_SPACES)(
  '[MAT-064] [MAT-071] the disk is full within an import: it says so, the old database stays and is matched with; with room the same bundle is taken, and the hub is told what is new',
  async () => {
    const client = new ScanClient(String(ready.scan_url), 'three')
    expect((await client.enroll('code')).status).toBe(201)
    const report = reportOf('three', { packages: packages('imported') })
    expect((await client.report(report)).body.match_status).toBe('no_db')
    const opened = () => place.hub.taken.filter(({ type }) => type === 'finding.opened')
    const inside = join('/proc', String(ready.pid), 'root', place.dir, 'data')
    const command = (...words: string[]) => place.within(Number(ready.pid), 'db', ...words)
    const [old, next] = [await bundle('0.5-1'), await bundle('2.0-1')]
    expect(await command('import', old)).toMatchObject({ code: 0, err: '' })
    const status = async () => JSON.parse((await command('status', '--json')).out) as Record<string, unknown>
    const { db_version: version } = await status()
    const files = () => readdirSync(join(inside, 'vulndb')).toSorted()
    const before = files()
    expect(before).toContain(`${String(version)}.sqlite`)

    fillDisk(join(inside, 'filler'))
    const refused = await command('import', next, '--force')
    expect([refused.code, refused.err]).toEqual([1, expect.stringMatching(/disk is full|no space left/i)])
    expect(refused.err).not.toContain(place.dir)
    expect([files(), (await status()).db_version]).toEqual([before, version])
    expect((await fetch(`${String(ready.ops_url)}/healthz`)).status).toBe(200)
    expect(opened()).toEqual([])

    rmSync(join(inside, 'filler'))
    expect(await command('import', next, '--force')).toMatchObject({ code: 0, err: '' })
    await until('the findings', () => opened().length === 500)
    expect(new Set(opened().map(({ event_id: id }) => id)).size).toBe(500)
    expect(await place.end()).toBe(0)
  },
)
