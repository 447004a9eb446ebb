// The vulnerability database of a running matcher: the updater makes versions or notices those that commands made, and
// the state matches with them from then on (MAT-061, MAT-071).
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { type MatcherConfig, updateIntervalMs } from './config.ts'
import { noDatabase } from './no-database.ts'
import type { AdvisoryKey, MatcherState } from './state/state-types.ts'
import type { MatcherMetrics } from './telemetry.ts'
import { type DatabaseVersion, DatabaseVersions } from './vulndb/database-versions.ts'
import { importCommand } from './vulndb/import/run-import.ts'
import { changedKeys, changedKeysOfOpen, type OpenAdvisories, openAdvisories } from './vulndb/reader.ts'
import { Updater } from './vulndb/updater.ts'
import { REFERENCE_SOURCES } from './vulndb/wanted-sources.ts'

/** Where the database files of a matcher are. */
export const databaseFolder = (dataDir: string): string => join(dataDir, 'vulndb')

type LinkParts = {
  readonly config: MatcherConfig
  readonly state: MatcherState
  readonly metrics: MatcherMetrics
  readonly log: Logger
  readonly nowMs: () => number
  /** Sources could not be taken. */
  readonly onFaults?: () => void
}

const sourcesOf = (config: MatcherConfig): 'auto' | readonly string[] =>
  config['db.sources'].includes('auto') ? 'auto' : config['db.sources']

export class DatabaseLink {
  readonly updater: Updater
  private current: OpenAdvisories | null
  private currentFile: string | null
  /** When the import was whose rejected records are counted, by source. */
  private readonly countedImports = new Map<string, number>()

  /** Opens the version that the state has in use, and tells the state of it. */
  constructor(private readonly parts: LinkParts) {
    const { config, state, metrics, log, nowMs } = parts
    const folder = new DatabaseVersions(databaseFolder(config.data_dir))
    this.currentFile = fileOf(folder, state.currentVersion())
    this.current = this.open(this.currentFile)
    const other = this.current === null ? null : folder.other()
    const previous = other === null || other.version === this.current?.version ? null : this.open(other.file)
    state.startWith(this.current ?? noDatabase, previous)
    this.closeWhenMatched(previous)
    this.updater = new Updater({
      folder: folder.path,
      sources: sourcesOf(config),
      distros: () => state.distrosSeen(),
      referenceSources: REFERENCE_SOURCES,
      intervalMs: updateIntervalMs(config),
      mirror: config['db.mirror'],
      sourceBytesMax: config['db.source_max_bytes'],
      command: importCommand(),
      now: nowMs,
      random: Math.random,
      log,
      onFaults: () => parts.onFaults?.(),
      onSwitch: version => this.use(version),
      onImported: (source, seconds) => metrics.dbImport.set({ source }, seconds),
    })
    // What the folder names and the state does not use yet is noticed at the first look.
    if (folder.current()?.version === this.current?.version) this.updater.current()
    this.updater.start()
    metrics.onScrape(() => this.show())
  }

  /** The version in use; 0 without one, whatever the state was matched with last (MAT-070). */
  get version(): number {
    return this.current?.version ?? 0
  }

  /** Starts an update now, unless one is running. */
  update(): void {
    this.updater.updateNow().catch(error => this.parts.log.error({ err: error }, 'cannot update the database'))
  }

  /** Ends what runs. The reader stays until `close`, after the state has closed. */
  stop(): Promise<void> {
    return this.updater.stop()
  }

  close(): void {
    this.current?.close()
  }

  private open(file: string | null): OpenAdvisories | null {
    if (file === null) return null
    try {
      return openAdvisories(file)
    } catch (error) {
      this.parts.log.error({ err: error }, 'cannot open a vulnerability database')
      return null
    }
  }

  private async use(version: DatabaseVersion): Promise<void> {
    const { state, log } = this.parts
    if (version.version === this.current?.version) return
    const before = this.current
    const next = openAdvisories(version.file)
    try {
      // Where there was none, every host is matched: the support of its release has changed.
      const changed = before === null ? [] : this.changedSince(before, next, version)
      await state.switchTo(next, changed)
    } catch (error) {
      next.close()
      throw error
    }
    this.current = next
    this.currentFile = version.file
    this.closeWhenMatched(before)
    void state.rematched().then(() => {
      const { dbVersion, keys, hostsRead, hostsChanged, lastSeconds } = state.rematch()
      const counts = { keys, hosts_read: hostsRead, hosts_changed: hostsChanged, seconds: lastSeconds }
      log.info({ db_version: dbVersion, ...counts }, 're-match')
    })
  }

  private changedSince(before: OpenAdvisories, next: OpenAdvisories, version: DatabaseVersion): Iterable<AdvisoryKey> {
    const file = this.currentFile
    return file !== null && existsSync(file) ? changedKeys(file, version.file) : changedKeysOfOpen(before, next)
  }

  private closeWhenMatched(reader: OpenAdvisories | null): void {
    if (reader) void this.parts.state.rematched().then(() => reader.close())
  }

  private show(): void {
    const { metrics } = this.parts
    const { sources } = this.updater.status()
    metrics.dbVersion.set(this.version)
    for (const { name: source, age_seconds, fetched_at_ms, records, rejected, fault } of sources) {
      metrics.dbAge.set({ source }, fetched_at_ms === 0 ? -1 : age_seconds)
      metrics.dbFault.set({ source }, fault === null ? 0 : 1)
      metrics.dbRecords.set({ source }, records)
      if (this.countedImports.get(source) === fetched_at_ms) continue
      metrics.dbRejected.inc({ source }, rejected)
      this.countedImports.set(source, fetched_at_ms)
    }
  }
}

function fileOf(folder: DatabaseVersions, version: number): string | null {
  const file = version > 0 ? folder.fileOf(version) : null
  return file !== null && existsSync(file) ? file : null
}
