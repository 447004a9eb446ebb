// Pulls a feed at the start, at every interval and on a reload call (document 2 "Rule sync on the collector"; decisions
// G-43, G-45). One pull runs at a time; a reload requested during a pull is answered by the next pull, because the
// running one may have read the hub too early.
import type { Logger } from 'pino'

/**
 * `applied`: the feed was read to its end and the result is in force. `unavailable`: the previous set stays in force.
 */
export type SyncResult = 'applied' | 'unavailable'

/** The result of a pull. After an error, set and cursor stay as they were. */
export type PullOutcome = { readonly error: string | null }

export type SyncStatus = {
  readonly feed: string
  readonly since: number
  readonly lastSyncAtMs: number | null
  readonly lastSyncError: string | null
}

type SyncLoopOptions = {
  readonly feed: string
  readonly intervalMs: number
  readonly pull: () => Promise<PullOutcome>
  readonly since: () => number
  /** The time of the last success before this start, from disk; 0 for none. */
  readonly syncedAtMs: number
  readonly log: Logger
  readonly nowMs: () => number
  readonly onSynced?: (atMs: number) => void
  readonly onError?: () => void
}

export class SyncLoop {
  private readonly options: SyncLoopOptions
  private timer: ReturnType<typeof setTimeout> | null = null
  private running: Promise<SyncResult> | null = null
  private next: Promise<SyncResult> | null = null
  private isStopped = false
  private lastSyncAtMs: number | null
  private lastError: string | null = null

  constructor(options: SyncLoopOptions) {
    this.options = options
    this.lastSyncAtMs = options.syncedAtMs > 0 ? options.syncedAtMs : null
  }

  /** Pulls once and goes on at every interval. Resolves with the result of the first pull. */
  start(): Promise<SyncResult> {
    return this.reload()
  }

  /** Pulls now: resolves once a pull that began after this call is applied, or has failed. */
  reload(): Promise<SyncResult> {
    if (this.isStopped) return Promise.resolve('unavailable')
    if (!this.running) return this.run()
    this.next ??= this.running.then(() => {
      this.next = null
      return this.run()
    })
    return this.next
  }

  status(): SyncStatus {
    return {
      feed: this.options.feed,
      since: this.options.since(),
      lastSyncAtMs: this.lastSyncAtMs,
      lastSyncError: this.lastError,
    }
  }

  /** Ends the loop after a running pull. */
  async stop(): Promise<void> {
    this.isStopped = true
    if (this.timer !== null) clearTimeout(this.timer)
    await this.running
  }

  private run(): Promise<SyncResult> {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    this.running ??= this.pullOnce().finally(() => {
      this.running = null
      if (!this.isStopped && this.timer === null)
        this.timer = setTimeout(() => void this.run(), this.options.intervalMs)
    })
    return this.running
  }

  private async pullOnce(): Promise<SyncResult> {
    const { feed, log } = this.options
    let error: string | null
    try {
      error = (await this.options.pull()).error
    } catch (cause) {
      log.error({ err: cause, feed }, 'cannot apply a feed of the hub')
      error = 'the feed could not be applied'
    }
    if (error === null) {
      if (this.lastError !== null) log.info({ feed }, 'a feed of the hub is read again')
      this.lastError = null
      this.lastSyncAtMs = this.options.nowMs()
      this.options.onSynced?.(this.lastSyncAtMs)
      return 'applied'
    }
    if (this.lastError !== error)
      log.warn({ feed, error }, 'cannot read a feed of the hub; what was read before stays in force')
    this.lastError = error
    this.options.onError?.()
    return 'unavailable'
  }
}
