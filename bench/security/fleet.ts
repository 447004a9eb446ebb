// The store of the matcher under a whole fleet: reports, a new database, search, start, memory and disk (MAT-185,
// MAT-187, MAT-205). `bun bench/security/fleet.ts [HOSTS] [PACKAGES]`; prints JSON lines as they come.
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openState } from '../../apps/matcher/state/open-state.ts'
import type { AdvisoryKey, MatcherState } from '../../apps/matcher/state/state-types.ts'
import type { Report } from '../../core/matching/report-schema.ts'
import { COMPANY, hostIdOf, serverIdOf, syntheticAdvisories, syntheticReport } from './synthetic-fleet.ts'

type Shape = { readonly hosts: number; readonly packages: number }
type Figures = Readonly<Record<string, unknown>>

/** Reports that are on their way at the same time. */
const AT_ONCE = 50

const range = (count: number, from = 0): number[] => Array.from({ length: count }, (_, at) => from + at)
const memoryMb = (): number => {
  Bun.gc(true)
  return process.memoryUsage().rss / 1e6
}

/** Of all threads of this process. */
function cpuSecondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}

const keyOf = (text: string): AdvisoryKey => {
  const [release = '', name = ''] = text.split(' ')
  return { release, package: name, by: 'source' }
}

const lastHash = (host: number): string => (host >= 100 && host < 300 ? 'third' : 'second')

class FleetBench {
  readonly lines: Figures[] = []
  readonly dir = mkdtempSync(join(tmpdir(), 'bench-fleet-'))
  readonly shape: Shape
  readonly onLine: (line: Figures) => void
  state: MatcherState
  time = Date.now()

  constructor(shape: Shape, onLine: (line: Figures) => void) {
    this.shape = shape
    this.onLine = onLine
    this.state = this.open()
  }

  open(): MatcherState {
    return openState(this.dir, {
      match: { centosAsRedhat: true, undetermined: false, rebuildsUnfixed: false },
      outboxBytesMax: 8 * 2 ** 30,
      forgetAfterMs: Number.MAX_SAFE_INTEGER,
      now: Date.now,
      onError: (what, error) => console.error(what, error),
    })
  }

  say(question: string, figures: Readonly<Record<string, number>>): void {
    const rounded = Object.entries(figures).map(([name, value]) => [name, Math.round(value * 100) / 100])
    const line = { question, ...this.shape, ...Object.fromEntries(rounded) }
    this.lines.push(line)
    this.onLine(line)
  }

  accept(host: number, report: Report | null, contentHash: string) {
    return this.state.acceptReport({
      hostId: hostIdOf(host),
      report,
      contentHash,
      requestTimeMs: ++this.time,
      signature: '',
      receivedAtMs: Date.now(),
      minIntervalMs: 0,
    })
  }

  /** Seconds that the state took for reports of these hosts; making the reports is not counted. */
  async sendAll(hosts: readonly number[], reportOf: (host: number) => Report | null, hash: string) {
    let seconds = 0
    for (let from = 0; from < hosts.length; from += AT_ONCE) {
      const some = hosts.slice(from, from + AT_ONCE).map(host => ({ host, report: reportOf(host) }))
      const began = performance.now()
      const outcomes = await Promise.all(some.map(({ host, report }) => this.accept(host, report, hash)))
      seconds += (performance.now() - began) / 1000
      const refused = outcomes.find(({ outcome }) => outcome !== 'kept')
      if (refused) throw new Error(`a report was not kept: ${refused.outcome}`)
    }
    return seconds
  }

  async fill(): Promise<void> {
    for (let from = 0; from < this.shape.hosts; from += 1_000) {
      const page = range(Math.min(1_000, this.shape.hosts - from), from).map(host => ({
        hostId: hostIdOf(host),
        companyId: COMPANY,
        serverId: serverIdOf(host),
        publicKey: '',
        state: 'active' as const,
        isInactive: false,
        version: 1,
        isDeleted: false,
      }))
      await this.state.applyHostsPage(page, { nextSince: from, isLast: true })
    }
    const seconds = await this.sendAll(range(this.shape.hosts), host => syntheticReport(host, this.shape), 'first')
    const { instances, findingsOpen } = this.state.counters()
    this.say('first reports', {
      seconds,
      per_second: this.shape.hosts / seconds,
      instances,
      findings_per_host: findingsOpen / this.shape.hosts,
      rss_mb: memoryMb(),
    })
  }

  async reports(): Promise<void> {
    const some = range(Math.min(this.shape.hosts, 2_000))
    const made = some.map(host => syntheticReport(host, this.shape, 20))
    const cpuBefore = process.cpuUsage()
    const changed = await this.sendAll(some, host => made[host]!, 'second')
    this.say('changed reports', {
      per_second: some.length / changed,
      a_report_ms: (changed / some.length) * 1000,
      cpu_ms_a_report: (cpuSecondsSince(cpuBefore) * 1000) / some.length,
    })
    const unchanged = await this.sendAll(some, () => null, 'second')
    this.say('unchanged reports', { per_second: some.length / unchanged })
    const alone: number[] = []
    for (const host of range(200, 100)) {
      const report = syntheticReport(host, this.shape, 10)
      const began = performance.now()
      await this.accept(host, report, 'third')
      alone.push(performance.now() - began)
    }
    alone.sort((a, b) => a - b)
    this.say('one changed report alone', { p50_ms: alone[100]!, p99_ms: alone[197]! })
  }

