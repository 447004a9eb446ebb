// Sends the outbox to the hub in order (decision G-141): batches of at most 200. A batch is kept and sent again while
// the hub cannot take it, and halved when the hub refuses it; what becomes of a single event that is refused:
// refused-events.ts. An event that alone meets a server error of a hub that takes others is set aside
// (events-set-aside.ts). Runs in the main thread of a worker.
import pTimeout from 'p-timeout'
import type { Logger } from 'pino'
import { backoffMs } from '../../../../core/backoff.ts'
import { limits } from '../../../../core/limits.ts'
import { judgeBatch } from '../../../hub-link/events-kept-or-refused.ts'
import { describeResponse, type HubResponse } from '../../../hub-link/hub-connection.ts'
import type { HubClient } from '../../hub-link/hub-client.ts'
import type { OutboxRow, OutboxStore, SetAsideKey } from '../../store/outbox-store.ts'
import { type Patience, SetAside, usualPatience } from './events-set-aside.ts'
import { appendDeadLetter, settledEvents } from './refused-events.ts'

const BACKOFF = { startMs: 1_000, capMs: 60_000 }
/**
 * The wait after a batch that was not full: a batch costs hub and database about the same whether it carries one event
 * or twenty, and those of a storm come one after the other. An event that comes alone does not wait.
 */
const GATHER_MS = 30
/** The poll interval of the outbox, for events that no wake-up announced. */
const POLL_MS = 1000
const STOP_MAX_MS = 3000
/** The wait between the batches by which the event at fault is found. */
const SEARCH_MS = 100
/** How often the bound of the outbox is checked while the hub does not take events. */
const TRIM_MS = 10_000

/** The wait before the next step, 0 = at once; idle = the outbox is empty. */
type Step = { readonly waitMs: number; readonly isIdle: boolean }
const AGAIN: Step = { waitMs: 0, isIdle: false }
const GATHER: Step = { waitMs: GATHER_MS, isIdle: false }
const IDLE: Step = { waitMs: POLL_MS, isIdle: true }

type OutboxOptions = {
  readonly store: Pick<OutboxStore, 'nextEvents' | 'oldestEventOf' | 'removeEvents' | 'trimOutbox'>
  readonly hub: HubClient
  readonly log: Logger
  readonly deadLetterPath: string
  readonly nowMs: () => number
  readonly onSent: (result: 'accepted' | 'rejected' | 'dead_lettered', count: number) => void
  readonly onDropped: (count: number) => void
  /** How many alert keys and companies are set aside now. */
  readonly onSetAside: (count: number) => void
  readonly patience?: Patience
}

export class OutboxSender {
  private isStopping = false
  /**
   * The store may be closed: a response that comes now is ignored, and its events are sent again after the next start.
   */
  private isOver = false
  private wakeUp: (() => void) | null = null
  private isIdle = false
  private hasNews = false
  private running: Promise<void> = Promise.resolve()
  /** Failures in a row. */
  private failures = 0
  private trimAtMs = 0
  private readonly setAside: SetAside

  constructor(private readonly options: OutboxOptions) {
    this.setAside = new SetAside(options.patience ?? usualPatience, () => performance.now())
  }

  /** The alert keys, and whole companies, whose events are set aside. */
  get setAsideCount(): number {
    return this.setAside.count
  }

  start(): void {
    this.running = this.run()
  }

  /** Events were committed. */
  wake(): void {
    this.hasNews = true
    if (this.isIdle) this.wakeUp?.()
  }

  /** Sends once more, then ends; events that are left stay in the outbox. Waits at most STOP_MAX_MS for the hub. */
  async stop(): Promise<void> {
    this.isStopping = true
    this.wakeUp?.()
    await pTimeout(this.running, { milliseconds: STOP_MAX_MS, fallback: () => {} })
    this.isOver = true
  }

  private async run(): Promise<void> {
    while (!this.isStopping) {
      this.hasNews = false
      const { waitMs, isIdle } = await this.step()
      this.isIdle = isIdle
      if (waitMs > 0 && !(isIdle && this.hasNews) && !this.isStopping) await this.sleep(waitMs)
    }
    for (let step = AGAIN; !this.isOver && (step === AGAIN || step === GATHER); ) step = await this.step()
  }

  /** Sends once. A fault of this host (the disk is full) is logged and tried again like one of the hub. */
  private async step(): Promise<Step> {
    try {
      await this.trim()
      const due = this.setAside.due()
      return due ? await this.retry(due) : await this.sendNext(this.setAside.batchMax)
    } catch (error) {
      this.options.log.error({ err: error }, 'cannot work on the outbox; events are kept and sent later')
      return this.backOff(null)
    }
  }

  /** Keeps the outbox within its bound when the hub is unreachable for days. */
  private async trim(): Promise<void> {
    const { store, onDropped, log } = this.options
    const atMs = performance.now()
    if (atMs < this.trimAtMs) return
    this.trimAtMs = atMs + TRIM_MS
    const dropped = await store.trimOutbox(limits.outboxEventsMax)
    if (dropped === 0) return
    onDropped(dropped)
    log.error({ dropped, bound: limits.outboxEventsMax }, 'the outbox is full; the oldest events are given up')
  }

