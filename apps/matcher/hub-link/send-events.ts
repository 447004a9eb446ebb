// Sends the outbox to the hub (MAT-163 to MAT-170): a company's batches one after the other, at most four companies
// side by side. A batch is sent again, whole and in its order, while the hub cannot take it, and halved when the hub
// refuses it, until the faulty event stands alone.
import pTimeout from 'p-timeout'
import type { Logger } from 'pino'
import { assert } from '../../../core/assert.ts'
import { backoffMs } from '../../../core/backoff.ts'
import { isObject } from '../../../core/json-object.ts'
import type { SecurityEvent } from '../../../core/matching/finding-event.ts'
import { judgeBatch } from '../../hub-link/events-kept-or-refused.ts'
import { describeResponse, type HubResponse } from '../../hub-link/hub-connection.ts'
import type { EventBatch, MatcherState } from '../state/state-types.ts'
import { isOwnRefusal, type MatcherHub, UNAUTHORIZED_HOLD_MS } from './matcher-hub.ts'

const BACKOFF = { startMs: 1_000, capMs: 5 * 60_000 }
const COMPANIES_AT_ONCE = 4
/** Events that nothing told of, as after a fault of the disk, are looked for this often. */
const POLL_MS = 5_000
const STOP_MAX_MS = 3_000
const REJECTED_LOG_PERIOD_MS = 3_600_000
const REASONS_MAX = 100

type Dead = { readonly eventId: string; readonly reason: string }

/** What is under way for a company: a batch, the parts of it that are not delivered, and what the hub will not take. */
type Lane = {
  batch: EventBatch | null
  parts: (readonly SecurityEvent[])[]
  dead: Dead[]
  /** Ids of events that the hub rejected as of another server than it knows. */
  unknownServer: string[]
  failures: number
  retryAtMs: number
  isBusy: boolean
  /** Called when the request under way has ended. */
  whenIdle: (() => void)[]
}

type SenderOptions = {
  readonly state: Pick<MatcherState, 'companiesWaiting' | 'nextBatch' | 'isCurrent' | 'settle' | 'onWaiting'>
  readonly hub: Pick<MatcherHub, 'eventsTurn' | 'postEvents'>
  readonly log: Logger
  readonly onRejected: (reason: string) => void
  /** The hub knows another server of a host than the feed has told. */
  readonly onFeedBehind: () => void
  /** All that waited is settled. */
  readonly onEmpty: () => void
  /** For waits; performance.now() but in tests. */
  readonly clockMs?: () => number
  readonly random?: () => number
}

export class EventSender {
  private readonly lanes = new Map<string, Lane>()
  private readonly toldAtMs = new Map<string, number>()
  private heldUntilMs = 0
  private busy = 0
  private timer: ReturnType<typeof setTimeout> | null = null
  private isStopped = false
  private isOver = false
  private onIdle: (() => void) | null = null

  constructor(private readonly options: SenderOptions) {}

  start(): void {
    this.options.state.onWaiting(() => this.advance())
    this.advance()
  }

  /** An operator has read the configuration anew: what was refused or could not be delivered is tried at once. */
  release(): void {
    this.heldUntilMs = 0
    for (const lane of this.lanes.values()) lane.retryAtMs = 0
    this.advance()
  }

  /** Waits for the answers that are under way; what is not delivered stays in the outbox. */
  async stop(): Promise<void> {
    this.isStopped = true
    if (this.timer !== null) clearTimeout(this.timer)
    if (this.busy === 0) {
      this.isOver = true
      return
    }
    const idle = new Promise<void>(resolve => {
      this.onIdle = resolve
    })
    await pTimeout(idle, { milliseconds: STOP_MAX_MS, fallback: () => {} })
    this.isOver = true
  }

  /** Resolves when no event of the company is on its way: what was purged before is not sent any more (MAT-209). */
  async idle(companyId: string): Promise<void> {
    const lane = this.lanes.get(companyId)
    if (lane?.isBusy) await new Promise<void>(resolve => void lane.whenIdle.push(resolve))
  }

  private nowMs(): number {
    return (this.options.clockMs ?? (() => performance.now()))()
  }

  /** Begins with the companies that may go on, and comes back when the next one may. */
  private advance(): void {
    if (this.isStopped) return
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = setTimeout(() => this.advance(), this.begin())
  }

  /** Returns the ms until there may be something to do. */
  private begin(): number {
    const nowMs = this.nowMs()
    if (nowMs < this.heldUntilMs) return this.heldUntilMs - nowMs
    let waitMs = POLL_MS
    for (const companyId of this.options.state.companiesWaiting()) {
      if (this.busy >= COMPANIES_AT_ONCE) break
      const lane = this.laneOf(companyId)
      if (lane.isBusy) continue
      if (lane.retryAtMs > nowMs) waitMs = Math.min(waitMs, lane.retryAtMs - nowMs)
      else void this.run(companyId, lane)
    }
    return waitMs
  }

  private laneOf(companyId: string): Lane {
    let lane = this.lanes.get(companyId)
    if (!lane) {
      lane = {
        batch: null,
        parts: [],
        dead: [],
        unknownServer: [],
        failures: 0,
        retryAtMs: 0,
        isBusy: false,
        whenIdle: [],
      }
      this.lanes.set(companyId, lane)
    }
    return lane
  }

