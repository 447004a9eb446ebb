// Enrollment: the licence becomes an identity (document 3 "Agent to collector" /enroll, "Errors"; decisions G-26,
// G-27).
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { type Action, actionFor } from '../../../core/agent/response-action.ts'
import {
  type AgentConfig,
  EnrollRequestSchema,
  EnrollResponseSchema,
} from '../../../proto/gen/svc/agent/v1/agent_pb.ts'
import { hostName, ipAddresses, machineId, osInfo } from '../collectors/host.ts'
import type { HostFiles } from '../collectors/host-files.ts'
import { agentVersion } from '../config.ts'
import { type Identity, isAgentToken, licenseHash } from '../state/identity.ts'
import type { StateDir } from '../state/state-dir.ts'
import type { CollectorClient, Reply } from './collector-client.ts'

type Enrollment =
  | { readonly kind: 'enrolled'; readonly identity: Identity; readonly config: AgentConfig | null }
  | { readonly kind: 'refused'; readonly message: string }
  | {
      readonly kind: 'later'
      readonly message: string
      readonly retryAfterMs: number | null
      readonly isUpgradeRequired: boolean
    }

type EnrollmentContext = {
  readonly client: CollectorClient
  readonly dir: StateDir
  readonly files: HostFiles
  readonly platform: string
  readonly collectorUrl: string
  readonly nowMs: number
}

/** What an operator can do about a refusal. */
const ADVICE: Readonly<Record<string, string>> = {
  invalid_token: 'the licence is not known: check it',
  token_revoked: 'the licence is revoked or replaced: use the current one',
  token_expired: 'the licence has expired: use another one',
  token_used: 'the licence has no uses left: raise its max_uses, or use another one',
  already_enrolled: 'this host is enrolled already: revoke its agent on the hub first',
  binding_failed: 'no server fits this host: create it on the hub with this hostname or address, or pin the licence',
  quota_exceeded: 'the plan has no room for another agent',
}

function requestBody(license: string, { dir, files, platform }: EnrollmentContext): Uint8Array {
  return toBinary(
    EnrollRequestSchema,
    create(EnrollRequestSchema, {
      license,
      hostname: hostName(),
      ipAddresses: ipAddresses(),
      machineId: machineId(files, platform, dir),
      os: osInfo(files, platform),
      agentVersion,
    }),
  )
}

function enrolled(reply: Reply, license: string, context: EnrollmentContext): Enrollment {
  try {
    const response = fromBinary(EnrollResponseSchema, reply.body)
    if (response.agentId === '' || !isAgentToken(response.agentToken)) throw new Error('no agent_id or agent_token')
    const identity: Identity = {
      agentId: response.agentId,
      token: response.agentToken,
      issuedAtMs: context.nowMs,
      collectorUrl: context.collectorUrl,
      licenseHash: licenseHash(license),
      isRevoked: false,
    }
    return { kind: 'enrolled', identity, config: response.config ?? null }
  } catch {
    // Asking again would use up the licence a second time, or meet already_enrolled.
    return { kind: 'refused', message: 'the collector answered an enrollment that cannot be understood' }
  }
}

/** As much as an enrollment has to keep, with room to spare: an empty file would take no block of a full disk. */
const PROBE_BYTES = 16 * 1024

/**
 * Why a token could not be stored; null when it can, and the folders are there. Checked before the licence is used,
 * since a token is issued only once.
 */
function storageFault(dir: StateDir): string | null {
  try {
    dir.bufferPath()
    try {
      dir.write('probe', '-'.repeat(PROBE_BYTES), true)
    } finally {
      dir.remove('probe')
    }
    return null
  } catch (error) {
    return `cannot keep a token in the state directory: ${error instanceof Error ? error.message : String(error)}`
  }
}

/** One attempt. */
export async function enroll(license: string, context: EnrollmentContext): Promise<Enrollment> {
  const fault = storageFault(context.dir)
  if (fault !== null) return { kind: 'later', message: fault, retryAfterMs: null, isUpgradeRequired: false }
  const body = requestBody(license, context)
  const reply = await context.client.call({ method: 'POST', path: '/enroll', token: null, body })
  const action: Action = actionFor('enroll', reply)
  if (action === 'success') return enrolled(reply, license, context)
  const code = reply.kind === 'answer' ? reply.code : null
  const advice = code !== null ? ADVICE[code] : undefined
  const message = `enrollment: ${code ? `${code}: ` : ''}${advice ?? reply.message}`
  if (action === 'report') return { kind: 'refused', message }
  const retryAfterMs = reply.kind === 'answer' ? reply.retryAfterMs : null
  return { kind: 'later', message, retryAfterMs, isUpgradeRequired: action === 'upgrade' }
}
