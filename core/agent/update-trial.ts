// How long a new version of an agent is on trial, and for how long one that failed is not tried again (document 3
// "Proposed update-manifest extension": one accepted batch within 5 minutes, else the old binary, and the version
// failed for 24 hours). The trial itself: apps/agent/update/run-update-trial.ts.
import { DAY_MS } from '../limits.ts'

/** How long the new version has for one accepted batch. */
export const UPDATE_TRIAL_MS = 300_000

/**
 * How often an unconfirmed version may start unwatched. A version that crashes at each start never completes the 5
 * minutes of its trial, so the starts must be bounded.
 */
const UNWATCHED_STARTS_MAX = 5

export type UpdateTrial = {
  readonly version: string
  readonly fromVersion: string
  /** Path of the replaced executable. */
  readonly executable: string
  readonly isConfirmed: boolean
  readonly unwatchedStarts: number
}

export type FailedVersion = { readonly version: string; readonly untilMs: number }

export type UpdateRecord = { readonly trial: UpdateTrial | null; readonly failed: readonly FailedVersion[] }

export const noUpdates: UpdateRecord = { trial: null, failed: [] }

/** Whether a version was rolled back within the last 24 hours. */
export const isVersionFailed = (record: UpdateRecord, version: string, nowMs: number): boolean =>
  record.failed.some(failed => failed.version === version && failed.untilMs > nowMs)

/** The record with a version marked as failed for 24 hours; expired marks are dropped. */
export function withFailed(record: UpdateRecord, version: string, nowMs: number): UpdateRecord {
  const others = record.failed.filter(failed => failed.version !== version && failed.untilMs > nowMs)
  return { ...record, failed: [...others, { version, untilMs: nowMs + DAY_MS }] }
}

/**
 * What a starting agent finds:
 * - none: no trial, or a finished trial of another version
 * - watched: on trial, and the process that installed it watches
 * - unwatched: on trial, and it must watch itself (after a power cut or when the watcher was killed)
 * - failed: on trial, and it must restore the old binary at once
 */
type TrialAtStart = 'none' | 'watched' | 'unwatched' | 'failed'

/**
 * How an agent of `version` has to start. `isWatched` tells whether it was started by the process that watches the
 * trial.
 */
export function trialAtStart(
  record: UpdateRecord,
  agent: { readonly version: string; readonly isWatched: boolean; readonly nowMs: number },
): TrialAtStart {
  const { trial } = record
  if (trial === null || trial.version !== agent.version || trial.isConfirmed) return 'none'
  if (agent.isWatched) return 'watched'
  const isTooOften = trial.unwatchedStarts >= UNWATCHED_STARTS_MAX
  return isTooOften || isVersionFailed(record, agent.version, agent.nowMs) ? 'failed' : 'unwatched'
}
