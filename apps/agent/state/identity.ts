// Who this agent is, as enrollment made it: the file `token` of the state directory.
import { sha256Hex } from '../../../core/series/hash.ts'
import { IDENTITY_FILE } from '../config.ts'
import type { StateDir } from './state-dir.ts'

export type Identity = {
  readonly agentId: string
  readonly token: string
  readonly issuedAtMs: number
  readonly collectorUrl: string
  /**
   * Hash of the licence it was enrolled with: another licence in the configuration is an operator's wish to enroll
   * anew.
   */
  readonly licenseHash: string
  /** The collector said agent_revoked: nothing is sent until the host is enrolled again. */
  readonly isRevoked: boolean
}

/**
 * Whether text is a token of an agent (decision G-196). Anything else, a line break in it above all, would make every
 * later request impossible.
 */
export const isAgentToken = (text: string): boolean => /^agt_[0-9A-Za-z]{20,200}$/.test(text)

export const licenseHash = (license: string): string => sha256Hex(license)

/** The identity on disk; null when this host was never enrolled, or the file cannot be understood. */
export function readIdentity(state: StateDir): Identity | null {
  const text = state.read(IDENTITY_FILE)
  if (text === null) return null
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return null
  }
  if (typeof parsed !== 'object' || parsed === null) return null
  const fields = new Map<string, unknown>(Object.entries(parsed))
  const agentId = fields.get('agent_id')
  const token = fields.get('agent_token')
  const issuedAtMs = fields.get('issued_at_ms')
  const collectorUrl = fields.get('collector_url')
  const hash = fields.get('license_hash')
  if (typeof agentId !== 'string' || typeof token !== 'string' || typeof issuedAtMs !== 'number') return null
  if (typeof collectorUrl !== 'string' || agentId === '' || token === '') return null
  return {
    agentId,
    token,
    issuedAtMs,
    collectorUrl,
    licenseHash: typeof hash === 'string' ? hash : '',
    isRevoked: fields.get('revoked') === true,
  }
}

/** Keeps the identity, durably. Throws when the disk refuses; the earlier file then stands as it was. */
export function writeIdentity(state: StateDir, identity: Identity): void {
  const document = {
    agent_id: identity.agentId,
    agent_token: identity.token,
    issued_at_ms: identity.issuedAtMs,
    collector_url: identity.collectorUrl,
    license_hash: identity.licenseHash,
    revoked: identity.isRevoked,
  }
  state.write(IDENTITY_FILE, `${JSON.stringify(document, null, 2)}\n`, true)
}
