// Another database, another day, other settings: which hosts are read, and what they are told of.
import { expect, test } from 'bun:test'
import { openState } from '../../../apps/matcher/state/open-state.ts'
import type { AdvisoryReader } from '../../../core/matching/advisory.ts'
import { advisories, differingKeys, rule } from './advisories.ts'
import { companyId, contentHashOf, FleetSite, HOUR_MS, report, scanHost, serverId, wordsOf } from './fleet-site.ts'
import { stateOptions } from './state-options.ts'

const rows = { 'debian:12 bash': [rule('CVE-1', '5.3')], 'debian:12 zlib': [rule('CVE-2', '1.5')] }
const FIRST = 2026112200

async function site(count: number, packagesOf: (host: number) => string[]): Promise<FleetSite> {
  const at = new FleetSite()
  await at.state.switchTo(advisories(FIRST, rows), [])
  const numbers = Array.from({ length: count }, (_, host) => host + 1)
  await at.hosts(...numbers.map(host => scanHost(host)))
  await Promise.all(numbers.map(host => at.send(host, report(packagesOf(host)))))
  await at.deliver()
  return at
}

test('[MAT-182] [MAT-184] only hosts with a changed package are read, and of them those with changes are told of', async () => {
  const at = await site(60, host => (host <= 20 ? ['bash 5.2'] : ['zlib 1.0']))
  const after = { ...rows, 'debian:12 bash': [rule('CVE-1', '5.2'), rule('CVE-3', null)] }
  await at.state.switchTo(advisories(FIRST + 1, after), differingKeys(rows, after))
  await at.state.rematched()
  expect(at.state.rematch()).toMatchObject({ state: 'idle', keys: 1, hostsRead: 20, hostsChanged: 20, hostsLeft: 0 })
  const events = await at.deliver()
  expect(events).toHaveLength(40)
  expect(wordsOf(events.slice(0, 2), at.told)).toEqual([
    'resolved bash CVE-1 advisory_changed',
    'opened bash CVE-3 5.2',
  ])
  // A rule that says the same of every installed version reaches no host at all.
  const same = { ...after, 'debian:12 zlib': [rule('CVE-2', '1.5'), rule('CVE-9', '0.5')] }
  await at.state.switchTo(advisories(FIRST + 2, same), differingKeys(after, same))
  await at.state.rematched()
  expect(at.state.rematch()).toMatchObject({ keys: 1, hostsRead: 0, hostsChanged: 0 })
  expect(await at.deliver()).toEqual([])
})

test('[MAT-180] two hosts with the same packages cost one evaluation', async () => {
  let asked = 0
  const counted = (reader: AdvisoryReader): AdvisoryReader => ({
    ...reader,
    affected: (...key) => {
      asked++
      return reader.affected(...key)
    },
  })
  const at = new FleetSite()
  await at.state.switchTo(counted(advisories(FIRST, rows)), [])
  await at.hosts(scanHost(1), scanHost(2, { companyId: companyId(2) }))
  await at.send(1, report(['bash 5.2', 'zlib 1.0']))
  expect(asked).toBe(2)
  await at.send(2, report(['bash 5.2', 'zlib 1.0']))
  expect(asked).toBe(2)
})

test('[MAT-183] a re-match that was cut short goes on behind the last host that was done', async () => {
  const at = await site(400, () => ['bash 5.2'])
  const after = { ...rows, 'debian:12 bash': [rule('CVE-1', '5.4')] }
  await at.state.switchTo(advisories(FIRST + 1, after), differingKeys(rows, after))
  await at.reopen()
  at.state.startWith(advisories(FIRST + 1, after), advisories(FIRST, rows))
  await at.state.rematched()
  const events = await at.deliver()
  expect(events).toHaveLength(400)
  expect(new Set(events.map(({ host_id }) => host_id)).size).toBe(400)
  expect(at.state.rematch().state).toBe('idle')
})

test('[MAT-127] [MAT-128] a day that passes the end of a release opens one finding a host, without a report', async () => {
  const at = new FleetSite()
  const reader = advisories(FIRST, rows, { ends: { 'debian:12': '2026-11-23' } })
  await at.state.switchTo(reader, [])
  await at.hosts(scanHost(1), scanHost(2))
  for (const host of [1, 2]) await at.send(host, report(['bash 5.2']))
  await at.deliver()
  at.state.dayChanged()
  await at.state.rematched()
  expect(await at.deliver()).toEqual([])
  at.nowMs += 48 * HOUR_MS
  at.state.dayChanged()
  await at.state.rematched()
  const events = await at.deliver()
  expect(events.map(({ type, payload }) => [type, 'kind' in payload && payload.kind])).toEqual([
    ['finding.opened', 'release_eol'],
    ['finding.opened', 'release_eol'],
  ])
  expect(at.state.summary(companyId(1)).open_findings).toBe(4)
  const os = { id: 'debian', version_id: '13', codename: '', id_like: [], cpe_name: '' }
  await at.send(1, report(['bash 5.2'], { os }))
  const reasons = (await at.deliver()).map(({ payload }) => 'resolved_reason' in payload && payload.resolved_reason)
  expect(reasons).toContain('release_upgraded')
})

