// The running agent: enrols when it must, then samples on its grid and talks to the collector, side by side. The executable
// and the all-in-one run the same.
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import type { Logger } from 'pino'
import { actionFor } from '../../core/agent/answer.ts'
import { capSeries, seriesOfCycle } from '../../core/agent/sample.ts'
import {
  backoffMs,
  configPollDelayMs,
  configReloadAtMs,
  cycleOffsetMs,
  firstConfigPollMs,
  firstUpdateCheckMs,
  nextCycleAtMs,
  nextSendAtMs,
} from '../../core/agent/schedule.ts'
import { limits } from '../../core/limits.ts'
import { type AgentConfig, AgentConfigSchema, InventoryFactsSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { BatchBuffer } from './buffer.ts'
import { Alarm, type Clock, systemClock } from './clock.ts'
import { CollectorClient } from './collector-client.ts'
import { CheckRunner } from './collectors/checks.ts'
import { HostFiles, type HostRoots, linuxRoots } from './collectors/host-files.ts'
import { linuxCollectors } from './collectors/linux.ts'
import { portableCollectors } from './collectors/portable.ts'
import { isSystemdUnitActive } from './collectors/probes.ts'
import { Sampler } from './collectors/sampler.ts'
import { type AskStatFs, askStatFs, StatFsAsker } from './collectors/stat-fs.ts'
import { type AgentOptions, agentVersion } from './config.ts'
import { Credentials } from './credentials.ts'
import { enroll } from './enroll.ts'
import { type Identity, licenseHash, readIdentity, writeIdentity } from './identity.ts'
import { factsHash, Inventory } from './machine.ts'
import { Sender } from './sender.ts'
import { SettingsInForce } from './settings.ts'
import { SeqCounter, StateDir } from './state-dir.ts'
import { type AgentState, StatusReport } from './status.ts'
import { checkForUpdate } from './update-check.ts'
import { type TaskResult, Uplink } from './uplink.ts'

export type StartOptions = {
  readonly options: AgentOptions
  readonly log: Logger
  /** For an agent beside its collector: the first cycle comes at once, and not at its place in the interval. */
  readonly firstSendImmediately?: boolean
  readonly clock?: Clock
  /** Numbers in [0, 1) for backoff and poll jitter. */
  readonly random?: () => number
  readonly roots?: HostRoots
  readonly platform?: string
  readonly statFs?: AskStatFs
}

export type RunningAgent = {
  /** Null until this machine is enrolled. */
  readonly agentId: string | null
  readonly state: AgentState
  /** Resolves with the agent's id once it is enrolled; with null when enrolment is refused, or the agent stops before. */
  readonly enrolled: Promise<string | null>
  /** Ends cycles and requests. What was not delivered stays in the buffer for the next start. */
  stop(): Promise<void>
}

/** How long after its baseline the first cycle of an impatient start comes: the shortest window for honest rates. */
const FIRST_WINDOW_MS = 1_000
const INVENTORY_LOOK_MS = 300_000

type Parts = {
  readonly options: AgentOptions
  readonly log: Logger
  readonly clock: Clock
  readonly random: () => number
  readonly platform: string
  readonly files: HostFiles
  readonly asker: () => StatFsAsker
  readonly dir: StateDir
  readonly status: StatusReport
  readonly settings: SettingsInForce
  readonly isImpatient: boolean
}

/** Starts the agent. Resolves when it runs, which may be before it is enrolled; rejects when it cannot run at all. */
export async function startAgent(start: StartOptions): Promise<RunningAgent> {
  const { options, log } = start
  const clock = start.clock ?? systemClock
  const dir = new StateDir(options.stateDir)
  const status = new StatusReport(dir, clock, log, agentVersion)
  const asker = () => new StatFsAsker(start.statFs ?? askStatFs)
  const agent = new Agent({
    options,
    log,
    clock,
    random: start.random ?? Math.random,
    platform: start.platform ?? process.platform,
    files: new HostFiles(start.roots ?? linuxRoots),
    asker,
    dir,
    status,
    settings: new SettingsInForce(options, dir, status, log),
    isImpatient: start.firstSendImmediately ?? false,
  })
  agent.start()
  return agent
}

class Agent implements RunningAgent {
  readonly #parts: Parts
  readonly #alarm = new Alarm()
  readonly #enrolled = Promise.withResolvers<string | null>()
  #client: CollectorClient | null = null
  #uplink: Uplink | null = null
  #isStopping = false
  #work: Promise<void> = Promise.resolve()
  agentId: string | null = null

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get state(): AgentState {
    return this.#parts.status.state
  }

  get enrolled(): Promise<string | null> {
    return this.#enrolled.promise
  }

  start(): void {
    const { log } = this.#parts
    this.#work = this.#run().catch(error => {
      log.fatal({ error: error instanceof Error ? error.message : String(error) }, 'the agent stopped')
      this.#enrolled.resolve(this.agentId)
    })
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    this.#alarm.ring()
    this.#uplink?.stop()
    this.#client?.close()
    await this.#work
    this.#enrolled.resolve(this.agentId)
  }

  async #run(): Promise<void> {
    const { options, status, log, dir } = this.#parts
    const known = readIdentity(dir)
    const collectorUrl = options.collectorUrl ?? known?.collectorUrl ?? null
    status.update({ collectorUrl, agentId: known?.agentId ?? null })
    if (collectorUrl === null) {
      this.#fail('there is no collector_url')
      return
    }
    this.#client = new CollectorClient({
      collectorUrl,
      caPem: options.caPem,
      agentVersion,
      log,
      now: () => this.#parts.clock.now(),
    })
    const identity = await this.#identity(known, collectorUrl, this.#client)
    if (identity === null || this.#isStopping) return
    await this.#serve(identity, collectorUrl, this.#client)
  }

  /** The identity to run with: the one on disk, or a new one. Null when there is none to be had. */
  async #identity(
    known: Identity | null,
    collectorUrl: string,
    client: CollectorClient,
  ): Promise<{ identity: Identity; isSaved: boolean } | null> {
    const { license } = this.#parts.options
    if (known && !known.isRevoked) return { identity: known, isSaved: true }
    if (known && (license === null || licenseHash(license) === known.licenseHash)) {
      this.agentId = known.agentId
      this.#parts.log.error('this agent is revoked: enrol it again with a licence')
      this.#parts.status.update({}, 'revoked')
      this.#enrolled.resolve(known.agentId)
      return null
    }
    if (license === null) {
      this.#fail('this machine is not enrolled, and there is no license')
      return null
    }
    return this.#enroll(license, collectorUrl, client)
  }

  async #enroll(license: string, collectorUrl: string, client: CollectorClient) {
    const { dir, files, platform, clock, random, status, log } = this.#parts
    for (let failures = 1; !this.#isStopping; failures++) {
      const nowMs = clock.now()
      const outcome = await enroll(license, { client, dir, files, platform, collectorUrl, nowMs })
      if (outcome.kind === 'refused') {
        this.#fail(outcome.message)
        return null
      }
      if (outcome.kind === 'enrolled') {
        log.info({ agent_id: outcome.identity.agentId }, 'enrolled')
        return { identity: outcome.identity, isSaved: this.#adopt(outcome.identity, outcome.config) }
      }
      if (this.#isStopping) return null
      status.update({ lastError: outcome.message }, outcome.isUpgradeRequired ? 'upgrade_required' : 'starting')
      const waitMs = backoffMs(failures, random(), outcome.retryAfterMs)
      log.warn({ message: outcome.message, wait_ms: waitMs }, 'not enrolled yet')
      await this.#alarm.wait(clock, waitMs)
    }
    return null
  }

  /** Keeps a new identity; what another identity left behind belongs to another tenant, perhaps. */
  #adopt(identity: Identity, config: AgentConfig | null): boolean {
    const { dir, settings, log } = this.#parts
    settings.forget()
    new BatchBuffer(dir.bufferPath(), settings.current.bufferBytesMax, log).clear()
    let isSaved = true
    try {
      writeIdentity(dir, identity)
    } catch (error) {
      isSaved = false
      log.error({ error: error instanceof Error ? error.message : String(error) }, 'cannot store the token yet')
    }
    if (config) settings.take(config)
    return isSaved
  }

  #fail(message: string): void {
    this.#parts.log.error({ message }, 'enrolment failed')
    this.#parts.status.update({ lastError: message }, 'enroll_failed')
    this.#enrolled.resolve(null)
  }

  async #serve(
    { identity, isSaved }: { identity: Identity; isSaved: boolean },
    collectorUrl: string,
    client: CollectorClient,
  ): Promise<void> {
    const { options, dir, clock, log, status, settings, random } = this.#parts
    this.agentId = identity.agentId
    status.update({ agentId: identity.agentId })
    const credentials = new Credentials({ dir, clock, log, renewPeriodMs: options.renewPeriodMs }, identity, isSaved)
    const token = () => credentials.token
    const buffer = new BatchBuffer(dir.bufferPath(), settings.current.bufferBytesMax, log)
    const sender = new Sender({ client, buffer, seq: new SeqCounter(dir), settings, status, clock, log, token })
    const onRevoked = () => {
      credentials.markRevoked()
      this.#isStopping = true
      this.#alarm.ring()
    }
    const uplink = new Uplink(
      { clock, log, status, random, onRevoked },
      {
        config: { run: () => this.#readConfig(client, token), firstInMs: firstConfigPollMs(identity.agentId) },
        metrics: { run: () => this.#send(sender, buffer), firstInMs: Number.POSITIVE_INFINITY },
        inventory: { run: this.#inventoryTask(client, token), firstInMs: 0 },
        renew: { run: () => credentials.renewWhenDue(client), firstInMs: 0 },
        update: {
          run: () => checkForUpdate({ ...this.#parts, client, update: options.update, collectorUrl, token }),
          firstInMs: firstUpdateCheckMs(identity.agentId),
        },
      },
    )
    this.#uplink = uplink
    settings.onChange(({ bufferBytesMax }) => {
      buffer.setBytesMax(bufferBytesMax)
      this.#alarm.ring()
    })
    this.#enrolled.resolve(identity.agentId)
    if (this.#isStopping) return
    await Promise.all([uplink.run(), this.#cycle(identity.agentId, buffer)])
  }

  /** Samples on the grid of the interval, and asks for a send after each cycle. */
  async #cycle(agentId: string, buffer: BatchBuffer): Promise<void> {
    const { clock, settings, isImpatient } = this.#parts
    const sampler = this.#sampler()
    await sampler.prime(clock.elapsed(), settings.current)
    let atMs = clock.now() + FIRST_WINDOW_MS
    let isFirst = isImpatient
    while (!this.#isStopping) {
      const { intervalMs, seriesMax } = settings.current
      if (!isFirst) atMs = nextCycleAtMs(clock.now(), intervalMs, cycleOffsetMs(agentId, intervalMs))
      await this.#alarm.wait(clock, atMs - clock.now())
      // A changed interval moves the grid: look again.
      if (this.#isStopping || clock.now() < atMs) continue
      isFirst = false
      const samples = await sampler.sample(clock.elapsed(), settings.current)
      const { kept, droppedPoints } = capSeries(seriesOfCycle(samples, atMs), seriesMax)
      this.#parts.status.warn(
        'series',
        droppedPoints > 0 ? [`more than ${seriesMax} series: the rest is not sent`] : [],
      )
      buffer.countDropped(droppedPoints)
      buffer.append(kept)
      this.#uplink?.request('metrics', nextSendAtMs(clock.elapsed(), this.#lastSendAtMs))
    }
  }

  #sampler(): Sampler {
    const { platform, files, asker, options, log, clock } = this.#parts
    const collectors =
      platform === 'linux'
        ? linuxCollectors(files, asker(), options.isCpuPerCore)
        : portableCollectors(options.isCpuPerCore)
    const context = { files, now: () => clock.now(), isServiceActive: isSystemdUnitActive }
    return new Sampler(collectors, new CheckRunner(context, log), log)
  }

  #lastSendAtMs: number | null = null

  async #send(sender: Sender, buffer: BatchBuffer): Promise<TaskResult> {
    const { clock, status } = this.#parts
    this.#lastSendAtMs = clock.elapsed()
    const { action, reply, configEtag } = await sender.send()
    status.update(sender.facts())
    this.#noticeEtag(configEtag)
    // What is left goes with the next turn; an empty buffer waits for the next cycle.
    const nextInMs =
      buffer.batchCount > 0
        ? nextSendAtMs(clock.elapsed(), this.#lastSendAtMs) - clock.elapsed()
        : Number.POSITIVE_INFINITY
    return { action, reply, nextInMs }
  }

  #lastReloadAtMs: number | null = null

  #noticeEtag(etag: string): void {
    const { clock, settings } = this.#parts
    if (etag === '' || etag === settings.heldEtag) return
    this.#uplink?.request('config', configReloadAtMs(clock.elapsed(), this.#lastReloadAtMs))
  }

  async #readConfig(client: CollectorClient, token: () => string): Promise<TaskResult> {
    const { clock, settings, random, log } = this.#parts
    this.#lastReloadAtMs = clock.elapsed()
    const held = settings.heldEtag
    const reply = await client.call({
      method: 'GET',
      path: '/config',
      token: token(),
      ...(held !== '' ? { ifNoneMatch: held } : {}),
    })
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

  /** At the start, every 6 hours, and when what is installed changes. */
  #inventoryTask(client: CollectorClient, token: () => string): () => Promise<TaskResult> {
    const { files, asker, platform, clock, settings, log } = this.#parts
    const inventory = new Inventory(files, asker(), platform, clock.now())
    let sent: { hash: string; atMs: number } | null = null
    return async () => {
      const facts = await inventory.facts(settings.current)
      const hash = factsHash(facts)
      const nowMs = clock.elapsed()
      if (sent && sent.hash === hash && nowMs < sent.atMs + limits.inventoryPeriodMs) {
        const dueInMs = sent.atMs + limits.inventoryPeriodMs - nowMs
        return { action: 'success', reply: null, nextInMs: Math.min(INVENTORY_LOOK_MS, dueInMs) }
      }
      const body = toBinary(InventoryFactsSchema, facts)
      const reply = await client.call({ method: 'POST', path: '/inventory', token: token(), body })
      const action = actionFor('inventory', reply)
      if (action === 'drop') log.error({ message: reply.message }, 'the collector refuses the inventory')
      if (action === 'success' || action === 'drop') sent = { hash, atMs: nowMs }
      return { action, reply, nextInMs: INVENTORY_LOOK_MS }
    }
  }
}
