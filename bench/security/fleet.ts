// The store of the matcher under a whole fleet: reports, a new database, search, start, memory and disk (MAT-185,
// MAT-187, MAT-205). `bun bench/security/fleet.ts [HOSTS] [PACKAGES] [--data DIR] [--only STEP,…] [--seconds N]`;
// prints JSON lines as they come. With --data the state stays in DIR, and each step can be run alone on it: first
// `--only fill`, as often as it takes (it goes on where it was, N seconds at a time), then the others in any order.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openState } from '../../apps/matcher/state/open-state.ts'
import type { AdvisoryKey, MatcherState } from '../../apps/matcher/state/state-types.ts'
import type { Report } from '../../core/matching/report-schema.ts'
import { resetPeak, residentMb } from '../process-cpu.ts'
import { COMPANY, hostIdOf, serverIdOf, syntheticAdvisories, syntheticReport } from './synthetic-fleet.ts'

type Shape = { readonly hosts: number; readonly packages: number }
type Figures = Readonly<Record<string, unknown>>

const STEPS = ['fill', 'reports', 'daily', 'whole', 'search', 'delivery', 'start'] as const
type Step = (typeof STEPS)[number]

type Run = {
  readonly shape: Shape
  /** Kept afterwards; a directory of its own, deleted afterwards, when absent. */
  readonly dir?: string
  readonly steps?: readonly Step[]
  /** The fill stops after so many seconds. */
  readonly fillSeconds?: number
  readonly onLine?: (line: Figures) => void
}

/** What the runs before have left in the directory. */
type Progress = {
  readonly version: number
  /** Keys that say something else than at the beginning. */
  readonly changedKeys: readonly string[]
  readonly filledHosts: number
  readonly reportRounds: number
}

const FIRST_PROGRESS: Progress = { version: 2026112200, changedKeys: [], filledHosts: 0, reportRounds: 0 }
const PROGRESS_FILE = 'bench.json'

/** Hosts that send changed reports, and of them those that do so alone. */
const CHANGING_HOSTS = 2_000
const ALONE = { from: 100, count: 200 }

const SEARCHED = [
  { question: 'search for a package of every host', name: 'package-1' },
  { question: 'search for a rare package', name: 'package-4990' },
] as const

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

class FleetBench {
  readonly lines: Figures[] = []
  readonly run: Run
  readonly dir: string
  readonly shape: Shape
  progress: Progress
  state: MatcherState
  time = Date.now()

  constructor(run: Run) {
    this.run = run
    this.shape = run.shape
    this.dir = run.dir ?? mkdtempSync(join(tmpdir(), 'bench-fleet-'))
    mkdirSync(this.dir, { recursive: true })
    const file = join(this.dir, PROGRESS_FILE)
    this.progress = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : FIRST_PROGRESS
    this.state = this.open()
  }

  keep(progress: Partial<Progress>): void {
    this.progress = { ...this.progress, ...progress }
    writeFileSync(join(this.dir, PROGRESS_FILE), JSON.stringify(this.progress))
  }