test('[MAT-221] findings of a company that is switched off for a day are resolved, and come back with its next report', async () => {
  const at = await site(3, () => ['bash 5.2'])
  const settings = {
    companyId: companyId(1),
    version: 1,
    scanIntervalHours: 24,
    minIntervalHours: 24,
    fetchedAtMs: at.nowMs,
  }
  await at.state.putSettings({ ...settings, isEnabled: false })
  expect(await at.send(1, report(['bash 5.3']))).toEqual({ outcome: 'disabled', match_status: 'ok', open_findings: 1 })
  at.nowMs += 23 * HOUR_MS
  await at.state.sweep()
  expect(await at.deliver()).toEqual([])
  at.nowMs += HOUR_MS
  await at.state.sweep()
  await at.state.sweep()
  expect(wordsOf(await at.deliver(), at.told)).toEqual(Array(3).fill('resolved bash CVE-1 out_of_scope'))
  await at.state.putSettings({ ...settings, isEnabled: true })
  const hash = contentHashOf(report(['bash 5.2']))
  expect(await at.send(1, null, { contentHash: hash })).toMatchObject({ outcome: 'kept', open_findings: 1 })
  expect(wordsOf(await at.deliver())).toEqual(['opened bash CVE-1 5.2', 'scanned ok 1'])
})

test('[MAT-188] a host without a report for 90 days loses its inventory; its findings stay', async () => {
  const at = await site(2, () => ['bash 5.2'])
  at.nowMs += 89 * 24 * HOUR_MS
  await at.send(2, report(['bash 5.2']))
  at.nowMs += 2 * 24 * HOUR_MS
  await at.deliver()
  await at.state.sweep()
  expect(await at.deliver()).toEqual([])
  expect(at.state.packages(companyId(1), serverId(1), { q: null, after: null, limit: 9 })).toBeNull()
  expect(at.state.summary(companyId(1))).toMatchObject({ servers: 1, open_findings: 2 })
  expect(await at.send(1, null, { contentHash: contentHashOf(report(['bash 5.2'])) })).toEqual({
    outcome: 'need_report',
  })
  await at.send(1, report(['bash 5.2']))
  expect(wordsOf(await at.deliver())).toEqual(['scanned ok 1'])
})

test('[MAT-223] reference data of open findings are sent when new or changed, and scores alone make no event', async () => {
  const at = await site(1, () => ['bash 5.2'])
  const first = at.state.referencesToSend(500)
  expect(first.map(({ id }) => id)).toEqual(['CVE-1'])
  await at.state.referencesSent(first)
  expect(at.state.referencesToSend(500)).toEqual([])
  const scored = advisories(FIRST + 1, rows, { vulns: { 'CVE-1': { cvss_score: 9.8, kev: true } } })
  await at.state.switchTo(scored, [])
  await at.state.rematched()
  expect(await at.deliver()).toEqual([])
  expect(at.state.referencesToSend(500)).toMatchObject([{ id: 'CVE-1', cvss_score: 9.8, kev: true }])
})

test('[MAT-112] another match.centos_as_redhat asks for each CentOS report whole, and holds its packages anew', async () => {
  const centos = { 'rhel:8 bash': [rule('CVE-1', '5.3-1')] }
  const ends = { 'rhel:8': '2999-01-01', 'centos:8': '2999-01-01' }
  const os = { id: 'centos', version_id: '8', codename: '', id_like: [], cpe_name: '' }
  const body = report(['bash 5.2-1'], { os, system: 'rpm' })
  const hash = contentHashOf(body)
  const at = new FleetSite()
  const openWith = async (centosAsRedhat: boolean): Promise<void> => {
    await at.state.close()
    const options = stateOptions(() => at.nowMs)
    at.state = openState(at.dir, { ...options, match: { ...options.match, centosAsRedhat } })
    at.state.startWith(advisories(FIRST, centos, { ends }), null)
    await at.state.rematched()
  }
  await at.state.switchTo(advisories(FIRST, centos, { ends }), [])
  await openWith(false)
  await at.hosts(scanHost(1))
  expect(await at.send(1, body)).toMatchObject({ outcome: 'kept', open_findings: 0, match_status: 'unsupported_os' })
  await openWith(true)
  expect(await at.send(1, null, { contentHash: hash })).toEqual({ outcome: 'need_report' })
  expect(await at.send(1, body)).toMatchObject({ outcome: 'kept', open_findings: 1, match_status: 'ok' })
  await openWith(true)
  expect(await at.send(1, null, { contentHash: hash })).toMatchObject({ outcome: 'kept', open_findings: 1 })
  await openWith(false)
  expect(await at.send(1, null, { contentHash: hash })).toEqual({ outcome: 'need_report' })
  const events = (await at.deliver()).filter(({ type }) => type !== 'server.scanned')
  expect(wordsOf(events, at.told)).toEqual(['opened bash CVE-1 5.2-1', 'resolved bash CVE-1 out_of_scope'])
})
