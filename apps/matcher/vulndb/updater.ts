// Keeps the database of a running matcher new (MAT-061, 062, 064, 255): fetches at intervals with jitter, fetches a
// distribution's source once a host of it reported, tries failed sources again ever later, and tells whenever another
// version is in use, also when a command of this host made it.
import { type DatabaseVersion, DatabaseVersions, ImportRunning } from './database-versions.ts'
import { FETCH_DEFAULTS } from './fetch-file.ts'
import { type DatabaseStatus, databaseStatus } from './status.ts'
import { importBundle, type UpdateResult, update } from './update.ts'
import { updateWaitMs } from './update-schedule.ts'
import { roundsOf, wantedSources } from './wanted-sources.ts'

/** What of a logger is used. */
type Log = {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

type UpdaterOptions = {
  readonly folder: string
  /** `db.sources`: `auto`, or the names of what is fetched. */
  readonly sources: 'auto' | readonly string[]
  /** Ids of os-release of the hosts that have reported; asked again and again while `auto`. */
  readonly distros: () => readonly string[]
  /** Sources that `auto` fetches beside those of distributions. */
  readonly referenceSources: readonly string[]
  /** `db.update_interval`; null is `off`: nothing is fetched unless `updateNow` is called. */
  readonly intervalMs: number | null
  readonly mirror: string | null
  readonly sourceBytesMax: number
  /** How this executable is started again for an import: `importCommand()`. */
  readonly command: readonly string[]
  readonly now: () => number
  readonly random: () => number
  readonly log: Log
  /** The version now in use, and the one before while its file is there. Called one at a time. */
  readonly onSwitch: (version: DatabaseVersion, previous: DatabaseVersion | null) => void | Promise<void>
  /** Sources could not be taken; told once as long as the reasons are the same. */
  readonly onFaults?: () => void
  /** Seconds that an import took, by source. */
  readonly onImported?: (source: string, seconds: number) => void
}

/** What the updater does now; `bundle` is a source too. */
type Progress = { readonly state: 'fetching' | 'importing'; readonly source: string; readonly records: number }

type UpdaterStatus = DatabaseStatus & {
  readonly update: {
    readonly state: 'idle' | Progress['state']
    /** What is being fetched or imported, and how many records of it so far. */
    readonly source: string | null
    readonly records: number
    /** Why the last update took nothing, or not all; null when nothing is wrong. */
    readonly fault: string | null
    readonly next_at_ms: number | null
  }
}

const POLL_MS = 2_000
const BUSY_MS = 30_000
/** How often the log hears of an import that goes on. */
const SAID_MS = 10_000
const BUNDLE = 'bundle'
const IMPORT = 'import'
const FAULT_CHARS_MAX = 500

const without = (faults: Readonly<Record<string, string>>, sources: readonly string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(faults).filter(([source]) => !sources.includes(source)))

/** A line for people: `debian: it answers 404`. What holds of several sources is said once. */
function faultText(faults: Readonly<Record<string, string>>): string | null {
  const sourcesByReason = Map.groupBy(Object.keys(faults), source => faults[source] ?? '')
  const lines = Array.from(sourcesByReason, ([reason, sources]) => `${sources.join(', ')}: ${reason}`)
  return lines.length === 0 ? null : lines.join('; ').slice(0, FAULT_CHARS_MAX)
}

export class Updater {
  private readonly folder: DatabaseVersions
  private readonly abort = new AbortController()
  private timer: ReturnType<typeof setInterval> | undefined
  private used: DatabaseVersion | null = null
  private nextAtMs: number | null = null
  private failures = 0
  private saidFaults = ''
  /** The version that could not be switched to, as far as it was told. */
  private failedVersion = 0
  private running: Promise<void> | null = null
  private switching: Promise<void> = Promise.resolve()
  private progress: Progress | null = null
  private saidAtMs = 0
  /** Source → why it was not taken at its last turn; `import` and `bundle` are sources too. */
  private faults: Readonly<Record<string, string>> = {}
  /** Sources that an update has asked for since the start: a new distribution is fetched at once, and once. */
  private readonly asked = new Set<string>()

  constructor(private readonly options: UpdaterOptions) {
    this.folder = new DatabaseVersions(options.folder)
  }

  /** The version in use now, to open before `start`; from then on `onSwitch` tells of others. */
  current(): DatabaseVersion | null {
    this.used = this.folder.current()
    return this.used
  }

  start(): void {
    const { intervalMs } = this.options
    this.cleanFolder()
    if (intervalMs !== null) {
      const { checkedAtMs } = this.folder.notes()
      const isFresh = this.used !== null && checkedAtMs > 0
      this.nextAtMs = isFresh ? checkedAtMs + updateWaitMs(0, intervalMs, this.options.random()) : this.options.now()
    }
    this.timer = setInterval(() => this.poll(), POLL_MS)
    this.poll()
  }

  /** What is left stays without harm: it only takes room. */
  private cleanFolder(): void {
    try {
      this.folder.cleanUnlessBusy()
    } catch (error) {
      this.options.log.warn({ err: error }, 'cannot remove leftovers of the vulnerability database')
    }
  }

  /** Ends what runs; an import that is cut short leaves the version in use as it is. */
  async stop(): Promise<void> {
    clearInterval(this.timer)
    this.abort.abort()
    await this.running
    await this.switching
  }

  status(): UpdaterStatus {
    const database = databaseStatus(this.folder, this.options.now())
    const ofSources = database.sources.flatMap(({ name, fault }) => (fault === null ? [] : [[name, fault]]))
    return {
      ...database,
      update: {
        state: this.progress?.state ?? 'idle',
        source: this.progress?.source ?? null,
        records: this.progress?.records ?? 0,
        fault: faultText({ ...Object.fromEntries(ofSources), ...this.faults }),
        next_at_ms: this.nextAtMs,
      },
    }
  }

  /** Fetches everything that is wanted now; joins an update that runs. */
  async updateNow(): Promise<void> {
    this.begin(this.wanted())
    await this.running
    await this.switching
  }

  /** Takes a bundle (MAT-253). Throws with the reason when it is refused. */
  async importFile(bundleFile: string, publicKeyPem: string | null): Promise<DatabaseVersion> {
    const { command, now, sourceBytesMax } = this.options
    const { folder } = this
    const request = { folder, bundleFile, publicKeyPem, bytesMax: sourceBytesMax, isForced: false, command, now }
    this.tell({ state: 'importing', source: BUNDLE, records: 0 })
    try {
      const version = await importBundle(request)
      this.faults = without(this.faults, [BUNDLE])
      await this.noticeSwitch()
      return version
    } catch (error) {
      this.faults = { ...this.faults, [BUNDLE]: error instanceof Error ? error.message : 'failed' }
      throw error
    } finally {
      this.progress = null
    }
  }

  private wanted(): string[] {
    const { sources, distros, referenceSources } = this.options
    return sources === 'auto' ? wantedSources(distros(), referenceSources) : [...sources]
  }

  private poll(): void {
    void this.noticeSwitch()
    if (this.running !== null || this.options.intervalMs === null || this.abort.signal.aborted) return
    const wanted = this.wanted()
    const fresh = wanted.filter(source => !this.asked.has(source))
    const isDue = this.nextAtMs !== null && this.options.now() >= this.nextAtMs
    if (wanted.length === 0 || (!isDue && !this.lacksAny(fresh))) return
    this.begin(isDue ? wanted : fresh)
  }

  private begin(wanted: readonly string[]): void {
    this.running ??= this.updateAll(wanted).then(() => {
      this.running = null
    })
  }

  /** Whether the database has nothing of one of these yet. */
  private lacksAny(sources: readonly string[]): boolean {
    if (sources.length === 0) return false
    const had = new Set(databaseStatus(this.folder, this.options.now()).sources.map(({ name }) => name))
    const lacking = sources.filter(source => !had.has(source))
    for (const source of sources) if (had.has(source)) this.asked.add(source)
    return lacking.length > 0
  }

  private async updateAll(wanted: readonly string[]): Promise<void> {
    for (const source of wanted) this.asked.add(source)
    try {
      let isFailed = false
      for (const round of roundsOf(wanted)) {
        const result = await this.updateRound(round)
        isFailed ||= Object.keys(result.faults).length > 0
        await this.noticeSwitch()
      }
      this.failures = isFailed ? this.failures + 1 : 0
      this.schedule()
    } catch (error) {
      if (error instanceof ImportRunning) this.nextAtMs = this.options.now() + BUSY_MS
      else {
        this.failures += 1
        this.schedule()
        this.sayFaults({ ...this.faults, [IMPORT]: error instanceof Error ? error.message : 'failed' })
      }
    } finally {
      this.progress = null
    }
  }

  private async updateRound(sources: readonly string[]): Promise<UpdateResult> {
    const { mirror, command, now, sourceBytesMax, onImported, log } = this.options
    if (this.used === null && this.failures === 0)
      log.info({ sources }, 'the first vulnerability database is being fetched')
    const result = await update({
      folder: this.folder,
      wanted: sources.map(source => ({ source, from: null })),
      acceptShrink: false,
      mirror,
      fetch: { ...FETCH_DEFAULTS, bytesMax: sourceBytesMax, signal: this.abort.signal },
      command,
      now,
      onFetch: source => this.tell({ state: 'fetching', source, records: 0 }),
      onProgress: (source, records) => this.tell({ state: 'importing', source, records }),
    })
    if (this.abort.signal.aborted) return { ...result, faults: {} }
    for (const { source, records, rejected, seconds, fault } of result.sources) {
      if (fault !== null) continue
      onImported?.(source, seconds)
      log.info({ source, records, rejected, seconds }, 'a source of the vulnerability database was imported')
    }
    this.sayFaults({ ...without(this.faults, [...sources, IMPORT]), ...result.faults })
    return result
  }

  /** Notes what is done now; of the first database the log is told too: nothing is found before it is there. */
  private tell(next: Progress): void {
    const { log, now } = this.options
    const before = this.progress
    this.progress = next
    if (this.used !== null || this.failures > 0) return
    const isSame = before?.state === next.state && before.source === next.source
    if (isSame && Math.abs(now() - this.saidAtMs) < SAID_MS) return
    this.saidAtMs = now()
    log.info(next, 'the vulnerability database is on its way')
  }

  private schedule(): void {
    const { intervalMs, now, random } = this.options
    if (intervalMs !== null) this.nextAtMs = now() + updateWaitMs(this.failures, intervalMs, random())
  }

  /** One line a change: a source that goes on failing for the same reason is not told again (MAT-255). */
  private sayFaults(faults: Readonly<Record<string, string>>): void {
    const text = JSON.stringify(faults)
    this.faults = faults
    if (text === this.saidFaults) return
    const isMended = Object.keys(faults).length === 0
    if (!isMended) {
      this.options.log.warn({ faults }, 'sources of the vulnerability database were not taken; what was there stays')
      this.options.onFaults?.()
    } else if (this.saidFaults !== '') this.options.log.info({}, 'all sources of the vulnerability database were taken')
    this.saidFaults = isMended ? '' : text
  }

  /** Tells of another version in use, whoever made it; one after the other. */
  private async noticeSwitch(): Promise<void> {
    this.switching = this.switching.then(async () => {
      const current = this.folder.current()
      if (current === null || current.version === this.used?.version) return
      const before = this.used
      const previous = before !== null && (await Bun.file(before.file).exists()) ? before : null
      try {
        await this.options.onSwitch(current, previous)
        this.used = current
        this.options.log.info(
          { db_version: current.version },
          'another version of the vulnerability database is in use',
        )
      } catch (error) {
        // Tried again at every look, told once.
        if (this.failedVersion !== current.version)
          this.options.log.error(
            { err: error, db_version: current.version },
            'cannot switch to the vulnerability database',
          )
        this.failedVersion = current.version
      }
    })
    await this.switching
  }
}