  /** One request of a company. A fault of this host is logged and tried again like one of the hub. */
  private async run(companyId: string, lane: Lane): Promise<void> {
    lane.isBusy = true
    this.busy++
    try {
      await this.step(companyId, lane)
    } catch (error) {
      this.options.log.error({ err: error, company_id: companyId }, 'cannot work on the outbox; events are kept')
      this.backOff(lane, 0)
    }
    lane.isBusy = false
    this.busy--
    for (const tell of lane.whenIdle.splice(0)) tell()
    if (lane.batch === null && lane.failures === 0) this.lanes.delete(companyId)
    if (this.busy === 0) this.onIdle?.()
    this.advance()
    if (!this.isStopped && this.options.state.companiesWaiting().length === 0) this.options.onEmpty()
  }

  private async step(companyId: string, lane: Lane): Promise<void> {
    const { state, hub } = this.options
    await hub.eventsTurn()
    if (this.isStopped) return
    if (lane.batch === null || !state.isCurrent(lane.batch)) {
      lane.batch = await state.nextBatch(companyId)
      lane.parts = lane.batch ? [lane.batch.events] : []
      lane.dead = []
      lane.unknownServer = []
    }
    const [part] = lane.parts
    if (lane.batch === null || !part) return
    const response = await hub.postEvents(part)
    // The state may be closed; what was delivered comes again after the next start, and the hub knows it.
    if (this.isOver) return
    if (response.kind === 'refused' && isOwnRefusal(response)) return this.hold(response)
    const verdict = judgeBatch(response)
    if (verdict === 'keep') {
      this.noteKept(lane, response)
      return this.backOff(lane, response.kind === 'refused' ? (response.retryAfterSeconds ?? 0) * 1000 : 0)
    }
    if (lane.failures > 0) this.options.log.info({ company_id: companyId }, 'the hub takes events again')
    lane.failures = 0
    if (verdict === 'delivered') lane.unknownServer.push(...this.countRejected(response))
    else this.refused(lane, part, response)
    if (verdict === 'delivered' || part.length === 1) lane.parts.shift()
    if (lane.parts.length > 0) return
    const { batch, dead, unknownServer } = lane
    lane.batch = null
    if (await state.settle(batch, dead, unknownServer)) this.options.onFeedBehind()
  }

  /** Halves what the hub will not take; one event alone is a dead letter. */
  private refused(lane: Lane, part: readonly SecurityEvent[], response: HubResponse): void {
    const [event] = part
    assert(event !== undefined, 'a batch has an event')
    if (part.length > 1) {
      const half = Math.ceil(part.length / 2)
      lane.parts.splice(0, 1, part.slice(0, half), part.slice(half))
      return
    }
    const message = response.kind === 'refused' ? response.message : ''
    const reason = `${describeResponse(response)}${message === '' ? '' : `: ${message}`}`.slice(0, 500)
    lane.dead.push({ eventId: event.event_id, reason })
    this.options.log.error(
      { event_id: event.event_id, type: event.type, host_id: event.host_id, reason: describeResponse(response) },
      'the hub will not take an event; it is a dead letter',
    )
  }

  private hold(response: HubResponse): void {
    const nowMs = this.nowMs()
    if (this.heldUntilMs <= nowMs)
      this.options.log.error(
        { reason: describeResponse(response) },
        'the hub refuses the token; events wait for a minute',
      )
    this.heldUntilMs = nowMs + UNAUTHORIZED_HOLD_MS
  }

  private noteKept(lane: Lane, response: HubResponse): void {
    if (lane.failures > 0 || !lane.batch) return
    this.options.log.warn(
      { company_id: lane.batch.companyId, reason: describeResponse(response) },
      'cannot give events to the hub; they are kept and sent later',
    )
  }

  /** Full jitter; what the hub asks for counts when it is longer (MAT-165). */
  private backOff(lane: Lane, wantedMs: number): void {
    lane.failures++
    const jitterMs = (this.options.random ?? Math.random)() * backoffMs(BACKOFF, lane.failures)
    lane.retryAtMs = this.nowMs() + Math.max(jitterMs, wantedMs)
  }

  /**
   * Rejected events are done; each reason is logged once an hour (MAT-164). Returns the ids of those whose server is
   * not the one that the hub knows.
   */
  private countRejected(response: HubResponse): string[] {
    const listed = response.kind === 'ok' && Array.isArray(response.data.rejected) ? response.data.rejected : []
    const unknownServer: string[] = []
    for (const entry of listed) {
      const given = isObject(entry) && typeof entry.reason === 'string' ? entry.reason.slice(0, 64) : 'unknown'
      const reason = this.toldAtMs.has(given) || this.toldAtMs.size < REASONS_MAX ? given : 'other'
      this.options.onRejected(reason)
      if (reason === 'unknown_server' && isObject(entry) && typeof entry.event_id === 'string')
        unknownServer.push(entry.event_id)
      const nowMs = this.nowMs()
      if (nowMs - (this.toldAtMs.get(reason) ?? Number.NEGATIVE_INFINITY) < REJECTED_LOG_PERIOD_MS) continue
      this.toldAtMs.set(reason, nowMs)
      const eventId = isObject(entry) ? entry.event_id : undefined
      this.options.log.warn({ event_id: eventId, reason }, 'the hub rejects events')
    }
    return unknownServer
  }
}
