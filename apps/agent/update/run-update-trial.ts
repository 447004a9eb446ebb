// The trial of a new version (document 3 "Proposed update-manifest extension"): within 5 minutes it must send one batch
// that the collector accepts, else the old binary is restored. The old program stays as the watcher, because a version
// that does not even start cannot judge itself; only after a power cut or a killed watcher the new version watches
// itself.
import { trialAtStart, type UpdateRecord, type UpdateTrial, withFailed } from '../../../core/agent/update-trial.ts'
import type { AgentParts } from '../agent-parts.ts'
import type { Alarm } from '../clock.ts'
import { agentVersion } from '../config.ts'
import { Installation } from './installation.ts'
import { readUpdateRecord, writeUpdateRecord } from './update-records.ts'

const POLL_MS = 250
const WATCHER_POLL_MS = 1_000
/** How long the version on trial may take to end in order. */
const END_MS = 15_000

type Child = ReturnType<Installation['start']>
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

type TrialParts = Pick<AgentParts, 'dir' | 'clock' | 'log' | 'options'>

async function end(child: Child, { clock }: TrialParts, alarm: Alarm): Promise<void> {
  child.kill('SIGTERM')
  const endMs = clock.elapsed() + END_MS
  while (child.exitCode === null && child.signalCode === null && clock.elapsed() < endMs)
    await alarm.wait(clock, POLL_MS)
  child.kill('SIGKILL')
  await child.exited
}

/**
 * Keeps the record when the disk takes it: a full one must stop neither an agent's start nor the return of the old
 * binary.
 */
function note({ dir, log }: TrialParts, record: UpdateRecord): void {
  try {
    writeUpdateRecord(dir, record)
  } catch (error) {
    log.error({ cause: messageOf(error) }, 'cannot keep the record of an update')
  }
}

/**
 * Marks the version failed and puts the old binary back: in this order, so that a power cut in between is not
 * forgotten.
 */
function rollBack(parts: TrialParts, installation: Installation, trial: UpdateTrial): void {
  const failed = withFailed({ ...readUpdateRecord(parts.dir), trial }, trial.version, parts.clock.now())
  note(parts, failed)
  installation.restore()
  note(parts, { ...failed, trial: null })
}

/** The new version is good: it stays, and the old binary goes. */
function keepNewVersion({ dir }: TrialParts, installation: Installation): void {
  writeUpdateRecord(dir, { ...readUpdateRecord(dir), trial: null })
  installation.forgetPrevious()
}

/** Why a version failed its trial; null when it sent an accepted batch, 'stopped' when the agent was told to stop. */
async function verdict(
  child: Child,
  parts: TrialParts,
  alarm: Alarm,
  isStopping: () => boolean,
): Promise<'stopped' | 'accepted' | string> {
  const { dir, clock, options } = parts
  const endMs = clock.elapsed() + options.update.trialMs
  for (;;) {
    if (isStopping()) return 'stopped'
    if (readUpdateRecord(dir).trial?.isConfirmed) return 'accepted'
    if (child.signalCode !== null) return `it ended by ${child.signalCode}`
    if (child.exitCode !== null) return `it ended with ${child.exitCode}`
    if (clock.elapsed() >= endMs) return `it sent no accepted batch within ${options.update.trialMs / 1000} s`
    await alarm.wait(clock, POLL_MS)
  }
}

/**
 * Puts the staged version in place, tries it as a child process, and leaves the good one of both installed. The state
 * directory must be unlocked: the child works in it. True when the caller has to become what is installed; false when
 * it was stopped.
 */
