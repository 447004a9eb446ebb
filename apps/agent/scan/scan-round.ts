// One scan and its delivery, as the running agent and `agent scan --send` do it.
import { promisify } from 'node:util'
import { zstdCompress } from 'node:zlib'
import type { Logger } from 'pino'
import { reportContentHash } from '../../../core/matching/report-content.ts'
import type { Report } from '../../../core/matching/report-schema.ts'
import { type AgentOptions, agentVersion } from '../config.ts'
import type { StateDir } from '../state/state-dir.ts'
import { collectReport } from './collect-report.ts'
import { packageDatabaseFiles } from './packages.ts'
import { RootFiles } from './root-files.ts'
import { ScanClient } from './scan-client.ts'
import { activeHost } from './scan-enrollment.ts'
import { ScanReporter, type ScanTarget } from './scan-reporter.ts'
import { ScanStore, type UnsentReport } from './scan-store.ts'
import { Slices } from './slices.ts'

type RoundParts = {
  readonly options: AgentOptions
  readonly dir: StateDir
  readonly log: Logger
  readonly now: () => number
  readonly random: () => number
  /** Aborts when the process stops. */
  readonly signal: AbortSignal
  /** `/` for this host, or the folder that another system lies below. */
  readonly root: string
}

const compress = promisify(zstdCompress)

/** What tells that packages, or the kernel that runs, may be others than at the last scan. */
type HostStamp = { readonly databaseStamp: string; readonly bootId: string; readonly changedAtMs: number }

export class ScanRound {
  readonly store: ScanStore
  readonly #parts: RoundParts
  readonly #files: RootFiles

  constructor(parts: RoundParts) {
    this.#parts = parts
    this.store = new ScanStore(parts.dir)
    this.#files = new RootFiles(parts.root)
  }

  /** Where reports go: by the keys of this host, else by what the collector said; null when nobody said anything. */
  target(): ScanTarget | null {
    const { matcherUrl, enrolCode } = this.#parts.options.scan
    const remote = this.#parts.options.allowRemoteConfig ? this.store.remote() : null
    const url = matcherUrl ?? remote?.matcherUrl ?? ''
    if (url === '') return null
    return { matcherUrl: url, code: enrolCode ?? remote?.enrolCode ?? '', isRemote: enrolCode === null }
  }

  async stamp(): Promise<HostStamp> {
    const stamps = await Promise.all(packageDatabaseFiles.map(path => this.#files.stamp(path)))
    const times = await Promise.all(packageDatabaseFiles.map(path => this.#files.modifiedAtMs(path)))
    const bootId = (await this.#files.text('/proc/sys/kernel/random/boot_id'))?.trim() ?? ''
    return { databaseStamp: stamps.join(), bootId, changedAtMs: Math.max(...times) }
  }

  async collect(): Promise<Report> {
    const { dir, now, root } = this.#parts
    return collectReport({
      root,
      stateDir: dir.isReadOnly ? null : dir.path,
      scannerVersion: agentVersion,
      nowMs: Math.round(now() + this.store.state().offsetMs),
      madeMachineId: () => dir.madeMachineId(),
    })
  }

  /**
   * Scans, enrolls when it must and delivers. `isOnlyNews`: a report that the matcher holds already is not sent.
   * Answers whether the matcher holds what was scanned.
   */
  async scanAndDeliver(target: ScanTarget, isOnlyNews = false): Promise<{ report: Report; isTaken: boolean }> {
    const { store } = this
    const { databaseStamp, bootId } = await this.stamp()
    const report = await this.collect()
    const slices = new Slices()
    const contentHash = reportContentHash(report)
    await slices.breathe()
    const isHeld = contentHash === store.state().heldHash
    store.update({ databaseStamp, bootId })
    if (isOnlyNews && isHeld) return { report, isTaken: true }
    const body = await compress(Buffer.from(JSON.stringify(report)))
    const unsent = { contentHash, machineIdHash: report.machine_id_hash, body, signedAtMs: null }
    if (activeHost(store.host()) !== null) {
      store.keepUnsent(unsent)
      // Until the matcher has answered: what is kept is tried again, and replaced by the next scan.
      store.update({ nextAtMs: this.#parts.now() + this.#parts.options.scan.intervalMs })
    }
    return { report, isTaken: await this.#reporter(target).deliver(unsent, report.os, target) }
  }

  /** Delivers a report that could not be sent before. */
  deliverAgain(unsent: UnsentReport, target: ScanTarget): Promise<boolean> {
    return this.#reporter(target).deliver(unsent, null, target)
  }

  #reporter({ matcherUrl }: ScanTarget): ScanReporter {
    const { options, log, now, random, signal } = this.#parts
    const { caPem, renewPeriodMs, scan } = options
    const client = new ScanClient({ matcherUrl, caPem, agentVersion, log, now, signal })
    const { intervalMs } = scan
    return new ScanReporter({ store: this.store, client, log, now, random, intervalMs, renewPeriodMs })
  }
}