  private sleep(ms: number): Promise<void> {
    return new Promise(resolve => {
      const done = () => {
        clearTimeout(timer)
        this.wakeUp = null
        resolve()
      }
      const timer = setTimeout(done, ms)
      this.wakeUp = done
    })
  }

  /** Sends the oldest events. */
  private async sendNext(limit: number): Promise<Step> {
    const rows = await this.options.store.nextEvents(limit, this.setAside.skipped())
    if (rows.length === 0) return this.setAside.foundNothing() ? AGAIN : IDLE
    const answer = await this.options.hub.postEvents(rows.map(row => row.event))
    if (this.isOver) return IDLE
    const verdict = judgeBatch(answer)
    if (verdict === 'keep') return this.keep(rows, answer)
    this.recovered()
    if (verdict === 'delivered') {
      await this.applyVerdict(rows, answer)
      this.noteSetAside(this.setAside.delivered())
      if (rows.length < limit) return GATHER
    } else if (rows.length > 1) return this.sendNext(Math.ceil(rows.length / 2))
    else if (!(await this.deadLetter(rows[0]!, describeResponse(answer)))) {
      this.setAside.unkept(rows[0]!)
      this.options.onSetAside(this.setAside.count)
    }
    return AGAIN
  }

  private keep(rows: readonly OutboxRow[], answer: HubResponse): Step {
    if (!isServerError(answer)) this.setAside.unasked()
    else if (this.setAside.failed(rows)) return { waitMs: SEARCH_MS, isIdle: false }
    return this.backOff(answer)
  }

  /** Sends the oldest event of what was set aside, alone. */
  private async retry(key: SetAsideKey): Promise<Step> {
    const row = await this.options.store.oldestEventOf(key)
    if (!row) {
      this.release(key)
      return AGAIN
    }
    const answer = await this.options.hub.postEvents([row.event])
    if (this.isOver) return IDLE
    const verdict = judgeBatch(answer)
    if (verdict === 'keep') {
      this.setAside.retryFailed(key)
      return isServerError(answer) ? AGAIN : this.backOff(answer)
    }
    this.recovered()
    if (verdict === 'delivered') await this.applyVerdict([row], answer)
    else if (!(await this.deadLetter(row, describeResponse(answer)))) {
      this.setAside.retryFailed(key)
      return AGAIN
    }
    if ('companyId' in key) this.release(key)
    return AGAIN
  }

  private release(key: SetAsideKey): void {
    this.setAside.release(key)
    this.options.onSetAside(this.setAside.count)
    this.options.log.info({ set_aside: key }, 'the hub takes events that were set aside')
  }

  private noteSetAside(found: readonly SetAsideKey[]): void {
    if (found.length === 0) return
    this.options.onSetAside(this.setAside.count)
    for (const key of found)
      this.options.log.error(
        { set_aside: key },
        'the hub answers these events with a server error while it takes others: they are set aside, and tried again seldom',
      )
  }

  private recovered(): void {
    if (this.failures > 0) this.options.log.info('the hub takes events again')
    this.failures = 0
  }

  /** Removes accepted and rejected events from the outbox; logs and counts the rejected ones. */
  private async applyVerdict(rows: readonly OutboxRow[], answer: HubResponse): Promise<void> {
    const { store, log, onSent } = this.options
    const { refused, settled, isNamed } = settledEvents(rows, answer)
    for (const { row, reason } of refused)
      log.warn({ event_id: row.event.event_id, reason }, 'the hub rejected an event')
    if (settled.length < rows.length)
      log.warn({ count: rows.length - settled.length }, 'the hub passed over events of a batch; they are sent again')
    if (!isNamed) log.warn({ count: rows.length }, 'the hub took a batch of events and named none of them')
    await store.removeEvents(settled.map(row => row.id))
    if (refused.length < settled.length) onSent('accepted', settled.length - refused.length)
    if (refused.length > 0) onSent('rejected', refused.length)
  }

  /** `answer` null: the fault is not the hub's, and has been logged. */
  private backOff(answer: HubResponse | null): Step {
    const wantedMs = answer?.kind === 'refused' ? (answer.retryAfterSeconds ?? 0) * 1000 : 0
    if (answer && this.failures === 0)
      this.options.log.warn(
        { cause: describeResponse(answer) },
        'cannot give events to the hub; they are kept and sent later',
      )
    this.failures++
    return { waitMs: Math.max(backoffMs(BACKOFF, this.failures), wantedMs), isIdle: false }
  }

  /** False: the file cannot be written, and the event stays in the outbox. */
  private async deadLetter(row: OutboxRow, cause: string): Promise<boolean> {
    const { store, log, onSent, deadLetterPath, nowMs } = this.options
    try {
      appendDeadLetter(deadLetterPath, row, cause, nowMs())
    } catch (error) {
      log.error(
        { err: error, event_id: row.event.event_id, cause },
        'the hub will not take an event, and the dead-letter file cannot be written: its alert waits, others are told',
      )
      return false
    }
    log.error(
      { event_id: row.event.event_id, type: row.event.type, cause },
      'the hub will not take an event; it is in the dead-letter file',
    )
    await store.removeEvents([row.id])
    onSent('dead_lettered', 1)
    return true
  }
}

const isServerError = (answer: HubResponse): boolean => answer.kind === 'refused' && answer.status >= 500
