// How it stands with a place where a certificate is served: whether it serves the current leaf, and what counts
// as wrong there. When it is looked at again: look-schedule.ts.
import type { Deployment, DeploymentState } from './deployments.ts'

/** Health is unknown when nobody has looked for so many intervals. */
const INTERVALS_TO_UNKNOWN = 3

type Current = { readonly fingerprint: string; readonly notBefore: Date }

function stateOf(
  { error, fingerprint_sha256: seen, not_after: end, made_by }: Deployment,
  current: Current | null,
  now: Date,
): DeploymentState {
  // Virtual servers and sites often lie where the hub may not look: that is no problem of theirs.
  if (error === 'target_not_allowed' && made_by === 'link') return 'unknown'
  if (error !== null) return 'unreachable'
  if (seen === null) return 'unknown'
  // A leaf that holds from tomorrow on is rightly not served today.
  if (current === null || (seen !== current.fingerprint && current.notBefore <= now)) return 'other'
  return end !== null && end <= now ? 'expired' : 'ok'
}

function problemOf(place: Deployment, state: DeploymentState): string | null {
  if (state === 'ok') return place.chain_complete === false ? 'chain' : null
  return state === 'unknown' ? null : state
}

/** A place as it stands now. `isSeen`: it was looked at just now, so that what is wrong counts once more. */
export function judgedDeployment(place: Deployment, current: Current | null, isSeen: boolean, now: Date): Deployment {
  const state = stateOf(place, current, now)
  const problem = problemOf(place, state)
  const isSame = problem === place.problem
  const failures = problem === null ? 0 : isSame ? place.failures + (isSeen ? 1 : 0) : 1
  return { ...place, state, problem, failures }
}

/** Until when what was seen speaks for the certificate; null when nobody looks. */
export function probeUntil(deployments: readonly Deployment[], interval: number): Date | null {
  const watched = deployments.filter(({ error, made_by }) => !(error === 'target_not_allowed' && made_by === 'link'))
  if (watched.length === 0) return null
  // A place that nobody has looked at says nothing from the beginning.
  const times = watched.map(({ checked_at: at }) => (at === null ? 0 : at.getTime() + INTERVALS_TO_UNKNOWN * interval))
  return new Date(Math.min(...times))
}
