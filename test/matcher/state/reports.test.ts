// What a report leaves and tells: findings opened, updated, resolved, and the scan itself.
import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { openState } from '../../../apps/matcher/state/open-state.ts'
import { sourceOfDistro } from '../../../apps/matcher/vulndb/sources/catalogue.ts'
import { advisories, differingKeys, rule } from './advisories.ts'
import {
  companyId,
  contentHashOf,
  FleetSite,
  HOUR_MS,
  hostId,
  report,
  STARTED_MS,
  scanHost,
  serverId,
  wordsOf,
} from './fleet-site.ts'
import { stateOptions } from './state-options.ts'

const rows = {
  'debian:12 openssl': [rule('CVE-1', '3.0.2'), rule('CVE-2', null)],
  'debian:12 bash': [rule('CVE-3', '5.3')],
}

async function site(): Promise<FleetSite> {
  const made = new FleetSite()
  await made.state.switchTo(advisories(2026112200, rows), [])
  await made.hosts(scanHost(1), scanHost(2, { companyId: companyId(2) }))
  return made
}

describe('a report', () => {
  test('[MAT-150] [MAT-154] opens what is found, and tells the scan last; a change is one event', async () => {
    const at = await site()
    expect(await at.send(1, report(['libssl3 3.0.1 openssl', 'openssl 3.0.1', 'bash 5.2']))).toEqual({
      outcome: 'kept',
      isRepeat: false,
      isUnchanged: false,
      match_status: 'ok',
      open_findings: 3,
    })
    expect(wordsOf(await at.deliver())).toEqual([
      'opened bash CVE-3 5.2',
      'opened openssl CVE-1 3.0.1',
      'opened openssl CVE-2 3.0.1',
      'scanned ok 3',
    ])
    await at.send(1, report(['libssl3 3.0.2 openssl', 'openssl 3.0.2']))
    expect(wordsOf(await at.deliver(), at.told)).toEqual([
      'resolved bash CVE-3 package_removed',
      'resolved openssl CVE-1 package_updated',
      'updated openssl CVE-2 3.0.2',
      'scanned ok 1',
    ])
  })

  test('[MAT-154] an unchanged report, whole or by hash, tells the scan only', async () => {
    const at = await site()
    const body = report(['bash 5.2'])
    await at.send(1, body)
    await at.deliver()
    expect(await at.send(1, body)).toMatchObject({ outcome: 'kept', isUnchanged: true, open_findings: 1 })
    expect(await at.send(1, null, { contentHash: contentHashOf(body) })).toMatchObject({
      outcome: 'kept',
      isUnchanged: true,
    })
    expect(wordsOf(await at.deliver())).toEqual(['scanned ok 1', 'scanned ok 1'])
    expect(await at.send(1, null, { contentHash: 'f'.repeat(64) })).toEqual({ outcome: 'need_report' })
  })

  test('[MAT-062] [MAT-112] the distributions seen are those whose rows concern the hosts, whatever the hosts call themselves', async () => {
    const at = await site()
    expect(at.state.distrosSeen()).toEqual([])
    const systems: readonly (readonly [id: string, version: string, more: object])[] = [
      ['sles', '15.6', { pretty_name: 'SUSE Linux Enterprise Server 15 SP6' }],
      ['opensuse-leap', '15.6', { pretty_name: 'openSUSE Leap 15.6' }],
      ['linuxmint', '21.3', { ubuntu_codename: 'jammy' }],
      ['raspbian', '12', {}],
      ['centos', '9', {}],
      ['arch', '', {}],
    ]
    for (const [number, [id, version_id, more]] of systems.entries()) {
      const host = 20 + number
      await at.hosts(scanHost(host))
      const os = { id, version_id, codename: '', id_like: [], cpe_name: '', ...more }
      await at.send(host, report(['bash 5.2'], { os }))
    }
    expect(at.state.distrosSeen()).toEqual(['debian', 'opensuse', 'rhel', 'suse', 'ubuntu'])
    expect(at.state.distrosSeen().map(sourceOfDistro)).toEqual(['debian', 'opensuse', 'redhat', 'suse', 'ubuntu'])
  })

  test('[MAT-062] [MAT-131] with what Red Hat has not fixed, its rows concern hosts of the rebuilds', async () => {
    const os = { id: 'rocky', version_id: '9.4', codename: '', id_like: [], cpe_name: '' }
    const seen = async (rebuildsUnfixed: boolean): Promise<readonly string[]> => {
      const at = await site()
      await at.state.close()
      const options = stateOptions(() => at.nowMs)
      at.state = openState(at.dir, { ...options, match: { ...options.match, rebuildsUnfixed } })
      at.state.startWith(advisories(0, {}), null)
      await at.send(1, report(['bash 5.2'], { os, system: 'rpm' }))
      return at.state.distrosSeen()
    }
    expect(await seen(false)).toEqual(['rocky'])
    expect(await seen(true)).toEqual(['rhel', 'rocky'])
  })

  test('[MAT-034] the same request again gets the first answer; an older time changes nothing', async () => {
    const at = await site()
    const first = await at.send(1, report(['bash 5.2']), { signature: 's', requestTimeMs: 5 })
    expect(first).toMatchObject({ outcome: 'kept', isRepeat: false })
    expect(await at.send(1, report(['bash 5.2']), { signature: 's', requestTimeMs: 5 })).toMatchObject({
      outcome: 'kept',
      isRepeat: true,
      open_findings: 1,
    })
    expect(await at.send(1, report([]), { signature: 't', requestTimeMs: 5 })).toEqual({ outcome: 'replayed' })
    expect(await at.send(1, report([]), { signature: 't', requestTimeMs: 4 })).toEqual({ outcome: 'replayed' })
    expect(wordsOf(await at.deliver())).toEqual(['opened bash CVE-3 5.2', 'scanned ok 1'])
  })

  test('[MAT-040] one early report a day is taken, the next says when to come', async () => {
    const at = await site()
    const minIntervalMs = HOUR_MS
    const send = (version: string) => at.send(1, report([`bash ${version}`]), { minIntervalMs })
    expect(await send('5.0')).toMatchObject({ outcome: 'kept' })
    expect(await send('5.1')).toMatchObject({ outcome: 'kept' })
    expect(await send('5.2')).toEqual({ outcome: 'too_soon', retryAfterMs: 0.9 * HOUR_MS - 1_000 })
    at.nowMs += HOUR_MS
    expect(await send('5.3')).toMatchObject({ outcome: 'kept' })
  })

  test('[MAT-152] a report whose packages are not known opens and resolves nothing', async () => {
    const at = await site()
    await at.send(1, report(['bash 5.2']))
    await at.deliver()
    expect(await at.send(1, report(null))).toMatchObject({ outcome: 'kept', open_findings: 1 })
    const [scanned] = await at.deliver()
    expect(scanned).toMatchObject({
      type: 'server.scanned',
      payload: { error_codes: ['packages_unreadable'], open_findings: 1 },
    })
    expect(at.state.packages(companyId(1), serverId(1), { q: null, after: null, limit: 9 })?.items).toHaveLength(1)
  })

  test('[MAT-152] [MAT-187] a list made of a source with most rules holds nobody up, and opens nothing', async () => {
    const rules = Array.from({ length: 3_000 }, (_, at) => rule(`CVE-2020-${10_000 + at}`, null))
    const at = new FleetSite()
    await at.state.switchTo(advisories(2026112200, { ...rows, 'debian:12 chromium': rules }), [])
    await at.hosts(scanHost(1))
    await at.send(1, report(['bash 5.2']))
    await at.deliver()
    const before = process.cpuUsage()
    const packages = Array.from({ length: 8_000 }, (_, row) => `part${row} 1.${row} chromium`)
    expect(await at.send(1, report(packages))).toMatchObject({ outcome: 'kept', open_findings: 1 })
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1e6).toBeLessThan(10)
    const [scanned] = await at.deliver()
    expect(scanned).toMatchObject({ type: 'server.scanned', payload: { error_codes: ['too_many_packages'] } })
    // As many packages of one source as an honest server has, with the rules of that source.
    const honest = Array.from({ length: 600 }, (_, row) => `part${row} 1.0 chromium`)
    expect(await at.send(1, report(honest))).toMatchObject({ outcome: 'kept', open_findings: 3_000 })
  })

  test('[MAT-036] another machine-id under the same key is refused', async () => {
    const at = await site()
    await at.send(1, report(['bash 5.2']))
    expect(await at.send(1, report(['bash 5.2'], { machine_id_hash: 'b'.repeat(64) }))).toEqual({
      outcome: 'machine_changed',
    })
  })

  test('[MAT-153] without a database the inventory is stored, and the first database matches it', async () => {
    const at = new FleetSite()
    at.state.startWith(advisories(0, {}), null)
    await at.hosts(scanHost(1))
    expect(await at.send(1, report(['bash 5.2']))).toMatchObject({ match_status: 'no_db', open_findings: 0 })
    expect(wordsOf(await at.deliver())).toEqual(['scanned no_db 0'])
    await at.state.switchTo(advisories(2026112200, rows), differingKeys({}, rows))
    await at.state.rematched()
    expect(wordsOf(await at.deliver())).toEqual(['opened bash CVE-3 5.2'])
    expect(at.errors).toEqual([])
  })
})