  /** Of the last report of a host. */
  lastHash(host: number): string {
    const { reportRounds } = this.progress
    if (reportRounds === 0 || host >= CHANGING_HOSTS) return 'first'
    return `${host >= ALONE.from && host < ALONE.from + ALONE.count ? 'alone' : 'changed'} ${reportRounds}`
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
    // The highest within the step, between the collections of garbage too.
    const all = { ...figures, peak_mb: residentMb().peak * 1.048576, disk_now_mb: this.diskMb() }
    const rounded = Object.entries(all).map(([name, value]) => [name, Math.round(value * 100) / 100])
    const line = { question, ...this.shape, ...Object.fromEntries(rounded) }
    this.lines.push(line)
    this.run.onLine?.(line)
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
    const stopsAt = performance.now() + (this.run.fillSeconds ?? Infinity) * 1000
    const first = this.progress.filledHosts
    const cpuBefore = process.cpuUsage()
    let seconds = 0
    for (let from = first; from < this.shape.hosts && performance.now() < stopsAt; from += 1_000) {
      const hosts = range(Math.min(1_000, this.shape.hosts - from), from)
      const page = hosts.map(host => ({
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
      seconds += await this.sendAll(hosts, host => syntheticReport(host, this.shape), 'first')
      this.keep({ filledHosts: from + hosts.length })
    }
    const { instances, findingsOpen } = this.state.counters()
    const { filledHosts } = this.progress
    this.say('first reports', {
      filled: filledHosts,
      seconds,
      cpu_seconds: cpuSecondsSince(cpuBefore),
      per_second: (filledHosts - first) / seconds,
      instances,
      findings_per_host: findingsOpen / filledHosts,
      rss_mb: memoryMb(),
    })
  }

  async reports(): Promise<void> {
    const some = range(Math.min(this.shape.hosts, CHANGING_HOSTS))
    const round = this.progress.reportRounds + 1
    const made = some.map(host => syntheticReport(host, this.shape, round % 2 === 0 ? 0 : 20))
    const cpuBefore = process.cpuUsage()
    const changed = await this.sendAll(some, host => made[host]!, `changed ${round}`)
    this.say('changed reports', {
      per_second: some.length / changed,
      a_report_ms: (changed / some.length) * 1000,
      cpu_ms_a_report: (cpuSecondsSince(cpuBefore) * 1000) / some.length,
    })
    const unchanged = await this.sendAll(some, () => null, `changed ${round}`)
    this.say('unchanged reports', { per_second: some.length / unchanged })
    const alone: number[] = []
    for (const host of range(ALONE.count, ALONE.from)) {
      const report = syntheticReport(host, this.shape, 10)
      const began = performance.now()
      await this.accept(host, report, `alone ${round}`)
      alone.push(performance.now() - began)
    }
    this.keep({ reportRounds: round })
    alone.sort((a, b) => a - b)
    this.say('one changed report alone', { p50_ms: alone[100]!, p99_ms: alone[197]! })
  }

  /** `changed` say something else than before; `told` are looked at. */
  async rematch(question: string, changed: readonly string[], told: readonly string[]) {
    const version = this.progress.version + 100
    const keys = new Set(this.progress.changedKeys).symmetricDifference(new Set(changed))
    const reader = syntheticAdvisories(version, keys)
    this.keep({ version, changedKeys: [...keys] })
    let worstMs = 0
    let isDone = false
    const searches: number[] = []
    const began = performance.now()
    const cpuBefore = process.cpuUsage()
    await this.state.switchTo(reader, told.map(keyOf))
    const switchedMs = performance.now() - began
    const finished = this.state.rematched().then(() => {
      isDone = true
    })
    // Hosts go on reporting meanwhile, and people searching.
    for (let host = 0; !isDone; host++) {
      const sentAt = performance.now()
      await this.accept(host % this.shape.hosts, null, this.lastHash(host % this.shape.hosts))
      worstMs = Math.max(worstMs, performance.now() - sentAt)
      searches.push(
        await this.search(SEARCHED[host % SEARCHED.length]!.name, serverIdOf((host * 997) % this.shape.hosts)),
      )
      await Bun.sleep(20)
    }
    await finished
    searches.sort((a, b) => a - b)
    const { keys: keyCount, hostsRead, hostsChanged } = this.state.rematch()
    const seconds = (performance.now() - began) / 1000
    const cpuSeconds = cpuSecondsSince(cpuBefore)
    const figures = {
      seconds,
      switch_ms: switchedMs,
      keys: keyCount,
      hosts_read: hostsRead,
      hosts_changed: hostsChanged,
    }
    const cost = { cpu_seconds: cpuSeconds, cpu_ms_a_host_read: (cpuSeconds * 1000) / hostsRead }
    const answers = { searches: searches.length, search_p95_ms: searches[Math.floor(searches.length * 0.95)] ?? 0 }
    this.say(question, { ...figures, ...cost, worst_report_ms: worstMs, ...answers, rss_mb: memoryMb() })
  }

  /** Milliseconds of one page. */
  async search(name: string, after: string | null): Promise<number> {
    const began = performance.now()
    const bounds = { versionGte: '1.3', versionLt: '1.5', ecosystem: null }
    await this.state.search(COMPANY, { name, ...bounds, after, limit: 100, deadlineMs: 4_000 })
    return performance.now() - began
  }

  async searches(): Promise<void> {
    for (const { question, name } of SEARCHED) {
      const times: number[] = []
      for (let page = 0; page < 20; page++)
        times.push(await this.search(name, page === 0 ? null : serverIdOf(Math.floor((page * this.shape.hosts) / 20))))
      times.sort((a, b) => a - b)
      this.say(question, { p50_ms: times[10]!, worst_ms: times[19]! })
    }
  }

  /** All files of the state: what waits for the hub, and the log of the last transactions. */
  diskMb(): number {
    return readdirSync(this.dir).reduce((mb, name) => mb + statSync(join(this.dir, name)).size / 1e6, 0)
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

  async restart(): Promise<void> {
    await this.state.close()
    const sizeOf = (name: string): number => statSync(join(this.dir, name)).size / 1e6
    // The log of the last transactions has one size, whatever the fleet.
    const logs = readdirSync(this.dir).filter(name => name.endsWith('-wal'))
    const disk = { disk_mb: this.diskMb(), disk_mb_of_the_log: logs.reduce((mb, name) => mb + sizeOf(name), 0) }
    const reader = this.reader()
    const began = performance.now()
    this.state = this.open()
    this.state.startWith(reader, null)
    await this.state.rematched()
    await this.accept(0, null, this.lastHash(0))
    const answeredMs = performance.now() - began
    await this.state.loaded()
    this.say('start', {
      first_report_ms: answeredMs,
      loaded_after_ms: performance.now() - began,
      ...disk,
      rss_mb: memoryMb(),
    })
  }

  reader() {
    return syntheticAdvisories(this.progress.version, new Set(this.progress.changedKeys))
  }

  async perform(step: Step): Promise<void> {
    resetPeak()
    const { keys } = this.reader()
    const day = this.progress.version / 100
    const few = Math.floor(keys.length / 300)
    switch (step) {
      case 'fill':
        return this.fill()
      case 'reports':
        return this.reports()
      case 'daily': {
        const daily = keys.filter((_, at) => at % few === day % few).slice(0, 300)
        return this.rematch('daily change of the database', daily, daily)
      }
      case 'whole':
        return this.rematch(
          'whole re-match',
          keys.filter((_, at) => at % 20 === day % 20),
          keys,
        )
      case 'search':
        return this.searches()
      case 'delivery':
        return this.delivery()
      case 'start':
        return this.restart()
    }
  }

  async steps(): Promise<readonly Figures[]> {
    try {
      this.state.startWith(this.reader(), null)
      await Promise.all([this.state.rematched(), this.state.loaded()])
      if (this.state.currentVersion() !== this.progress.version) await this.state.switchTo(this.reader(), [])
      for (const step of this.run.steps ?? STEPS) await this.perform(step)
      return this.lines
    } finally {
      await this.state.close()
      if (this.run.dir === undefined) rmSync(this.dir, { recursive: true, force: true })
    }
  }
}

const DEFAULT: Shape = { hosts: 2_000, packages: 800 }

/** Every line of a fleet. */
export const benchFleet = (run: Run = { shape: DEFAULT }) => new FleetBench(run).steps()

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { data: { type: 'string' }, only: { type: 'string' }, seconds: { type: 'string' } },
    allowPositionals: true,
  })
  const [hosts = DEFAULT.hosts, packages = DEFAULT.packages] = positionals.map(Number)
  const wanted = values.only?.split(',')
  await benchFleet({
    shape: { hosts, packages },
    ...(values.data !== undefined && { dir: values.data }),
    ...(wanted !== undefined && { steps: STEPS.filter(step => wanted.includes(step)) }),
    ...(values.seconds !== undefined && { fillSeconds: Number(values.seconds) }),
    onLine: line => console.log(JSON.stringify({ bench: 'security', part: 'fleet', ...line })),
  })
}
