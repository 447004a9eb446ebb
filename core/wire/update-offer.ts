// To which agents an update manifest is offered (document 3 "GET /update"; decision G-60). What is signed, and what an
// agent makes of an offer, stands in core/agent/update-manifest.ts.
import type { Manifest } from '../agent/update-manifest.ts'
import { compareVersions } from '../agent/version.ts'
import { sha256Words } from '../series/hash.ts'

/** The cohort of an agent, 0..99, from its id alone. */
export const updateCohort = (agentId: string): number => sha256Words(agentId).lo % 100

export type UpdateRequest = {
  readonly agentId: string
  readonly os: string
  readonly arch: string
  readonly channel: string
  /** The version that runs. */
  readonly version: string
}

/**
 * True when the manifest is for this agent: its platform and channel, an older version that may update, inside the
 * cohort.
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
