// Sends the outbox to the hub in order (decision G-141): batches of at most 200, kept and tried again while the hub cannot take them,
// halved where it refuses a batch, a single bad event written to a dead-letter file. Runs in the main thread of a worker.
import { appendFileSync } from 'node:fs'
import type { Logger } from 'pino'
import { limits } from '../../../core/limits.ts'
import { describeAnswer, type HubAnswer, type HubClient } from '../hub-link/hub-client.ts'
import type { EvaluationStore, OutboxRow } from '../store/evaluation-store.ts'

const BACKOFF_START_MS = 1000
const BACKOFF_CAP_MS = 60_000
/** Events may also come from a thread that could not say so: the outbox is looked at this often. */
const LOOK_MS = 1000

export type OutboxOptions = {
  readonly store: EvaluationStore
  readonly hub: HubClient
  readonly log: Logger
  readonly deadLetterPath: string
  readonly nowMs: () => number
  readonly onSent: (result: 'accepted' | 'rejected' | 'dead_lettered', count: number) => void
  readonly onDropped: (count: number) => void
}

export class Outbox {
  private isStopping = false
  private wakeUp: (() => void) | null = null
  private hasNews = false
  private running: Promise<void> = Promise.resolve()
  private backoffMs = 0

  constructor(private readonly options: OutboxOptions) {}

  start(): void {
    this.running = this.run()
  }

  /** Events were committed. */
  wake(): void {
    this.hasNews = true
    if (this.backoffMs === 0) this.wakeUp?.()
  }

  /** Sends what can be sent once more, then ends; what is left stays on disk. */
  async stop(): Promise<void> {
    this.isStopping = true
    this.wakeUp?.()
    await this.running
  }

  private async run(): Promise<void> {
    while (!this.isStopping) {
      this.hasNews = false
      const waitMs = await this.sendNext(limits.eventsPerRequest)
      if (waitMs === 0) continue
      if (waitMs === LOOK_MS && this.hasNews) continue
      await this.sleep(waitMs)
    }
    while ((await this.sendNext(limits.eventsPerRequest)) === 0);
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

  /** Sends the oldest events. Returns how long to wait before the next look, 0 = look again at once. */
  private async sendNext(limit: number): Promise<number> {
    const { store, onDropped, log } = this.options
    const dropped = store.trimOutbox(limits.outboxEventsMax)
    if (dropped > 0) {
      onDropped(dropped)
      log.error({ dropped, bound: limits.outboxEventsMax }, 'the outbox is full; the oldest events are given up')
    }
    const rows = store.nextEvents(limit)
    if (rows.length === 0) return LOOK_MS
    const answer = await this.options.hub.postEvents(rows.map(row => row.event))
    const verdict = judge(answer)
    if (verdict === 'delivered' && answer.kind === 'ok') {
      this.recovered()
      this.settle(rows, answer.data.rejected)
      return 0
    }
    if (verdict === 'keep') return this.backOff(answer)
    this.recovered()
    if (rows.length === 1) {
      this.deadLetter(rows[0]!, describeAnswer(answer))
      return 0
    }
    return this.sendNext(Math.ceil(rows.length / 2))
  }

  private recovered(): void {
    if (this.backoffMs > 0) this.options.log.info('the hub takes events again')
    this.backoffMs = 0
  }

  /** Accepted and rejected events leave the outbox; rejected ones are logged and counted. */
  private settle(rows: readonly OutboxRow[], rejected: unknown): void {
    const { store, log, onSent } = this.options
    const refused = Array.isArray(rejected) ? rejected : []
    for (const entry of refused)
      log.warn({ event_id: textOf(entry, 'event_id'), reason: textOf(entry, 'reason') }, 'the hub rejected an event')
    store.removeEvents(rows.map(row => row.id))
    onSent('accepted', rows.length - refused.length)
    if (refused.length > 0) onSent('rejected', refused.length)
  }

  private backOff(answer: HubAnswer): number {
    const wanted = answer.kind === 'refused' ? (answer.retryAfterSeconds ?? 0) * 1000 : 0
    if (this.backoffMs === 0)
      this.options.log.warn(
        { cause: describeAnswer(answer) },
        'cannot give events to the hub; they are kept and sent later',
      )
    this.backoffMs = Math.min(BACKOFF_CAP_MS, this.backoffMs === 0 ? BACKOFF_START_MS : this.backoffMs * 2)
    return Math.max(this.backoffMs, wanted)
  }

  private deadLetter(row: OutboxRow, cause: string): void {
    const { store, log, onSent, deadLetterPath, nowMs } = this.options
    const line = JSON.stringify({ at: new Date(nowMs()).toISOString(), cause, event: row.event })
    appendFileSync(deadLetterPath, `${line}\n`, { mode: 0o600 })
    log.error(
      { event_id: row.event.event_id, type: row.event.type, cause },
      'the hub will not take an event; it is in the dead-letter file',
    )
    store.removeEvents([row.id])
    onSent('dead_lettered', 1)
  }
}

/** `refused`: this batch, or something in it, will never be taken as it is. */
function judge(answer: HubAnswer): 'delivered' | 'keep' | 'refused' {
  if (answer.kind === 'ok') return 'delivered'
  if (answer.kind === 'unreachable') return 'keep'
  const { status } = answer
  return status >= 500 || status === 429 || status === 401 || status === 403 || status === 408 ? 'keep' : 'refused'
}

function textOf(entry: unknown, field: string): string {
  if (typeof entry !== 'object' || entry === null) return ''
  const value = (entry as Record<string, unknown>)[field]
  return typeof value === 'string' ? value : ''
}
