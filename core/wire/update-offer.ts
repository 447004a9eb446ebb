// Which agents are offered an update manifest (document 3 "GET /update"; decision G-60). core/agent/update-verdict.ts
// has the signed text and the agent's decision about an offer.
import type { Manifest } from '../agent/update-verdict.ts'
import { compareVersions } from '../agent/version.ts'
import { sha256Words } from '../series/hash.ts'

/** The cohort of an agent, 0..99, from its id alone. */
export const updateCohort = (agentId: string): number => sha256Words(agentId).lo % 100

type UpdateRequest = {
  readonly agentId: string
  readonly os: string
  readonly arch: string
  readonly channel: string
  /** The version that the agent runs. */
  readonly version: string
}

/**
 * True when the manifest is for this agent: platform and channel match, its version is older and may update, and its
 * cohort is within the rollout.
 */
export function isUpdateOffered(
  manifest: Manifest & { readonly rolloutPercent: number },
  request: UpdateRequest,
): boolean {
  if (manifest.os !== request.os || manifest.arch !== request.arch || manifest.channel !== request.channel) return false
  const toRunning = compareVersions(manifest.version, request.version)
  if (toRunning === null || toRunning <= 0) return false
  if (manifest.revokedVersions.includes(manifest.version)) return false
  if (manifest.minVersion !== '') {
    const toMinimum = compareVersions(request.version, manifest.minVersion)
    if (toMinimum === null || toMinimum < 0) return false
  }
  return updateCohort(request.agentId) < manifest.rolloutPercent
}
