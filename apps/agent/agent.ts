// The agent from its start to its stop: it enrolls when it must, then a session does the work. The executable and the
// all-in-one run the same.
import type { Logger } from 'pino'
import { retryWaitMs } from '../../core/agent/retry-wait.ts'
import type { AgentConfig } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import type { AgentParts } from './agent-parts.ts'
import { Alarm, type Clock, systemClock } from './clock.ts'
import { HostFiles, type HostRoots, linuxRoots } from './collectors/host-files.ts'
import { type AskStatFs, askStatFs, StatFsAsker } from './collectors/stat-fs.ts'
import { type AgentOptions, agentVersion, collectorUrlUnset } from './config.ts'
import { ScanLane } from './scan/scan-lane.ts'
import { ScanStore } from './scan/scan-store.ts'
import { Session, type SessionIdentity } from './session.ts'
import { BatchBuffer } from './state/batch-buffer.ts'
import { type Identity, licenseHash, readIdentity, writeIdentity } from './state/identity.ts'
import { SettingsInForce } from './state/settings-in-force.ts'
import { StateDir } from './state/state-dir.ts'
import { StateLock } from './state/state-lock.ts'
import { type AgentState, StatusReport } from './state/status.ts'
import { CollectorClient } from './transport/collector-client.ts'
import { forgetMove, readMove } from './transport/collector-move.ts'
import { enroll } from './transport/enroll.ts'
import { TOKEN_UNSAVED } from './transport/token-in-use.ts'
import { Installation } from './update/installation.ts'
import { type OwnTrial, ownTrial, tryStagedVersion } from './update/run-update-trial.ts'

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
  /** What the operator is to see in the status from the start. */
  readonly warnings?: readonly string[]
  /** For an agent that may replace itself: its executable (null: none of its own) and the arguments of this process. */
  readonly selfUpdate?: {
    readonly executable: string | null
    readonly args: readonly string[]
    /** The process that started this one as a version on trial; null for any other start. */
    readonly watcherPid: number | null
  }
}

export type RunningAgent = {
  /** Null until this host is enrolled. */
  readonly agentId: string | null
  readonly state: AgentState
  /**
   * Resolves with the agent's id once it is enrolled; with null when enrollment is refused, or the agent stops before.
   */
  readonly enrolled: Promise<string | null>
  /** Resolves when nothing runs any more: stopped, refused or revoked (null), or failed (why). */
  readonly ended: Promise<string | null>
  /** Ends cycles and requests. What was not delivered stays in the buffer for the next start. */
  stop(): Promise<void>
}

/** Starts the agent. Resolves when it runs, which may be before it is enrolled; rejects when it cannot run at all. */
export async function startAgent(start: StartOptions): Promise<RunningAgent> {
  const { options, log } = start
  const clock = start.clock ?? systemClock
  const dir = new StateDir(options.stateDir)
  const lock = new StateLock(dir)
  const status = new StatusReport(dir, clock, log, agentVersion)
  const selfUpdate = start.selfUpdate ?? { executable: null, args: [], watcherPid: null }
  const trial = start.selfUpdate ? ownTrial({ dir, clock, log, options }, selfUpdate.args, selfUpdate.watcherPid) : null
  const parts: AgentParts = {
    options,
    log,
    clock,
    random: start.random ?? Math.random,
    platform: start.platform ?? process.platform,
    files: new HostFiles(start.roots ?? linuxRoots),
    makeAsker: () => new StatFsAsker(start.statFs ?? askStatFs),
    dir,
    status,
    settings: new SettingsInForce(options, dir, status, log),
    // A version on trial has no interval to wait for.
    isImpatient: trial !== null || (start.firstSendImmediately ?? false),
    installation: selfUpdate.executable === null ? null : new Installation(selfUpdate.executable, selfUpdate.args),
    isOnTrial: () => trial?.isOpen() ?? false,
  }
  status.warn('start', start.warnings ?? [])
  if (dir.isReadOnly) status.warn('state', ['the state directory is read-only: nothing is kept over a restart'])
  const agent = new Agent(parts, lock, trial)
  agent.start()
  return agent
}

