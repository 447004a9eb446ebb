// The executables matcher and hub under load, killed with SIGKILL at random moments: while scan hosts enroll and
// report, while the vulnerability database is switched, while findings are matched again and told. What the hub holds
// open at the end is told by an oracle from the last report of each host and the tracker that was imported last;
// `matcher match` has to agree with the oracle.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { freePort } from '../../apps/standalone/ports.ts'
import type { Report } from '../../core/matching/report-schema.ts'
import { packagesOf, reportOf, ScanClient } from '../matcher/scan-client.ts'
import { Executable, runCommand } from '../support/executable.ts'
import { newHubDatabase } from '../support/postgres.ts'
import { pause, until } from '../support/until.ts'
import { type Random, randomOf } from './random.ts'

type Plan = {
  readonly matcherKills: number
  readonly hubKills: number
  readonly seed: number
  /** The longest that one that enrolls hosts waits between two of them. */
  readonly betweenHostsMs: number
}

type Summary = {
  readonly hosts: number
  readonly reports: number
  /** Requests that were sent again because nobody, or one that was going, answered. */
  readonly repeated: number
  readonly switches: number
  /** Kills of a process that had not come to be ready. */
  readonly killedAtStart: number
  /** From the last import until the hub had been told all. */
  readonly drainSeconds: number
  readonly findings: number
  readonly faults: readonly string[]
}

const ENROLLING_AT_ONCE = 6
const COMPANIES = 2
const TRACKERS = 3
/** Hosts whose findings are asked of the command too. */
const MATCHED_BY_COMMAND = 6
/** What waits for a hub that was away may wait for five minutes more (MAT-165), before it is sent at all. */
const DRAIN_MAX_MS = 600_000
const ADMIN_TOKEN = 'secret-of-the-matcher-link'
const PACKAGES = Array.from({ length: 40 }, (_, index) => `library${index}`)
/** From the lowest to the highest. */
const VERSIONS = ['1.0-1', '1.0-2', '1.1-1', '2.0-1']

/** Package → vulnerability → the version that fixes it; null: none does. */
type Tracker = ReadonlyMap<string, ReadonlyMap<string, string | null>>
type Company = { readonly token: string; readonly hosts: Map<string, Report> }
/** What is open: versions of each host, package and vulnerability. */
type Open = ReadonlyMap<string, string>

function randomTracker(random: Random): Tracker {
  const fixes = (at: number) =>
    Array.from({ length: 6 }, (_, index) => {
      const fixed = random.chance(0.7) ? random.pick(VERSIONS.slice(1)) : null
      return [`CVE-2025-${1000 + at * 10 + index}`, fixed] as const
    })
  return new Map(PACKAGES.map((name, at) => [name, new Map(fixes(at))]))
}

/** As the tracker of Debian publishes it. */
function trackerJson(tracker: Tracker): string {
  const release = (fixed: string | null) =>
    fixed === null
      ? { status: 'open', urgency: 'not yet assigned' }
      : { status: 'resolved', fixed_version: fixed, urgency: 'medium' }
  const vulnerabilities = (all: ReadonlyMap<string, string | null>) =>
    Object.fromEntries(
      [...all].map(([id, fixed]) => [
        id,
        { description: 'made up', scope: 'remote', releases: { bookworm: release(fixed) } },
      ]),
    )
  return JSON.stringify(Object.fromEntries([...tracker].map(([name, all]) => [name, vulnerabilities(all)])))
}

async function command(name: 'hub' | 'matcher', words: readonly string[]): Promise<string> {
  const { code, out, err } = await runCommand(name, words)
  if (code !== 0) throw new Error(`${name} ${words.join(' ')} ended with ${code}: ${err}`)
  return out
}