describe('hosts of the feed', () => {
  test('[MAT-051] [MAT-053] a higher version replaces, a lower one changes nothing; events name the server of now', async () => {
    const at = await site()
    await at.hosts(scanHost(3, { serverId: null, version: 5 }))
    await at.send(3, report(['bash 5.2']))
    await at.hosts(scanHost(3, { serverId: serverId(9), version: 6 }))
    await at.hosts(scanHost(3, { serverId: serverId(8), version: 4 }))
    const events = await at.deliver()
    expect(events.map(event => event.server_id)).toEqual([serverId(9), serverId(9)])
    expect(at.state.host(hostId(3))).toMatchObject({ serverId: serverId(9), version: 6 })
  })

  test('[MAT-054] a revoked host loses inventory, findings and waiting events', async () => {
    const at = await site()
    await at.send(1, report(['bash 5.2']))
    await at.hosts(scanHost(1, { state: 'revoked', version: 2 }))
    expect(await at.deliver()).toEqual([])
    expect(await at.send(1, report(['bash 5.2']))).toEqual({ outcome: 'host_revoked' })
    expect(at.state.summary(companyId(1))).toMatchObject({ servers: 0, open_findings: 0 })
    expect(at.state.packages(companyId(1), serverId(1), { q: null, after: null, limit: 9 })).toBeNull()
  })

  test('[MAT-051] [MAT-054] nothing of the version that revoked a host, nor a repeated enrollment, brings it to life', async () => {
    const at = await site()
    await at.hosts(scanHost(1, { state: 'revoked', version: 2 }))
    await at.hosts(scanHost(1, { version: 2 }))
    await at.state.enrolled(scanHost(1, { version: 2 }), 'a'.repeat(64))
    await at.state.enrolled(scanHost(1, { version: 0 }), 'a'.repeat(64))
    expect(at.state.host(hostId(1))).toMatchObject({ state: 'revoked', version: 2 })
    // What else that version says counts: the feed gives each record once for each change.
    await at.hosts(scanHost(2, { serverId: serverId(7) }))
    expect(at.state.host(hostId(2))?.serverId).toBe(serverId(7))
    await at.hosts(scanHost(1, { version: 3 }))
    expect(at.state.host(hostId(1))).toMatchObject({ state: 'active', version: 3 })
  })

  test('[MAT-051] a state that holds places in the feed as versions reads the feed anew, and believes the records', async () => {
    const at = await site()
    await at.hosts(scanHost(1, { version: 5000 }), scanHost(2, { version: 5001, state: 'revoked' }))
    const database = new Database(join(at.dir, 'state.sqlite'))
    database.run("DELETE FROM meta WHERE key = 'host_versions'")
    database.run("UPDATE meta SET value = '5001' WHERE key = 'feed_since'")
    database.close()
    await at.reopen()
    expect(at.state.feed()).toEqual({ since: 0, syncedAtMs: at.nowMs })
    // Until it has come, what was known holds, and a repeated enrollment revives nobody.
    await at.state.enrolled(scanHost(2, { version: 0 }), 'a'.repeat(64))
    expect([1, 2].map(host => at.state.host(hostId(host))?.state)).toEqual(['active', 'revoked'])
    await at.hosts(scanHost(1, { version: 3, state: 'revoked' }), scanHost(2, { version: 4, state: 'revoked' }))
    expect(at.state.host(hostId(1))).toMatchObject({ state: 'revoked', version: 3 })
    await at.reopen()
    expect(at.state.host(hostId(1))).toMatchObject({ state: 'revoked', version: 3 })
    expect(at.state.feed().since).toBe(1)
  })

  test('[MAT-055] an inactive host is answered, nothing is stored, findings stay', async () => {
    const at = await site()
    await at.send(1, report(['bash 5.2']))
    await at.hosts(scanHost(1, { isInactive: true, version: 2 }))
    await at.deliver()
    expect(await at.send(1, report(['bash 5.3']))).toEqual({
      outcome: 'inactive',
      match_status: 'ok',
      open_findings: 1,
    })
    expect(await at.deliver()).toEqual([])
    expect(at.nowMs).toBeGreaterThan(STARTED_MS)
  })
})
