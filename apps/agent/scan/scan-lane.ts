// The scanning of a running agent, beside its sampling and its talk with the collector: when packages are scanned and
// reported (MAT-002, MAT-025, MAT-043). Without an address of a matcher it waits for one and touches nothing (MAT-046).
import { changedReportAtMs, regularReportAtMs, scanRetryMs, WATCH_MS } from '../../../core/agent/scan-schedule.ts'
import { DAY_MS } from '../../../core/limits.ts'
import type { AgentParts } from '../agent-parts.ts'
import { Alarm } from '../clock.ts'
import { SCAN_LOCK, StateLock } from '../state/state-lock.ts'
import { collectorUrlFault } from '../transport/collector-address.ts'
import { activeHost, canEnroll } from './scan-enrollment.ts'
import type { ScanTarget } from './scan-reporter.ts'
import { ScanRound } from './scan-round.ts'
import type { ScanState } from './scan-store.ts'

/** Between two rounds, whatever the first one left behind. */
const ROUND_PAUSE_MS = 1_000
/** While the command line scans. */
const LOCKED_RETRY_MS = 10_000

type LaneParts = Pick<AgentParts, 'options' | 'log' | 'clock' | 'random' | 'dir' | 'status' | 'settings'>

export class ScanLane {
  readonly #parts: LaneParts
  readonly #round: ScanRound
  readonly #alarm = new Alarm()
  readonly #stop = new AbortController()
  #isStart = true
  #changed = Promise.withResolvers<void>()

  /** `root` is another folder in tests only. */
  constructor(parts: LaneParts, root = '/') {
    const { options, dir, log, clock, random } = parts
    this.#parts = parts
    this.#round = new ScanRound({ options, dir, log, now: () => clock.now(), random, signal: this.#stop.signal, root })
    parts.settings.onChange(() => this.#takeRemote())
  }

  stop(): void {
    this.#stop.abort()
    this.#wake()
  }

  /** Runs until `stop`. Never rejects: what goes wrong is tried again. */
  async run(): Promise<void> {
    const { clock } = this.#parts
    this.#takeRemote()
    while (!this.#stop.signal.aborted) {
      const target = this.#round.target()
      if (target === null) {
        await this.#changed.promise
        continue
      }
      const waitMs = (await this.#dueAtMs(target)) - clock.now()
      this.#isStart = false
      if (waitMs <= 0) await this.#runRound(target)
      await this.#alarm.wait(clock, Math.min(Math.max(waitMs, ROUND_PAUSE_MS), WATCH_MS))
    }
  }

  #wake(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
    this.#alarm.ring()
  }

  /** Keeps what the collector says of scanning. What it leaves out changes nothing (MAT-047). */
  #takeRemote(): void {
    const { settings, status, log } = this.#parts
    const offered = settings.offeredScan
    if (offered === null) return
    const { matcherUrl, enrolCode } = offered
    const isUsable = matcherUrl === '' || (collectorUrlFault(matcherUrl) === null && matcherUrl.startsWith('https://'))
    status.warn('scan', isUsable ? [] : ['remote config: scan.matcher_url must be https: it is not taken over'])
    if (!isUsable) return
    const known = this.#round.store.remote()
    const remote = {
      matcherUrl: matcherUrl || (known?.matcherUrl ?? ''),
      enrolCode: enrolCode || (known?.enrolCode ?? ''),
    }
    if (remote.matcherUrl === known?.matcherUrl && remote.enrolCode === known.enrolCode) return
    try {
      this.#round.store.keepRemote(remote)
    } catch (error) {
      log.error({ cause: causeOf(error) }, 'cannot keep what the collector says of scanning')
    }
    this.#wake()
  }

  /** When the next round is due; infinite when only another code, or a new enrollment, would change anything. */
  async #dueAtMs(target: ScanTarget): Promise<number> {
    const { clock, options } = this.#parts
    const { intervalMs } = options.scan
    const { store } = this.#round
    const nowMs = clock.now()
    const state = store.state()
    const host = store.host()
    // A clock that was set back must not hold anything off for ever.
    const retryAtMs = state.retryAtMs === null ? null : Math.min(state.retryAtMs, nowMs + DAY_MS)
    if (activeHost(host) === null) {
      if (canEnroll(host, target.code, state.refusedCodeHash)) return retryAtMs ?? nowMs
      if (state.reason === null) store.update({ reason: 'not_enrolled' })
      return host?.refused === 'machine_changed' ? (state.nextAtMs ?? nowMs) : Number.POSITIVE_INFINITY
    }
    if (retryAtMs !== null) return retryAtMs
    if (store.unsent() !== null) return nowMs
    const regularAtMs = regularReportAtMs(state, intervalMs, nowMs)
    const isOverdue = this.#isStart && regularReportAtMs({ ...state, nextAtMs: null }, intervalMs, nowMs) <= nowMs
    return isOverdue ? nowMs : Math.min(regularAtMs, await this.#changedAtMs(state, nowMs))
  }

  /** When changed packages, or another start of the host, are to be reported; infinite when nothing changed. */
  async #changedAtMs(state: ScanState, nowMs: number): Promise<number> {
    if (state.databaseStamp === '') return Number.POSITIVE_INFINITY
    const { databaseStamp, bootId, changedAtMs } = await this.#round.stamp()
    if (databaseStamp !== state.databaseStamp) return changedReportAtMs(state, changedAtMs, nowMs)
    return bootId === state.bootId ? Number.POSITIVE_INFINITY : changedReportAtMs(state, 0, nowMs)
  }

  async #runRound(target: ScanTarget): Promise<void> {
    const { clock, dir, log, random } = this.#parts
    let lock: StateLock
    try {
      lock = new StateLock(dir, SCAN_LOCK)
    } catch (error) {
      log.debug({ cause: causeOf(error) }, 'cannot scan now')
      await this.#alarm.wait(clock, LOCKED_RETRY_MS)
      return
    }
    const { store } = this.#round
    try {
      await this.#scanOrRetry(target)
    } catch (error) {
      const failures = store.state().failures + 1
      const waitMs = scanRetryMs(failures, random(), LOCKED_RETRY_MS)
      store.update({ lastError: causeOf(error), failures, retryAtMs: clock.now() + waitMs })
      log.error({ cause: causeOf(error), wait_ms: waitMs }, 'cannot scan')
    } finally {
      lock.release()
    }
  }

  async #scanOrRetry(target: ScanTarget): Promise<void> {
    const { clock, options } = this.#parts
    const { store } = this.#round
    const nowMs = clock.now()
    const state = store.state()
    const unsent = store.unsent()
    const isRegular = regularReportAtMs(state, options.scan.intervalMs, nowMs) <= nowMs
    if (activeHost(store.host()) !== null && unsent !== null && !isRegular) {
      await this.#round.deliverAgain(unsent, target)
      return
    }
    await this.#round.scanAndDeliver(target, !isRegular && state.failures === 0)
  }
}

const causeOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