  async rematch(question: string, version: number, changed: readonly string[], told: readonly string[]) {
    const reader = syntheticAdvisories(version, new Set(changed))
    let worstMs = 0
    let isDone = false
    const began = performance.now()
    const cpuBefore = process.cpuUsage()
    await this.state.switchTo(reader, told.map(keyOf))
    const switchedMs = performance.now() - began
    const finished = this.state.rematched().then(() => {
      isDone = true
    })
    // Hosts go on reporting meanwhile.
    for (let host = 0; !isDone; host++) {
      const sentAt = performance.now()
      await this.accept(
        host % this.shape.hosts,
        null,
        host % this.shape.hosts < 2_000 ? lastHash(host % this.shape.hosts) : 'first',
      )
      worstMs = Math.max(worstMs, performance.now() - sentAt)
      await Bun.sleep(20)
    }
    await finished
    const { keys, hostsRead, hostsChanged } = this.state.rematch()
    const seconds = (performance.now() - began) / 1000
    const cpuSeconds = cpuSecondsSince(cpuBefore)
    const figures = { seconds, switch_ms: switchedMs, keys, hosts_read: hostsRead, hosts_changed: hostsChanged }
    const cost = { cpu_seconds: cpuSeconds, cpu_ms_a_host_read: (cpuSeconds * 1000) / hostsRead }
    this.say(question, { ...figures, ...cost, worst_report_ms: worstMs, rss_mb: memoryMb() })
  }

  async searches(): Promise<void> {
    for (const [question, name] of [
      ['search for a package of every host', 'package-1'],
      ['search for a rare package', 'package-4990'],
    ] as const) {
      const times: number[] = []
      let after: string | null = null
      for (let page = 0; page < 20; page++) {
        const began = performance.now()
        const query = {
          name,
          versionGte: '1.3',
          versionLt: '1.5',
          ecosystem: null,
          after,
          limit: 100,
          deadlineMs: 4_000,
        }
        const found = await this.state.search(COMPANY, query)
        times.push(performance.now() - began)
        after = found === 'invalid_bound' ? null : found.nextAfter
      }
      times.sort((a, b) => a - b)
      this.say(question, { p50_ms: times[10]!, worst_ms: times[19]! })
    }
  }

  async delivery(): Promise<void> {
    const began = performance.now()
    let events = 0
    for (let batches = 0; batches < 250; batches++) {
      const batch = await this.state.nextBatch(COMPANY)
      if (batch === null) break
      events += batch.events.length
      await this.state.settle(batch)
    }
    const seconds = (performance.now() - began) / 1000
    const { outboxDepth, outboxBytes } = this.state.counters()
    this.say('events out of the outbox', {
      per_minute: (events / seconds) * 60,
      bytes_an_event: outboxBytes / outboxDepth,
    })
    const asked = performance.now()
    const count = await this.state.resync(COMPANY)
    this.say('resync is asked for', { ms: performance.now() - asked, events: count })
  }

  async restart(version: number, changed: readonly string[]): Promise<void> {
    await this.state.close()
    const sizeOf = (name: string): number => statSync(join(this.dir, name)).size / 1e6
    const names = readdirSync(this.dir)
    const sum = (some: readonly string[]): number => some.reduce((mb, name) => mb + sizeOf(name), 0)
    // The log of the last transactions has one size, whatever the fleet.
    const disk = { disk_mb: sum(names), disk_mb_of_the_log: sum(names.filter(name => name.endsWith('-wal'))) }
    const began = performance.now()
    this.state = this.open()
    this.state.startWith(syntheticAdvisories(version, new Set(changed)), null)
    await this.state.rematched()
    await this.accept(0, null, 'second')
    const answeredMs = performance.now() - began
    const query = { name: 'package-1', versionGte: null, versionLt: null, ecosystem: null, after: null, limit: 9 }
    while (performance.now() - began < 60_000) {
      const asked = performance.now()
      await this.state.search(COMPANY, { ...query, deadlineMs: 4_000 })
      if (performance.now() - asked < 50) break
      await Bun.sleep(50)
    }
    this.say('start', {
      first_report_ms: answeredMs,
      search_is_fast_after_ms: performance.now() - began,
      ...disk,
      rss_mb: memoryMb(),
    })
  }

  async run(): Promise<readonly Figures[]> {
    try {
      const first = syntheticAdvisories(2026112200, new Set())
      await this.state.switchTo(first, [])
      await this.fill()
      await this.reports()
      const daily = first.keys.filter((_, at) => at % Math.floor(first.keys.length / 300) === 0).slice(0, 300)
      await this.rematch('daily change of the database', 2026112300, daily, daily)
      const some = first.keys.filter((_, at) => at % 20 === 0)
      await this.rematch('whole re-match', 2026112400, [...daily, ...some], first.keys)
      await this.searches()
      await this.delivery()
      await this.restart(2026112400, [...daily, ...some])
      return this.lines
    } finally {
      await this.state.close()
      rmSync(this.dir, { recursive: true, force: true })
    }
  }
}

const DEFAULT: Shape = { hosts: 2_000, packages: 800 }

/** Every line of a fleet of this shape. */
export const benchFleet = (shape: Shape = DEFAULT, onLine: (line: Figures) => void = () => {}) =>
  new FleetBench(shape, onLine).run()

if (import.meta.main) {
  const [hosts = DEFAULT.hosts, packages = DEFAULT.packages] = process.argv.slice(2).map(Number)
  await benchFleet({ hosts, packages }, line =>
    console.log(JSON.stringify({ bench: 'security', part: 'fleet', ...line })),
  )
}