/** The poll interval for a child process that took over. */
const CHILD_POLL_MS = 1_000

class Agent implements RunningAgent {
  readonly #parts: AgentParts
  readonly #alarm = new Alarm()
  readonly #enrolled = Promise.withResolvers<string | null>()
  #client: CollectorClient | null = null
  #session: Session | null = null
  readonly #scan: ScanLane
  #scanning: Promise<void> = Promise.resolve()
  readonly #lock: StateLock
  readonly #trial: OwnTrial | null
  #isStopping = false
  #isStopRequested = false
  #isOrphaned = false
  /** What this process becomes once its work has ended. */
  #successor: Installation | null = null
  #work: Promise<string | null> = Promise.resolve(null)
  agentId: string | null = null

  constructor(parts: AgentParts, lock: StateLock, trial: OwnTrial | null) {
    this.#parts = parts
    this.#lock = lock
    this.#trial = trial
    this.#scan = new ScanLane(parts)
    void trial?.lost.then(installation => {
      this.#successor = installation
      this.#endWork()
    })
    void trial?.orphaned.then(() => {
      this.#isOrphaned = true
      this.#endWork()
    })
  }

  get state(): AgentState {
    return this.#parts.status.state
  }

  get enrolled(): Promise<string | null> {
    return this.#enrolled.promise
  }

  get ended(): Promise<string | null> {
    return this.#work
  }

