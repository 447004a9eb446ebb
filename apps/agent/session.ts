// An enrolled agent at work: one lane samples on the grid of the interval, the other talks to the collector. They meet
// in the buffer.
import { fromBinary } from '@bufbuild/protobuf'
import { seriesOfCycle } from '../../core/agent/requests-of-cycles.ts'
import { actionFor, isRefusal } from '../../core/agent/response-action.ts'
import {
  awaitedCycleAtMs,
  configPollDelayMs,
  configReloadAtMs,
  cycleOffsetMs,
  firstConfigPollMs,
  firstUpdateCheckMs,
  nextCycleAtMs,
  nextSendAtMs,
} from '../../core/agent/schedule.ts'
import { capSeries } from '../../core/agent/series-ceiling.ts'
import { AgentConfigSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import type { AgentParts } from './agent-parts.ts'
import { Alarm } from './clock.ts'
import { isServiceActive } from './collectors/check-kinds.ts'
import { CheckRunner } from './collectors/checks-at-a-time.ts'
import { InventoryReporter } from './collectors/inventory.ts'
import { linuxCollectors } from './collectors/linux.ts'
import { portableCollectors } from './collectors/portable.ts'
import { askAddresses } from './collectors/resolve-name.ts'
import { Sampler } from './collectors/sampler.ts'
import { BatchBuffer } from './state/batch-buffer.ts'
import type { Identity } from './state/identity.ts'
import { SeqCounter } from './state/state-dir.ts'
import type { CollectorClient } from './transport/collector-client.ts'
import { CollectorMover } from './transport/collector-move.ts'
import { Sender } from './transport/sender.ts'
import { Credentials } from './transport/token-in-use.ts'
import { type TaskResult, Uplink } from './transport/uplink.ts'
import { Updater } from './update/updater.ts'

export type SessionIdentity = {
  readonly identity: Identity
  /** False while the disk could not take it. */
  readonly isSaved: boolean
}

/** How long after its baseline the first cycle of an impatient start comes: the shortest window for honest rates. */
const FIRST_WINDOW_MS = 1_000

export class Session {
  readonly #parts: AgentParts
  readonly #client: CollectorClient
  readonly #mover: CollectorMover
  readonly #updater: Updater
  readonly #onAccepted: () => void
  #stagedVersion: string | null = null
  readonly #alarm = new Alarm()
  readonly #credentials: Credentials
  readonly #buffer: BatchBuffer
  readonly #sender: Sender
  readonly #uplink: Uplink
  #isStopping = false
  #lastSendAtMs: number | null = null
  #lastConfigReadAtMs: number | null = null

  constructor(
    parts: AgentParts,
    client: CollectorClient,
    { identity, isSaved }: SessionIdentity,
    { configuredUrl, onAccepted }: { readonly configuredUrl: string; readonly onAccepted: () => void },
  ) {
    const { options, dir, clock, log, status, settings } = parts
    this.#parts = parts
    this.#client = client
    this.#onAccepted = onAccepted
    this.#mover = new CollectorMover(parts, client, this.#token, configuredUrl)
    const onStaged = (version: string) => {
      this.#stagedVersion = version
      this.stop()
    }
    this.#updater = new Updater({ ...parts, client, token: this.#token, onStaged })
    this.#credentials = new Credentials(
      { dir, clock, log, status, renewPeriodMs: options.renewPeriodMs },
      identity,
      isSaved,
    )
    this.#buffer = new BatchBuffer(dir.bufferPath(), settings.current.bufferBytesMax, log)
    const seq = new SeqCounter(dir)
    this.#sender = new Sender({ client, buffer: this.#buffer, seq, settings, status, clock, log, token: this.#token })
    // What an earlier run left counts before anything is sent.
    status.update(this.#sender.facts())
    this.#uplink = this.#makeUplink(identity.agentId)
    settings.onChange(({ bufferBytesMax }) => {
      this.#buffer.setBytesMax(bufferBytesMax)
      // A changed interval moves the grid.
      this.#alarm.ring()
    })
  }

  /**
   * Runs until `stop`, until the collector revokes this agent, or until another version is staged, which it answers
   * with.
   */
  async run(): Promise<string | null> {
    const lanes = [this.#uplink.run(), this.#sampleOnGrid(this.#credentials.agentId)]
    try {
      await Promise.all(lanes)
    } finally {
      // A lane that failed takes the other one along.
      this.stop()
      await Promise.allSettled(lanes)
      // The last chance of a token that the disk did not take before.
      this.#credentials.keep()
    }
    return this.#stagedVersion
  }

  stop(): void {
    this.#isStopping = true
    this.#alarm.ring()
    this.#uplink.stop()
    this.#updater.stop()
  }

  readonly #token = (): string => this.#credentials.token

  #makeUplink(agentId: string): Uplink {
    const { clock, log, status, random, options } = this.#parts
    const client = this.#client
    const inventory = new InventoryReporter(this.#parts, client, this.#token)
    const onRevoked = () => {
      this.#credentials.markRevoked()
      this.stop()
    }
    return new Uplink(
      { clock, log, status, random, onRevoked },
      {
        config: { run: () => this.#readConfig(), firstInMs: firstConfigPollMs(agentId) },
        metrics: { run: () => this.#send(), firstInMs: Number.POSITIVE_INFINITY },
        inventory: { run: () => inventory.reportWhenDue(), firstInMs: 0 },
        renew: { run: () => this.#credentials.renewWhenDue(client), firstInMs: 0 },
        update: {
          run: () => this.#updater.check(),
          firstInMs: firstUpdateCheckMs(agentId, options.update.checkPeriodMs),
        },
      },
    )
  }

  /** Samples on the grid of the interval, and asks for a send after each cycle. */
  async #sampleOnGrid(agentId: string): Promise<void> {
    const { clock, settings, isImpatient } = this.#parts
    const sampler = this.#makeSampler()
    await sampler.prime(clock.elapsed(), settings.current)
    let plannedAtMs = isImpatient ? clock.now() + FIRST_WINDOW_MS : null
    let { intervalMs } = settings.current
    while (!this.#isStopping) {
      // Another interval is another grid.
      if (settings.current.intervalMs !== intervalMs) plannedAtMs = null
      intervalMs = settings.current.intervalMs
      const offsetMs = cycleOffsetMs(agentId, intervalMs)
      const nowMs = clock.now()
      const atMs = awaitedCycleAtMs(plannedAtMs, nowMs, intervalMs, offsetMs)
      plannedAtMs = atMs
      await this.#alarm.wait(clock, atMs - nowMs)
      if (this.#isStopping) return
      const wokenAtMs = clock.now()
      // Woken early: the settings changed, or the clock runs behind the timer. Look again.
      if (wokenAtMs < atMs) continue
      // The clock was set forward, or the server slept: what is read now belongs to the latest instant of the grid.
      const isLate = wokenAtMs - atMs >= intervalMs
      const cycleAtMs = isLate ? nextCycleAtMs(wokenAtMs, intervalMs, offsetMs) - intervalMs : atMs
      plannedAtMs = nextCycleAtMs(cycleAtMs, intervalMs, offsetMs)
      await this.#cycle(sampler, cycleAtMs)
    }
  }

  async #cycle(sampler: Sampler, atMs: number): Promise<void> {
    const { clock, settings, status } = this.#parts
    const samples = await sampler.sample(clock.elapsed(), settings.current)
    const { seriesMax } = settings.current
    const { kept, droppedPoints } = capSeries(seriesOfCycle(samples, atMs), seriesMax)
    status.warn('series', droppedPoints > 0 ? [`more than ${seriesMax} series: the rest is not sent`] : [])
    this.#buffer.countDropped(droppedPoints)
    this.#buffer.append(kept)
    const isInMemory = this.#buffer.isDiskRefusing
    status.warn('buffer', isInMemory ? ['the state directory takes no batches: they wait in memory'] : [])
    // `agent status` shows the backlog even while nothing is sent.
    status.update(this.#sender.facts())
    this.#uplink.request('metrics', nextSendAtMs(clock.elapsed(), this.#lastSendAtMs))
  }

  #makeSampler(): Sampler {
    const { platform, files, makeAsker, options, log, clock, status } = this.#parts
    const perCore = options.isCpuPerCore
    const warnOfDisks = (warnings: readonly string[]) => status.warn('disk', warnings)
    const collectors =
      platform === 'linux' ? linuxCollectors(files, makeAsker(), perCore, warnOfDisks) : portableCollectors(perCore)
    const context = { files, now: () => clock.now(), isServiceActive, askAddresses }
    return new Sampler(collectors, new CheckRunner(context, log), log)
  }

  async #send(): Promise<TaskResult> {
    const { clock, status } = this.#parts
    this.#lastSendAtMs = clock.elapsed()
    const { action, reply, configEtag } = await this.#sender.send()
    status.update(this.#sender.facts())
    // A batch of which both halves were refused is done with too, and proves nothing.
    if (action === 'success' && reply !== null && !isRefusal(reply)) this.#onAccepted()
    this.#noticeEtag(configEtag)
    // The rest of the buffer is sent in the next turn; with an empty buffer the loop waits for the next cycle.
    const isEmpty = this.#buffer.batchCount === 0
    const nextAtMs = isEmpty ? Number.POSITIVE_INFINITY : nextSendAtMs(clock.elapsed(), this.#lastSendAtMs)
    return { action, reply, nextInMs: nextAtMs - clock.elapsed() }
  }

  #noticeEtag(etag: string): void {
    const { clock, settings } = this.#parts
    if (etag === '' || etag === settings.heldEtag) return
    this.#uplink.request('config', configReloadAtMs(clock.elapsed(), this.#lastConfigReadAtMs))
  }

  async #readConfig(): Promise<TaskResult> {
    const result = await this.#takeConfig()
    if (result.action === 'success' || result.action === 'unchanged') await this.#mover.consider()
    return result
  }

  async #takeConfig(): Promise<TaskResult> {
    const { clock, settings, random, log } = this.#parts
    this.#lastConfigReadAtMs = clock.elapsed()
    const held = settings.heldEtag
    const condition = held === '' ? {} : { ifNoneMatch: held }
    const reply = await this.#client.call({ method: 'GET', path: '/config', token: this.#token(), ...condition })
    const action = actionFor('config', reply)
    const nextInMs = configPollDelayMs(random())
    if (action !== 'success') return { action, reply, nextInMs }
    try {
      settings.take(fromBinary(AgentConfigSchema, reply.body))
    } catch {
      log.warn({ request_id: reply.requestId }, 'the collector sent a config that cannot be understood')
      return { action: 'back_off', reply, nextInMs }
    }
    return { action, reply, nextInMs }
  }
}
