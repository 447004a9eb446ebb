// Random streams of reports, databases, purges, attachments and restarts, held against a reading of the contract that
// keeps everything whole and makes everything anew at every step (naive-fleet.ts).
import { expect, test } from 'bun:test'
import type { Rule } from '../../../core/matching/advisory.ts'
import type { SecurityEvent } from '../../../core/matching/finding-event.ts'
import { randomFrom } from '../../support/random.ts'
import { advisories, differingKeys, rule } from './advisories.ts'
import { companyId, FleetSite, hostId, report, scanHost, serverId } from './fleet-site.ts'
import { type NaiveColumns, type NaiveEvent, NaiveFleet, naiveEvent } from './naive-fleet.ts'

const HOSTS = 12
const COMPANIES = 3
const SOURCES = ['bash', 'curl', 'glibc', 'openssl', 'perl', 'zlib']
const STEPS = 220
const seeds = process.env.SVC_FUZZ_SEED ? [Number(process.env.SVC_FUZZ_SEED)] : [1, 2, Date.now() % 1_000_000]

type RowsOfRun = Record<string, readonly Rule[]>

const companyOf = (host: number): string => companyId(1 + (host % COMPANIES))

class Run {
  readonly site = new FleetSite()
  readonly naive = new NaiveFleet()
  readonly random: () => number
  readonly names = new Map<string, string>()
  readonly seqs = new Map<string, number>()
  readonly eventIds = new Set<string>()
  /** What a hub holds: host and name of the finding → its columns. */
  readonly hub = new Map<string, string>()
  readonly servers = new Map<number, string | null>()
  rows: RowsOfRun = {}
  version = 2026112200
  feedVersion = 1

  constructor(seed: number) {
    this.random = randomFrom(seed)
  }

  pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.random() * values.length)]!
  }

  number(below: number): number {
    return Math.floor(this.random() * below)
  }

  async start(): Promise<void> {
    for (let host = 1; host <= HOSTS; host++) {
      this.servers.set(host, serverId(host))
      this.naive.enroll(hostId(host), companyOf(host), serverId(host))
    }
    await this.site.hosts(...[...this.servers.keys()].map(host => scanHost(host, { companyId: companyOf(host) })))
    await this.switchDatabase()
  }

  packages(): string[] {
    const packages: string[] = []
    for (const source of SOURCES) {
      if (this.random() < 0.4) continue
      const version = `${1 + this.number(3)}.${this.number(4)}`
      packages.push(`${source} ${version} ${source}`)
      if (this.random() < 0.5) packages.push(`lib${source} ${this.random() < 0.8 ? version : '1.1'} ${source}`)
    }
    return packages.length === 0 ? ['bash 1.0 bash'] : packages
  }

  async send(host: number): Promise<void> {
    const release = this.random() < 0.9 ? '12' : '11'
    const os = { id: 'debian', version_id: release, codename: '', id_like: [], cpe_name: '' }
    const body = this.random() < 0.1 ? report(null, { os }) : report(this.packages(), { os })
    const outcome = await this.site.send(host, body)
    if (outcome.outcome === 'kept') this.naive.report(hostId(host), body, this.site.nowMs)
    else expect(outcome.outcome).toBe('host_revoked')
  }

  /** Some rows of the database become others. */
  async switchDatabase(): Promise<void> {
    const rows: RowsOfRun = { ...this.rows }
    for (const release of ['debian:12', 'debian:11'])
      for (const source of SOURCES) {
        if (this.random() < 0.6) continue
        const rules = Array.from({ length: this.number(4) }, (_, at) =>
          rule(`CVE-${source}-${at}`, this.random() < 0.3 ? null : `${1 + this.number(4)}.${this.number(4)}`, {
            severity: this.pick(['low', 'high']),
          }),
        )
        rows[`${release} ${source}`] = rules
      }
    const changed = differingKeys(this.rows, rows)
    this.rows = rows
    const reader = advisories(++this.version, rows)
    await this.site.state.switchTo(reader, changed)
    this.naive.switchTo(reader, this.site.nowMs)
  }

  async attach(host: number): Promise<void> {
    const server = this.random() < 0.3 ? null : serverId(100 + this.number(1_000))
    this.servers.set(host, server)
    const held = this.naive.hosts.get(hostId(host))!
    held.server = server
    const state = held.isRevoked ? 'revoked' : 'active'
    const version = ++this.feedVersion
    await this.site.hosts(scanHost(host, { companyId: companyOf(host), serverId: server, state, version }))
  }

  async purge(): Promise<void> {
    const company = companyId(1 + this.number(COMPANIES))
    const server = this.random() < 0.2 ? null : (this.servers.get(1 + this.number(HOSTS)) ?? serverId(1))
    await this.site.state.purge(company, server)
    this.naive.purge(company, server)
    for (const [id, host] of this.naive.hosts)
      if (host.company === company && (server === null || host.server === server)) this.forgetAtHub(id)
  }

  async revoke(host: number): Promise<void> {
    const server = this.servers.get(host) ?? null
    const version = ++this.feedVersion
    await this.site.hosts(scanHost(host, { companyId: companyOf(host), serverId: server, state: 'revoked', version }))
    this.naive.revoke(hostId(host))
    this.forgetAtHub(hostId(host))
  }

  async restart(): Promise<void> {
    await this.site.reopen()
    this.site.state.startWith(advisories(this.version, this.rows), null)
  }

  /** What nobody refers to goes, at once or while the next steps are taken. */
  async sweep(): Promise<void> {
    const swept = this.site.state.sweep()
    if (this.random() < 0.5) await swept
  }

  async step(): Promise<void> {
    const kind = this.random()
    const host = 1 + this.number(HOSTS)
    if (kind < 0.6) await this.send(host)
    else if (kind < 0.75) await this.switchDatabase()
    else if (kind < 0.83) await this.attach(host)
    else if (kind < 0.88) await this.purge()
    else if (kind < 0.89) await this.revoke(host)
    else if (kind < 0.93) await this.restart()
    else if (kind < 0.96) await this.sweep()
    else {
      const company = companyId(1 + this.number(COMPANIES))
      await this.site.state.resync(company)
      // What waits comes first; here nothing waits.
      this.naive.resync(company)
    }
  }

  forgetAtHub(id: string): void {
    for (const key of this.hub.keys()) if (key.startsWith(`${id} `)) this.hub.delete(key)
  }

  /** Takes what waits, and checks what holds of every event. */
  async delivered(): Promise<Map<string, NaiveEvent[]>> {
    const told = new Map<string, NaiveEvent[]>()
    for (const event of await this.site.deliver()) {
      this.checkEnvelope(event)
      const naive = naiveEvent(event, this.names)
      told.set(event.host_id, [...(told.get(event.host_id) ?? []), naive])
      if (naive.type === 'finding.resolved') this.hub.delete(`${event.host_id} ${naive.name}`)
      else if (naive.type !== 'server.scanned')
        this.hub.set(`${event.host_id} ${naive.columns.package_key} ${naive.columns.vuln_id}`, heldText(naive.columns))
    }
    return told
  }

  checkEnvelope(event: SecurityEvent): void {
    const host = this.naive.hosts.get(event.host_id)!
    expect(event.company_id).toBe(host.company)
    expect(event.server_id).toBe(host.server)
    expect(event.seq).toBeGreaterThan(this.seqs.get(event.host_id) ?? 0)
    this.seqs.set(event.host_id, event.seq)
    expect(this.eventIds.has(event.event_id)).toBe(false)
    this.eventIds.add(event.event_id)
  }

  async checkLists(): Promise<void> {
    for (const [number, server] of this.servers) {
      if (server === null) continue
      for (let company = 1; company <= COMPANIES; company++) {
        const page = this.site.state.packages(companyId(company), server, { q: null, after: null, limit: 500 })
        const rows = page?.items.map(({ name, version }) => `${name} ${version}`).sort() ?? null
        const isOwn = companyOf(number) === companyId(company)
        expect(rows).toEqual(isOwn ? this.naive.packagesOf(companyId(company), server) : null)
      }
    }
    const name = this.pick(SOURCES)
    for (let company = 1; company <= COMPANIES; company++) {
      const query = {
        name,
        versionGte: null,
        versionLt: null,
        ecosystem: null,
        after: null,
        limit: 100,
        deadlineMs: 4_000,
      }
      const found = await this.site.state.search(companyId(company), query)
      if (found === 'invalid_bound') throw new Error('no bound was given')
      const rows = found.items.map(({ server_id, version }) => `${server_id} ${version}`)
      expect(rows).toEqual(this.naive.serversWith(companyId(company), name))
    }
  }
}