  start(): void {
    const { log } = this.#parts
    // On its own: packages are reported whether the collector answers or not.
    this.#scanning = this.#scan.run()
    this.#work = this.#run()
      .then(
        () => this.#giveWay(),
        error => {
          const cause = error instanceof Error ? error.message : String(error)
          log.fatal({ cause }, 'the agent failed')
          this.#enrolled.resolve(this.agentId)
          return cause
        },
      )
      // One that was refused or revoked stays as a process, but keeps nobody from enrolling anew.
      .finally(() => this.#lock.release())
  }

  async stop(): Promise<void> {
    this.#isStopRequested = true
    this.#trial?.stop()
    this.#endWork()
    this.#client?.close()
    await Promise.all([this.#work, this.#scanning])
    this.#enrolled.resolve(this.agentId)
  }

  #endWork(): void {
    this.#isStopping = true
    this.#alarm.ring()
    this.#session?.stop()
    this.#scan.stop()
  }

  async #run(): Promise<void> {
    const { options, status, log, dir } = this.#parts
    const known = readIdentity(dir)
    const configuredUrl = options.collectorUrl ?? known?.collectorUrl ?? null
    const move = configuredUrl !== null && options.allowRemoteConfig ? readMove(dir, configuredUrl) : null
    const collectorUrl = move?.url ?? configuredUrl
    status.update({ collectorUrl, agentId: known?.agentId ?? null })
    if (collectorUrl === null || configuredUrl === null) {
      this.#fail(`collector_url ${collectorUrlUnset}`)
      return
    }
    this.#client = new CollectorClient({
      collectorUrl,
      caPem: options.caPem,
      agentVersion,
      log,
      now: () => this.#parts.clock.now(),
    })
    const found = await this.#identity(known, configuredUrl, this.#client)
    if (found === null) return
    const { agentId } = found.identity
    this.agentId = agentId
    status.update({ agentId })
    const onAccepted = () => this.#trial?.accept()
    this.#session = new Session(this.#parts, this.#client, found, { configuredUrl, onAccepted })
    this.#enrolled.resolve(agentId)
    if (this.#isStopping) return
    const staged = await this.#session.run()
    if (staged !== null && !this.#isStopping) await this.#replaceBy(staged)
  }

  /** Puts a staged version in place and tries it; the better of both is what this process becomes. */
  async #replaceBy(version: string): Promise<void> {
    const { installation, log } = this.#parts
    if (installation === null) return
    this.#scan.stop()
    await this.#scanning
    this.#lock.release()
    try {
      const isDecided = await tryStagedVersion(version, installation, this.#parts, this.#alarm, () => this.#isStopping)
      if (!isDecided) return
    } catch (error) {
      log.error({ version, cause: error instanceof Error ? error.message : String(error) }, 'an update went wrong')
    }
    this.#successor = installation
  }

  /**
   * Becomes the installed version, where one is to follow. Returns null when nothing runs any more, else why it failed.
   */
  async #giveWay(): Promise<string | null> {
    const { log, clock } = this.#parts
    if (this.#isOrphaned) return 'the process that watched the trial of this version is gone'
    if (this.#successor === null || this.#isStopRequested) return null
    this.#lock.release()
    const reason = this.#successor.become()
    log.warn({ reason }, 'cannot become the installed version: it runs as a child of this process')
    const child = this.#successor.start()
    while (child.exitCode === null && child.signalCode === null) {
      if (this.#isStopRequested) child.kill('SIGTERM')
      await this.#alarm.wait(clock, CHILD_POLL_MS)
    }
    return child.exitCode === 0 ? null : 'the installed version ended'
  }

  /** The identity to run with: the one on disk, or a new one. Null when there is none to be had. */
  async #identity(
    known: Identity | null,
    configuredUrl: string,
    client: CollectorClient,
  ): Promise<SessionIdentity | null> {
    const { license } = this.#parts.options
    if (known && !known.isRevoked) return { identity: known, isSaved: true }
    if (known && (license === null || licenseHash(license) === known.licenseHash)) {
      this.agentId = known.agentId
      this.#parts.log.error('this agent is revoked: enroll it again with a licence')
      this.#parts.status.update({}, 'revoked')
      this.#enrolled.resolve(known.agentId)
      return null
    }
    if (license === null) {
      this.#fail('this host is not enrolled, and there is no license')
      return null
    }
    forgetMove(this.#parts.dir)
    client.moveTo(configuredUrl)
    return this.#enroll(license, configuredUrl, client)
  }

  async #enroll(license: string, collectorUrl: string, client: CollectorClient): Promise<SessionIdentity | null> {
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
      const waitMs = retryWaitMs(failures, random(), outcome.retryAfterMs)
      log.warn({ message: outcome.message, wait_ms: waitMs }, 'not enrolled yet')
      await this.#alarm.wait(clock, waitMs)
    }
    return null
  }

  /**
   * Keeps a new identity: its licence is spent, so that nothing may end the agent before. What another identity left
   * behind belongs to another tenant, perhaps: its batches go first. Returns whether the disk took the token; where it
   * did not, the session tries again.
   */
  #adopt(identity: Identity, config: AgentConfig | null): boolean {
    const { dir, settings, status, log } = this.#parts
    const tryTo = (what: string, act: () => void): boolean => {
      try {
        act()
        return true
      } catch (error) {
        log.error({ error: error instanceof Error ? error.message : String(error) }, `cannot ${what}`)
        return false
      }
    }
    tryTo('forget the former batches', () => {
      new BatchBuffer(dir.bufferPath(), settings.current.bufferBytesMax, log).clear()
    })
    const isSaved = tryTo('store the token yet', () => writeIdentity(dir, identity))
    status.warn('token', isSaved ? [] : [TOKEN_UNSAVED])
    tryTo('forget the former configuration', () => settings.forget())
    tryTo('forget the former scan host', () => new ScanStore(dir).forgetRemote())
    if (config) settings.take(config)
    return isSaved
  }

  #fail(message: string): void {
    this.#parts.log.error({ message }, 'enrollment failed')
    this.#parts.status.update({ lastError: message }, 'enroll_failed')
    this.#enrolled.resolve(null)
  }
}
