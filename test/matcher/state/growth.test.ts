// What nobody refers to any more goes: after any stream of reports, databases, purges and revocations the store holds
// as many rows as one that knows the last state only.
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Rule } from '../../../core/matching/advisory.ts'
import { randomFrom } from '../../support/random.ts'
import { advisories, differingKeys, rule } from './advisories.ts'
import { companyId, FleetSite, hostId, report, scanHost, serverId } from './fleet-site.ts'

const HOSTS = 20
const SOURCES = Array.from({ length: 12 }, (_, number) => `source-${number}`)
const FIRST = 2026112200
const seeds = process.env.SVC_FUZZ_SEED ? [Number(process.env.SVC_FUZZ_SEED)] : [1, Date.now() % 1_000_000]
const TABLES = [
  'company',
  'host',
  'host_findings',
  'package_list',
  'context',
  'scan',
  'package_group',
  'instance',
  'instance_key',
  'finding',
  'outbox',
  'dead_letter',
  'refused',
  'reference',
] as const

type Rows = Record<string, readonly Rule[]>
const companyOf = (host: number): string => companyId(1 + (host % 3))
const hostOf = (host: number) => scanHost(host, { companyId: companyOf(host) })

function rowCounts(dir: string): Record<string, number> {
  const database = new Database(join(dir, 'state.sqlite'), { readonly: true })
  const count = (table: string): number =>
    database.query<{ readonly count: number }, []>(`SELECT count(*) AS count FROM ${table}`).get()!.count
  const counts = Object.fromEntries(TABLES.map(table => [table, count(table)]))
  database.close()
  return counts
}

class Churn {
  readonly site = new FleetSite()
  readonly random: () => number
  rows: Rows = {}
  version = FIRST
  feed = 1
  readonly gone = new Set<number>()

  constructor(seed: number) {
    this.random = randomFrom(seed)
  }

  number(below: number): number {
    return Math.floor(this.random() * below)
  }

  async switchDatabase(): Promise<void> {
    const rows: Rows = { ...this.rows }
    for (const source of SOURCES)
      if (this.random() < 0.4)
        rows[`debian:12 ${source}`] = [
          rule(`CVE-${source}-${this.number(50)}`, this.random() < 0.3 ? null : `${this.number(9)}.0`),
        ]
    const changed = differingKeys(this.rows, rows)
    this.rows = rows
    await this.site.state.switchTo(advisories(++this.version, rows), changed)
  }

  /** Hosts name packages that nobody else has, and leave them again. */
  packages(): string[] {
    const own = Array.from({ length: this.number(4) }, () => `own-${this.number(100_000)} 1.0`)
    return [...SOURCES.filter(() => this.random() < 0.6).map(source => `${source} ${this.number(30)}.0`), ...own, 'a 1']
  }

  async send(host: number): Promise<void> {
    const running = `6.1.${this.number(20)}`
    const body = report(this.random() < 0.1 ? null : this.packages(), {
      kernel: { running, build: '', booted_at_ms: 0 },
    })
    await this.site.send(host, body)
  }

  async step(): Promise<void> {
    const host = 1 + this.number(HOSTS)
    const kind = this.random()
    if (kind < 0.75) await this.send(host)
    else if (kind < 0.83) await this.switchDatabase()
    else if (kind < 0.86) await this.site.state.purge(companyOf(host), this.random() < 0.3 ? null : serverId(host))
    else if (kind < 0.88) await this.drop(host)
    else if (kind < 0.92) await this.site.deliver()
    else if (kind < 0.94) await this.reopen()
    else {
      const swept = this.site.state.sweep()
      if (this.random() < 0.5) await swept
    }
  }

  async drop(host: number): Promise<void> {
    this.gone.add(host)
    await this.site.hosts({ ...hostOf(host), version: ++this.feed, isDeleted: true })
  }

  async reopen(): Promise<void> {
    await this.site.reopen()
    this.site.state.startWith(advisories(this.version, this.rows), null)
  }
}

const lastReport = (host: number) =>
  report([`${SOURCES[host % SOURCES.length]} 1.0`, `own-${host} 2.0`, 'source-0 1.0'], {
    kernel: { running: `6.1.${host % 3}`, build: '', booted_at_ms: 0 },
  })

async function settle(site: FleetSite, hosts: readonly number[]): Promise<Record<string, number>> {
  for (const host of hosts) expect(await site.send(host, lastReport(host))).toMatchObject({ outcome: 'kept' })
  await site.state.rematched()
  await site.deliver()
  await site.state.sweep()
  for (const host of hosts) {
    const page = site.state.packages(companyOf(host), serverId(host), { q: null, after: null, limit: 500 })
    expect(page?.items).toHaveLength(new Set(lastReport(host).packages!.name).size)
    expect(site.state.storedHost(hostId(host))?.instances).toHaveLength(page!.items.length)
  }
  expect(site.errors).toEqual([])
  await site.state.close()
  return rowCounts(site.dir)
}

test.each(seeds)(
  'after churn, purges and restarts the store has as many rows as one with the last state only (seed %d)',
  async seed => {
    console.log(`seed ${seed}`)
    const churn = new Churn(seed)
    const all = Array.from({ length: HOSTS }, (_, at) => at + 1)
    await churn.site.hosts(...all.map(hostOf))
    await churn.switchDatabase()
    for (let step = 0; step < 400; step++) await churn.step()
    const before = rowCounts(churn.site.dir)
    const hosts = all.filter(host => !churn.gone.has(host))
    const counts = await settle(churn.site, hosts)
    const fresh = new FleetSite()
    await fresh.state.switchTo(advisories(churn.version, churn.rows), [])
    await fresh.hosts(...hosts.map(hostOf))
    fresh.nowMs = churn.site.nowMs
    expect(counts).toEqual(await settle(fresh, hosts))
    expect(counts.instance).toBeLessThan(before.instance!)
    expect(counts.instance).toBeGreaterThan(0)
  },
)

test('what waits for the hub keeps what it refers to', async () => {
  const site = new FleetSite()
  await site.state.switchTo(advisories(FIRST, { 'debian:12 bash': [rule('CVE-1', '5.3')] }), [])
  await site.hosts(hostOf(1))
  await site.send(1, report(['bash 5.2']))
  await site.send(1, report(['bash 5.3']))
  const batch = (await site.state.nextBatch(companyOf(1)))!
  await site.state.sweep()
  const [opened, scanned, resolved] = batch.events
  await site.state.settle(batch, [
    { eventId: opened!.event_id, reason: '422' },
    { eventId: scanned!.event_id, reason: '422' },
  ])
  await site.state.sweep()
  await site.reopen()
  await site.state.sweep()
  expect(site.state.deadLetters(0, 9).map(({ event }) => event)).toEqual([opened!, scanned!])
  expect(resolved).toMatchObject({ type: 'finding.resolved' })
  await site.state.dropDeadLetters(null)
  await site.state.sweep()
  await site.state.close()
  expect(rowCounts(site.dir)).toMatchObject({ finding: 0, reference: 0, scan: 1, instance: 1, dead_letter: 0 })
})