/** An upgrade of the release alone is told of no finding (MAT-150): the hub goes on holding the old ecosystem. */
const heldText = (columns: NaiveColumns): string => JSON.stringify({ ...columns, ecosystem: '' })

const sorted = (events: readonly NaiveEvent[]): string[] => events.map(event => JSON.stringify(event)).sort()

test.each(seeds)(
  '[MAT-160] [MAT-161] [MAT-181] [MAT-184] every step tells what a naive reading tells (seed %d)',
  async seed => {
    console.log(`seed ${seed}`)
    const run = new Run(seed)
    await run.start()
    for (let step = 0; step < STEPS; step++) {
      await run.step()
      await run.site.state.rematched()
      const told = await run.delivered()
      const expected = run.naive.deliver()
      for (const [id, events] of expected)
        expect({ step, id, events: sorted(told.get(id) ?? []) }).toEqual({ step, id, events: sorted(events) })
      if (step % 20 === 0) await run.checkLists()
    }
    expect(run.site.errors).toEqual([])
    await run.site.state.close()
  },
)

test.each(seeds)(
  '[MAT-183] [MAT-209] reports, purges and restarts within a re-match end in the same findings (seed %d)',
  async seed => {
    console.log(`seed ${seed}`)
    const run = new Run(seed)
    await run.start()
    for (let round = 0; round < 40; round++) {
      for (let step = 0; step < 6; step++) await run.step()
      await run.site.state.rematched()
      await run.delivered()
      run.naive.deliver()
      const open = new Map<string, string>()
      for (const [id, host] of run.naive.hosts)
        for (const { columns } of host.findings.values())
          open.set(`${id} ${columns.package_key} ${columns.vuln_id}`, heldText(columns))
      expect([...run.hub].sort()).toEqual([...open].sort())
      const perCompany = (company: string): number =>
        [...run.naive.hosts.values()].reduce(
          (sum, host) => sum + (host.company === company ? host.findings.size : 0),
          0,
        )
      for (let company = 1; company <= COMPANIES; company++)
        expect(run.site.state.summary(companyId(company)).open_findings).toBe(perCompany(companyId(company)))
    }
    await run.site.state.close()
  },
)