class KilledSite {
  readonly folder = mkdtempSync(join(tmpdir(), 'kill-matcher-'))
  readonly hub = new Executable('hub', ['serve', '--config', this.path('hub.yaml')], this.path('hub.ready'))
  readonly matcher = new Executable('matcher', ['run', '--config', this.path('matcher.yaml')], this.path('m.ready'))
  readonly companies: Company[] = []
  readonly trackers: Tracker[] = []
  readonly ports = { hub: freePort(), scan: freePort(), admin: freePort() }
  readonly random: Random
  isOver = false
  hosts = 0
  reports = 0
  repeated = 0
  switches = 0
  killedAtStart = 0

  constructor(readonly plan: Plan) {
    this.random = randomOf(plan.seed)
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  async prepare(): Promise<void> {
    const { hub: hubPort, scan, admin } = this.ports
    writeFileSync(this.path('database.url'), `${await newHubDatabase()}\n`, { mode: 0o600 })
    writeFileSync(
      this.path('hub.yaml'),
      `listen: 127.0.0.1:${hubPort}
database: { url_file: ${this.path('database.url')} }
matcher: { url: "http://127.0.0.1:${admin}", token: ${ADMIN_TOKEN} }
rate: { default_per_minute: 1000000, matcher_per_minute: 1000000 }
log: { level: error }
`,
    )
    const hub = async (...words: string[]): Promise<Record<string, string>> =>
      JSON.parse(await command('hub', [...words, '--config', this.path('hub.yaml'), '--json']))
    for (let index = 0; index < COMPANIES; index++) {
      const { company_id: id = '' } = await hub('company', 'create', '--name', `Company ${index}`)
      await hub('company', 'plan', id, '--plan', 'dedicated')
      const email = `operator${index}@example.test`
      await hub('user', 'create', '--company', id, '--email', email, '--name', 'Operator', '--admin')
      const { token = '' } = await hub('token', 'create', '--user', email)
      this.companies.push({ token, hosts: new Map() })
    }
    const service = await hub('service', 'create', '--kind', 'matcher', '--name', 'm', '--ip-range', '127.0.0.0/8')
    writeFileSync(
      this.path('matcher.yaml'),
      `listen: 127.0.0.1:${scan}
admin: { listen: 127.0.0.1:${admin}, token: ${ADMIN_TOKEN} }
data_dir: ${this.path('matcher')}
hub: { url: "http://127.0.0.1:${hubPort}", token: ${service.token} }
matcher_id: ${service.matcher_id}
db: { update_interval: "off" }
hosts: { sync_interval: 500ms }
limits: { enroll_per_minute: 1000000, host_per_minute: 1000000 }
log: { level: error }
`,
    )
    for (let index = 0; index < TRACKERS; index++) {
      const tracker = randomTracker(this.random)
      const file = this.path(`tracker${index}.json`)
      writeFileSync(file, trackerJson(tracker))
      await command('matcher', ['db', 'build', '--source', `debian=${file}`, '--out', this.bundle(index)])
      this.trackers.push(tracker)
    }
  }

  bundle(index: number): string {
    return this.path(`db${index}.zst`)
  }

  importOf(index: number) {
    const words = ['db', 'import', this.bundle(index), '--force', '--config', this.path('matcher.yaml')]
    return runCommand('matcher', words)
  }

  /** Asks until somebody answers; an answer that is neither what is wanted nor a fault of the server is an error. */
  async insist<T extends { readonly status: number }>(
    what: string,
    call: () => Promise<T>,
    wanted: number,
  ): Promise<T> {
    for (;;) {
      const answer = await call().catch(() => null)
      if (answer?.status === wanted) return answer
      if (answer && answer.status < 500)
        throw new Error(`${what} was answered with ${answer.status} ${JSON.stringify(answer)}`)
      this.repeated++
      await pause(50)
    }
  }

  async api(company: Company, method: string, where: string, body?: unknown) {
    const response = await fetch(`http://127.0.0.1:${this.ports.hub}/api/v1${where}`, {
      method,
      headers: { authorization: `Bearer ${company.token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: response.status < 500 ? JSON.parse(text) : text }
  }

  randomReport(name: string): Report {
    const { random } = this
    const some = PACKAGES.filter(() => random.chance(0.5)).map(each => [each, random.pick(VERSIONS)] as const)
    return reportOf(name, { packages: packagesOf(...some, ['base', '1.0-1']) })
  }

  /** One host after another: it enrolls, reports, and reports once more with other packages, as MAT-040 allows. */
  async enrollHosts(): Promise<void> {
    const { random } = this
    while (!this.isOver) {
      const company = random.pick(this.companies)
      const name = `host-${++this.hosts}`
      const scanner = new ScanClient(`http://127.0.0.1:${this.ports.scan}`, name)
      const codes = () => this.api(company, 'POST', '/security/scan-hosts/enrolment-codes', {})
      const { body } = await this.insist('a code', codes, 201)
      await this.insist('an enrollment', () => scanner.enroll(body.data.code), 201)
      for (let round = 0; round < 2; round++) {
        const report = this.randomReport(name)
        const sent = zstdCompressSync(Buffer.from(JSON.stringify(report)))
        // The same signed request again, when the answer was lost: it is the same report.
        const options = { body: sent, encoding: 'zstd', timeMs: scanner.nextTimeMs() }
        await this.insist('a report', () => scanner.call('POST', '/report', options), 200)
        company.hosts.set(scanner.hostId, report)
        this.reports++
        await pause(random.between(0, 400))
      }
      await pause(random.between(0, this.plan.betweenHostsMs))
    }
  }

  /** Imports one database after another; a command that a kill disturbs may fail, and the next one is given. */
  async switchDatabases(): Promise<void> {
    for (let index = 0; !this.isOver; index++) {
      const { code } = await this.importOf(index % TRACKERS)
      if (code === 0) this.switches++
      await pause(this.random.between(200, 3_000))
    }
  }

  async killOften(which: Executable, kills: number): Promise<void> {
    for (let kill = 0; kill < kills; kill++) {
      const isAtStart = this.random.chance(0.3)
      const started = which.start()
      // Its end is what is wanted.
      if (isAtStart) started.catch(() => {})
      else await started
      await pause(this.random.between(0, isAtStart ? 800 : 1_200))
      if (isAtStart) this.killedAtStart++
      await which.kill()
    }
    await which.start()
  }

  async status() {
    const response = await fetch(`http://127.0.0.1:${this.ports.admin}/internal/v1/status`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    })
    const { data } = (await response.json()) as {
      data: {
        db_version: number
        outbox: { depth: number; dead_letters: number }
        rematch: { state: string; db_version: number }
      }
    }
    return data
  }

  /** The first database again, until the matcher has matched with it and the hub has been told all; in seconds. */
  async settle(): Promise<number> {
    const beganMs = performance.now()
    const { code, err } = await this.importOf(0)
    if (code !== 0) throw new Error(`the last import ended with ${code}: ${err}`)
    const words = ['db', 'status', '--json', '--config', this.path('matcher.yaml')]
    const { db_version: wanted } = JSON.parse(await command('matcher', words)) as { db_version: number }
    let last: unknown
    const isToldAll = async () => {
      const status = await this.status()
      const { db_version: version, outbox, rematch } = status
      last = { wanted, version, outbox, rematch }
      return version === wanted && rematch.state === 'idle' && outbox.depth === 0
    }
    await until('everything to be told', isToldAll, DRAIN_MAX_MS).catch(cause => {
      throw new Error(`not all was told: ${JSON.stringify(last)}`, { cause })
    })
    return Math.round((performance.now() - beganMs) / 1000)
  }

  async openAtHub(company: Company): Promise<Open> {
    const open = new Map<string, string>()
    for (let page = 1; ; page++) {
      const answer = await this.api(company, 'GET', `/security/findings?status=open&per_page=100&page=${page}`)
      if (answer.status !== 200) throw new Error(`the findings: ${answer.status} ${JSON.stringify(answer.body)}`)
      for (const one of answer.body.data) {
        const key = `${one.host_id} ${one.package_key} ${one.vuln_id}`
        if (open.has(key)) throw new Error(`twice at the hub: ${key}`)
        open.set(key, `${one.installed_version} ${one.fixed_version ?? ''}`)
      }
      if (page >= answer.body.meta.last_page) return open
    }
  }

  /** The command on some hosts against what the oracle says. */
  async commandFaults(company: Company): Promise<string[]> {
    const faults: string[] = []
    for (const [hostId, report] of [...company.hosts].slice(-MATCHED_BY_COMMAND)) {
      writeFileSync(this.path('report.json'), JSON.stringify(report))
      const words = ['match', '--report', this.path('report.json'), '--db', this.bundle(0), '--json']
      const { findings } = JSON.parse(await command('matcher', words)) as { findings: Record<string, string>[] }
      const found = findings.map(
        one =>
          [`${hostId} ${one.package_key} ${one.vuln_id}`, `${one.installed_version} ${one.fixed_version}`] as const,
      )
      faults.push(...differences(new Map(found), openOf(hostId, report, this.trackers[0]), 'matcher match'))
    }
    return faults
  }

  async faults(): Promise<{ findings: number; faults: string[] }> {
    const faults: string[] = []
    let findings = 0
    const { outbox } = await this.status()
    if (outbox.dead_letters > 0) faults.push(`${outbox.dead_letters} dead letters`)
    for (const company of this.companies) {
      const wanted = new Map([...company.hosts].flatMap(([id, report]) => [...openOf(id, report, this.trackers[0])]))
      findings += wanted.size
      faults.push(...differences(await this.openAtHub(company), wanted, 'the hub'))
      faults.push(...(await this.commandFaults(company)))
    }
    return { findings, faults }
  }

  async end(): Promise<void> {
    this.isOver = true
    await this.matcher.kill()
    await this.hub.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** The oracle: what a tracker says of a report. */
function openOf(hostId: string, { packages }: Report, tracker: Tracker | undefined): Open {
  const open = new Map<string, string>()
  for (const [at, name] of (packages?.name ?? []).entries()) {
    const version = packages?.version[at] ?? ''
    for (const [id, fixed] of tracker?.get(name) ?? [])
      if (fixed === null || VERSIONS.indexOf(version) < VERSIONS.indexOf(fixed))
        open.set(`${hostId} ${name} ${id}`, `${version} ${fixed ?? ''}`)
  }
  return open
}

const differences = (found: Open, wanted: Open, whose: string): string[] => [
  ...[...wanted]
    .filter(([key, value]) => found.get(key) !== value)
    .map(([key, value]) => `${key}: ${value}, ${whose} has ${found.get(key)}`),
  ...[...found.keys()].filter(key => !wanted.has(key)).map(key => `${key}: only ${whose} has it`),
]

/** Runs it all. Throws when an answer comes that no kill explains. */
export async function runKills(plan: Plan): Promise<Summary> {
  const site = new KilledSite(plan)
  try {
    await site.prepare()
    const load = Promise.all([
      ...Array.from({ length: ENROLLING_AT_ONCE }, () => site.enrollHosts()),
      site.switchDatabases(),
    ])
    const kills = Promise.all([
      site.killOften(site.matcher, plan.matcherKills),
      site.killOften(site.hub, plan.hubKills),
    ])
    await Promise.race([kills, load.then(() => kills)])
    site.isOver = true
    await load
    const drainSeconds = await site.settle()
    const { findings, faults } = await site.faults()
    const { hosts, reports, repeated, switches, killedAtStart } = site
    return { hosts, reports, repeated, switches, killedAtStart, drainSeconds, findings, faults }
  } catch (cause) {
    throw new Error(`${site.matcher.output}\n${site.hub.output}`.trim() || 'the run was broken off', { cause })
  } finally {
    await site.end()
  }
}
