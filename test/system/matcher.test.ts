// The executable `matcher` as an operator runs it, from source and compiled: configuration, commands, signals, imports.
import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { cpuSeconds, rssMb } from '../../bench/process-cpu.ts'
import { debianTracker } from '../../bench/security/feeds.ts'
import { packagesOf, reportOf, ScanClient } from '../matcher/scan-client.ts'
import { hubToken } from '../matcher/scripted-hub.ts'
import { compiledCommand, sourceCommand } from '../support/executable.ts'
import { until } from '../support/until.ts'
import { Place } from './matcher-place.ts'

setDefaultTimeout(120_000)
const ways: [string, readonly string[]][] = [['from source', sourceCommand('matcher')]]
if (process.env.CHECK_COMPILED === '1') ways.push(['compiled', compiledCommand('matcher')])

const places: Place[] = []
afterAll(() => {
  for (const place of places) place.remove()
})
function placeOf(command: readonly string[]): Place {
  const place = new Place(command)
  places.push(place)
  return place
}

const tracker = (openssl: string) => ({
  openssl: {
    'CVE-2024-0001': { releases: { bookworm: { status: 'resolved', fixed_version: openssl, urgency: 'high' } } },
  },
})

for (const [how, command] of ways) {
  describe(`matcher ${how}`, () => {
    test('[MAT-230] --version, --help and check-config, which says every fault with its key', async () => {
      const place = placeOf(command)
      expect((await place.run('--version')).out).toMatch(/^\d+\.\d+\.\d+\n$/)
      const { out } = await place.run('--help')
      for (const word of ['run', 'check-config', 'db', 'dead-letters', 'backup', 'explain', 'match'])
        expect(out).toContain(`  ${word}`)
      expect(await place.on('check-config')).toMatchObject({ code: 0, out: 'the configuration is valid\n' })
      const wrong = place.write(
        'wrong.yaml',
        'listen: 0.0.0.0:8084\nhub: { url: "http://hub.example.net" }\ndb: { sources: [slackware], update_interval: soon }\nlimts: 1\nmatch: { undetermined: maybe }\n',
      )
      const { code, err } = await place.run('check-config', '--config', wrong)
      expect(code).toBe(1)
      for (const key of [
        'listen ',
        'hub.url ',
        'hub.token ',
        'db.sources ',
        'db.update_interval ',
        'limts ',
        'match.undetermined ',
        'admin.token ',
      ])
        expect(err).toContain(`${key.trim()} `)
      expect((await place.run('run', '--config', wrong)).code).toBe(1)
    })

    test('[MAT-233] [MAT-237] [MAT-238] it runs, is alone on its directory, stops in order, and loses nothing when it is killed', async () => {
      const place = placeOf(command)
      const ready = await place.start()
      expect(Object.keys(ready).toSorted()).toEqual([
        'admin_url',
        'data_dir',
        'db_version',
        'ops_url',
        'pid',
        'scan_url',
      ])
      expect(ready.db_version).toBe(0)
      expect(statSync(join(place.dir, 'ready.json')).mode & 0o777).toBe(0o600)
      const second = await place.on('run')
      expect(second.code).toBe(1)
      expect(second.err).toContain('another matcher uses this data directory')
      await until('the hub', async () => (await fetch(`${ready.ops_url}/readyz`)).status === 200)
      const client = new ScanClient(String(ready.scan_url), 'web')
      expect((await client.enroll('code')).status).toBe(201)
      await place.hub.stop()
      expect((await client.report(reportOf('web'))).status).toBe(200)
      expect(await place.end('SIGKILL')).not.toBe(0)
      place.hub.restart()
      await place.start()
      await until('the event', () => place.hub.taken.length === 1)
      const startedMs = performance.now()
      expect(await place.end()).toBe(0)
      expect(performance.now() - startedMs).toBeLessThan(10_000)
      expect(existsSync(join(place.dir, 'ready.json'))).toBe(false)
      expect(place.output).not.toContain(hubToken)
      expect(place.output).not.toContain('admin-secret')
      await place.hub.stop()
    })

    test('[MAT-071] [MAT-232] [MAT-239] a command beside it makes a database, which it uses; explain and match say why', async () => {
      const place = placeOf(command)
      const file = place.write('tracker.json', JSON.stringify(tracker('3.0.13-1~deb12u1')))
      const ready = await place.start()
      const client = new ScanClient(String(ready.scan_url), 'web')
      await client.enroll('code')
      expect((await client.report(reportOf('web'))).body.match_status).toBe('no_db')
      const updated = await place.on('db', 'update', '--source', `debian=${file}`)
      expect(updated).toMatchObject({ code: 0, err: '' })
      await until('the finding', () => place.hub.taken.some(event => event.type === 'finding.opened'))
      const words = ['explain', '--host', client.hostId, '--package', 'openssl']
      const running = await place.on(...words)
      expect(running).toMatchObject({ code: 0, err: '' })
      expect(running.out).toContain('CVE-2024-0001')
      const bundle = join(place.dir, 'vulndb.zst')
      expect(await place.on('db', 'export', bundle)).toMatchObject({ code: 0 })
      // The key of the configuration counts for a bundle that is only looked at too.
      const publicKey = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' })
      const key = JSON.stringify(place.write('bundles.pub', String(publicKey)))
      const trusting = place.write('trusting.yaml', `db: { public_key_file: ${key} }`)
      expect((await place.on('db', 'verify', bundle)).code).toBe(0)
      expect(await place.run('db', 'verify', bundle, '--config', trusting)).toMatchObject({ code: 1 })
      await place.end()
      const stopped = await place.on(...words, '--json')
      expect(
        JSON.parse(stopped.out)
          .packages.map((each: { name: string }) => each.name)
          .toSorted(),
      ).toEqual(['libssl3', 'openssl'])
      const report = place.write('report.json', JSON.stringify(reportOf('web')))
      const matched = await place.run('match', '--report', report, '--db', bundle, '--json', '--now', '2024-06-01')
      expect(matched.err).toBe('')
      expect(JSON.parse(matched.out)).toMatchObject({
        match_status: 'ok',
        release_support: 'standard',
        error_codes: ['kernel_unpackaged'],
        findings: [{ vuln_id: 'CVE-2024-0001', package_key: 'openssl', fix_status: 'fixed' }],
      })
      const text = await place.run('match', '--report', report, '--db', bundle)
      expect(text.out).toContain('CVE-2024-0001  openssl  3.0.11-1~deb12u2  fixed in 3.0.13-1~deb12u1')
      // A version of a host that was made to be shown.
      const odd = JSON.stringify(reportOf('web')).replaceAll('3.0.11', '3.0.11\\u001b[2J\\u009b31m')
      const shown = await place.run('match', '--report', place.write('odd.json', odd), '--db', bundle)
      expect(shown.out).toContain('CVE-2024-0001')
      expect(shown.out.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
      expect((await place.run('match', '--report', bundle, '--db', bundle)).code).toBe(1)
      await place.hub.stop()
    })

    test('[MAT-186] with one host it stays small, and does next to nothing while nothing comes', async () => {
      const place = placeOf(command)
      const file = place.write('tracker.json', debianTracker(4_500))
      const { scan_url, pid } = await place.start()
      const client = new ScanClient(String(scan_url), 'web')
      await client.enroll('code')
      const names = Array.from({ length: 800 }, (_, number) => [`source-${number}`, '1.0-1'] as const)
      expect((await client.report(reportOf('web', { packages: packagesOf(...names) }))).status).toBe(200)
      expect(await place.on('db', 'update', '--source', `debian=${file}`)).toMatchObject({ code: 0, err: '' })
      await until('the findings', () => place.hub.taken.some(event => event.type === 'finding.opened'))
      const looks = (): number => place.hub.to('/scan-hosts').length
      const from = looks()
      const usedBefore = cpuSeconds(Number(pid))
      // 150 times as often as it looks by itself.
      await until('looks at the feed', () => looks() >= from + 20)
      expect((cpuSeconds(Number(pid)) - usedBefore) / 20).toBeLessThan(0.02)
      expect(rssMb(Number(pid))).toBeLessThan(150)
      await place.end()
      await place.hub.stop()
    })

    test('[MAT-167] [MAT-190] dead letters and a backup, while it runs and while it is stopped', async () => {
      const place = placeOf(command)
      place.hub.script = ({ path }) => (path === '/events' ? place.hub.error(422, 'invalid_envelope') : null)
      const ready = await place.start()
      for (const name of ['a', 'b', 'c']) {
        const client = new ScanClient(String(ready.scan_url), name)
        await client.enroll('code')
        await client.report(reportOf(name))
      }
      const list = async (): Promise<Record<string, unknown>[]> =>
        JSON.parse((await place.on('dead-letters', 'list', '--json')).out).data
      const letters = await until('the dead letters', async () => {
        const found = await list()
        return found.length === 3 && found
      })
      expect(letters[0]).toMatchObject({
        type: 'server.scanned',
        reason: expect.stringContaining('422 invalid_envelope'),
      })
      expect((await place.on('dead-letters', 'list')).out.split('\n')).toHaveLength(4)
      expect((await place.on('dead-letters', 'drop')).code).toBe(1)
      expect((await place.on('dead-letters', 'drop', String(letters[0]!.id))).out).toContain(
        '1 dead letters are dropped',
      )
      place.hub.script = () => null
      expect((await place.on('dead-letters', 'retry', '--all')).out).toContain('2 dead letters wait for the hub again')
      await until('their delivery', () => place.hub.taken.length === 2)
      const backup = join(place.dir, 'backup.sqlite')
      expect(await place.on('backup', backup)).toMatchObject({ code: 0, err: '' })
      expect((await place.on('backup', backup)).err).toContain('name a file that does not exist')
      const own = ['--data-dir', join(place.dir, 'data')]
      expect(await place.run('backup', `${backup}-2`, ...own)).toMatchObject({ code: 0, err: '' })
      expect(await place.run('dead-letters', 'list', ...own)).toMatchObject({ code: 0, out: 'no dead letters\n' })
      expect((await place.run('explain', '--host', randomUUID(), ...own)).err).toContain('no report of the scan host')
      expect(statSync(backup).mode & 0o777).toBe(0o600)
      await place.end()
      expect(await list()).toEqual([])
      rmSync(join(place.dir, 'data'), { recursive: true })
      expect((await place.on('dead-letters', 'list')).err).toContain('there is no state of a matcher')
      mkdirSync(join(place.dir, 'data'), { mode: 0o700 })
      copyFileSync(backup, join(place.dir, 'data', 'state.sqlite'))
      await place.start()
      await until('what the log offers', () => place.output.includes('the state was restored from a backup'))
      await place.end()
      await place.hub.stop()
    })

    test('[MAT-230] SIGHUP reads tokens again; a configuration that is wrong changes nothing', async () => {
      const place = placeOf(command)
      const { admin_url: adminUrl } = await place.start()
      const statusWith = async (token: string): Promise<number> =>
        (await fetch(`${adminUrl}/internal/v1/status`, { headers: { authorization: `Bearer ${token}` } })).status
      expect(await statusWith('admin-secret')).toBe(200)
      place.write('matcher.yaml', place.yaml('another'))
      place.signal('SIGHUP')
      await until('the new token', async () => (await statusWith('another')) === 200)
      expect(await statusWith('admin-secret')).toBe(401)
      place.write('matcher.yaml', 'listen: nowhere')
      place.signal('SIGHUP')
      await until('the refusal', () => place.output.includes('cannot reload'))
      expect(await statusWith('another')).toBe(200)
      await place.end()
      await place.hub.stop()
    })
  })
}