export async function tryStagedVersion(
  version: string,
  installation: Installation,
  parts: TrialParts,
  alarm: Alarm,
  isStopping: () => boolean,
): Promise<boolean> {
  const { dir, log } = parts
  const { executable } = installation
  const trial = { version, fromVersion: agentVersion, executable, isConfirmed: false, unwatchedStarts: 0 }
  writeUpdateRecord(dir, { ...readUpdateRecord(dir), trial })
  installation.replace()
  log.info({ version }, 'a new version is in place: it is on trial until the collector accepts a batch of it')
  let child: Child
  try {
    child = installation.start('--watcher', String(process.pid))
  } catch (error) {
    log.error({ version, cause: messageOf(error) }, 'the new version cannot be started: the old one is restored')
    rollBack(parts, installation, trial)
    return true
  }
  const outcome = await verdict(child, parts, alarm, isStopping)
  await end(child, parts, alarm)
  if (outcome === 'stopped') return false
  if (outcome === 'accepted') {
    keepNewVersion(parts, installation)
    log.info({ version }, 'the new version has proved itself')
  } else {
    rollBack(parts, installation, trial)
    log.error({ version, reason: outcome }, 'the new version failed its trial: the old one is restored')
  }
  return true
}

/** What an agent on trial does about it. */
export type OwnTrial = {
  /** Called when the collector has accepted a batch. */
  readonly accept: () => void
  /** Resolves when the trial is lost and the old binary is back in place; never for one that is won or stopped. */
  readonly lost: Promise<Installation>
  /**
   * Resolves when the watcher has ended: this process then ends too, so that the service manager finds the directory
   * unlocked when it starts the agent.
   */
  readonly orphaned: Promise<void>
  readonly stop: () => void
  /** Until it is won: no further version is installed meanwhile. */
  readonly isOpen: () => boolean
}

/** The part of the version that is on trial; null when none is. */
export function ownTrial(parts: TrialParts, args: readonly string[], watcherPid: number | null): OwnTrial | null {
  const { dir, clock, log, options } = parts
  const record = readUpdateRecord(dir)
  const { trial } = record
  if (trial === null) return null
  const isWatched = watcherPid !== null
  const state = trialAtStart(record, { version: agentVersion, isWatched, nowMs: clock.now() })
  const installation = new Installation(trial.executable, args)
  const lost = Promise.withResolvers<Installation>()
  const orphaned = Promise.withResolvers<void>()
  const lose = (reason: string) => {
    log.error({ version: agentVersion, reason }, 'this version failed its trial: the old one is restored')
    try {
      rollBack(parts, installation, trial)
      lost.resolve(installation)
    } catch (error) {
      log.error({ cause: messageOf(error) }, 'the old version cannot be restored: this one goes on')
    }
  }
  if (state === 'none') {
    note(parts, { ...record, trial: null })
    installation.forgetPrevious()
    return null
  }
  if (state === 'failed') {
    lose('it was started again and again')
    return { accept: () => {}, lost: lost.promise, orphaned: orphaned.promise, stop: () => {}, isOpen: () => true }
  }
  if (state === 'unwatched') note(parts, { ...record, trial: { ...trial, unwatchedStarts: trial.unwatchedStarts + 1 } })
  const look = () => {
    if (process.ppid !== watcherPid) orphaned.resolve()
  }
  const timer =
    state === 'watched'
      ? setInterval(look, WATCHER_POLL_MS)
      : setTimeout(() => lose('no batch was accepted in time'), options.update.trialMs)
  let isAccepted = false
  const accept = () => {
    if (isAccepted) return
    try {
      if (state === 'watched') writeUpdateRecord(dir, { ...record, trial: { ...trial, isConfirmed: true } })
      else keepNewVersion(parts, installation)
    } catch (error) {
      log.error({ cause: messageOf(error) }, 'cannot note that this version works: trying again with the next batch')
      return
    }
    isAccepted = true
    // The watcher ends a version that has won, to become it itself: that it is there still matters.
    if (state !== 'watched') clearTimeout(timer)
    log.info({ version: agentVersion }, 'the collector accepted a batch of this version: the update stays')
  }
  const stop = () => clearTimeout(timer)
  return { accept, lost: lost.promise, orphaned: orphaned.promise, stop, isOpen: () => !isAccepted }
}
