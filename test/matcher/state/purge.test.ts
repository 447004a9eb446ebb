// A large company is gone when its purge is committed, and deleted in slices afterwards, also after a kill.
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../support/until.ts'
import { advisories, rule } from './advisories.ts'
import { companyId, FleetSite, hostId, report, scanHost, serverId, wordsOf } from './fleet-site.ts'

const HOSTS = 1_500
const reader = advisories(2026112200, { 'debian:12 bash': [rule('CVE-1', '5.3')] })
const companyOf = (host: number): string => companyId(host <= HOSTS ? 1 : 2)

async function site(): Promise<FleetSite> {
  const at = new FleetSite()
  await at.state.switchTo(reader, [])
  const numbers = Array.from({ length: HOSTS + 1 }, (_, number) => number + 1)
  await at.hosts(...numbers.map(host => scanHost(host, { companyId: companyOf(host) })))
  await Promise.all(numbers.map(host => at.send(host, report(['bash 5.2', `own-${host} 1.0`]))))
  return at
}

function leftOf(dir: string): {
  readonly hosts: number
  readonly findings: number
  readonly events: number
  readonly purges: number
} {
  const database = new Database(join(dir, 'state.sqlite'), { readonly: true })
  const count = (sql: string): number => database.query<{ readonly count: number }, []>(sql).get()!.count
  const left = {
    hosts: count('SELECT count(*) AS count FROM host WHERE list IS NOT NULL'),
    findings: count('SELECT count(*) AS count FROM host_findings'),
    events: count('SELECT count(*) AS count FROM outbox'),
    purges: count('SELECT count(*) AS count FROM purge'),
  }
  database.close()
  return left
}

function expectHidden(at: FleetSite): void {
  expect(at.state.summary(companyId(1))).toEqual({
    servers: 0,
    oldest_report_ms: null,
    ecosystems: {},
    open_findings: 0,
  })
  expect(at.state.packages(companyId(1), serverId(7), { q: null, after: null, limit: 9 })).toBeNull()
  expect(at.state.storedHost(hostId(7))).toBeNull()
  expect(at.state.host(hostId(7))).toMatchObject({ companyId: companyId(1), state: 'active' })
  expect(at.state.companiesWaiting()).toEqual([companyId(2)])
  expect(at.state.counters()).toMatchObject({ outboxDepth: 2 })
}

test('[MAT-207] [MAT-209] at the commit of its purge nothing of a company is readable or sent, and the rest goes in slices', async () => {
  const at = await site()
  const batch = (await at.state.nextBatch(companyId(1)))!
  await at.state.purge(companyId(1), null)
  expect(leftOf(at.dir).hosts).toBeGreaterThan(1)
  expectHidden(at)
  expect(at.state.isCurrent(batch)).toBe(false)
  await at.state.settle(batch, [{ eventId: batch.events[0]!.event_id, reason: '422' }])
  expect(await at.state.nextBatch(companyId(1))).toBeNull()
  expect(await at.state.resync(companyId(1))).toBe(0)
  const query = { name: 'bash', versionGte: null, versionLt: null, ecosystem: null, after: null, limit: 9 }
  expect(await at.state.search(companyId(1), { ...query, deadlineMs: 4_000 })).toEqual({ items: [], nextAfter: null })
  // A host that is still there reports anew, whether its turn has come or not.
  expect(await at.send(HOSTS, report(['bash 5.2']), { requestTimeMs: at.nowMs - 10_000 })).toEqual({
    outcome: 'purged',
  })
  expect(await at.send(HOSTS, report(['bash 5.2']))).toMatchObject({ outcome: 'kept', open_findings: 1 })
  await until('the deletion', () => leftOf(at.dir).hosts === 2)
  await at.state.sweep()
  const events = await at.deliver()
  expect(wordsOf(events.filter(event => event.company_id === companyId(1)))).toEqual([
    'opened bash CVE-1 5.2',
    'scanned ok 1',
  ])
  expect(events).toHaveLength(4)
  expect(at.state.counters()).toMatchObject({ outboxDepth: 0, outboxBytes: 0, deadLetters: 0 })
  expect(leftOf(at.dir)).toEqual({ hosts: 2, findings: 2, events: 0, purges: 0 })
  await at.state.close()
})

test('[MAT-209] a report that is committed together with the purge of its company brings back nothing to send', async () => {
  const at = await site()
  const waiting: (readonly string[])[] = []
  at.state.onWaiting(() => waiting.push(at.state.companiesWaiting()))
  await Promise.all([at.send(7, report(['bash 5.2'])), at.state.purge(companyId(1), null)])
  expect(waiting.length).toBeGreaterThan(0)
  expect(waiting.filter(companies => String(companies) !== companyId(2))).toEqual([])
  expect(await at.state.nextBatch(companyId(1))).toBeNull()
  await at.state.close()
})

test('[MAT-207] killed behind the commit of a purge, the next start deletes the rest', async () => {
  const at = await site()
  await at.state.purge(companyId(1), null)
  const copy = mkdtempSync(join(tmpdir(), 'matcher-purge-'))
  // What a kill at this moment leaves on the disk.
  for (const name of ['state.sqlite', 'state.sqlite-wal']) cpSync(join(at.dir, name), join(copy, name))
  await at.state.close()
  const again = new FleetSite(copy)
  again.nowMs = at.nowMs
  again.state.startWith(reader, null)
  expectHidden(again)
  await again.state.sweep()
  expect(leftOf(copy)).toEqual({ hosts: 1, findings: 1, events: 1, purges: 0 })
  expect(await again.deliver()).toHaveLength(2)
  expect(again.state.counters()).toMatchObject({ outboxDepth: 0, outboxBytes: 0 })
  await again.state.close()
  rmSync(copy, { recursive: true })
})

test('[MAT-207] a company that is purged again while it is deleted, and its reports meanwhile, are gone too', async () => {
  const at = await site()
  await at.state.purge(companyId(1), null)
  await at.send(HOSTS, report(['bash 5.2']))
  at.nowMs += 1_000
  await Promise.all([at.state.purge(companyId(1), null), at.state.purge(companyId(1), null)])
  expectHidden(at)
  await at.state.sweep()
  expect(leftOf(at.dir)).toEqual({ hosts: 1, findings: 1, events: 1, purges: 0 })
  expect(at.errors).toEqual([])
  await at.state.close()
})
