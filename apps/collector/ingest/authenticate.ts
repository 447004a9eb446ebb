// From the Authorization header to the session of an agent (document 3 "Authentication"; decision G-36). A token that was seen
// before is found by its text: no hash a request. Identity comes from here and from nothing else.
import { sha256Hex } from '../../../core/series/hash.ts'
import type { AgentRegistry } from '../store/registry.ts'
import type { RegistryLookup } from '../store/registry-lookup.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import { type ApiError, agentRevoked, unauthorized, unavailable } from './answers.ts'
import type { AgentSession, Sessions } from './session.ts'

const TOKEN_CHARS_MAX = 512
const CREDENTIALS_MAX = 250_000

type Credential = { readonly session: AgentSession; readonly tokenHash: string }

/** Why a request is not let in; the reason label of svc_auth_failures_total. */
type AuthFailure = 'missing' | 'unknown' | 'expired' | 'revoked' | 'unavailable'

export class Authenticator {
  /** By the whole header. */
  private readonly credentials = new Map<string, Credential>()
  private readonly registry: AgentRegistry
  private readonly lookup: RegistryLookup
  private readonly sessions: Sessions
  private readonly metrics: CollectorMetrics
  private readonly nowMs: () => number

  constructor(parts: {
    readonly registry: AgentRegistry
    readonly lookup: RegistryLookup
    readonly sessions: Sessions
    readonly metrics: CollectorMetrics
    readonly nowMs: () => number
  }) {
    this.registry = parts.registry
    this.lookup = parts.lookup
    this.sessions = parts.sessions
    this.metrics = parts.metrics
    this.nowMs = parts.nowMs
    for (const reason of ['missing', 'unknown', 'expired', 'revoked', 'unavailable'])
      parts.metrics.authFailures.inc({ reason }, 0)
  }

  /** The session at once for a token that was seen before; else a promise, for the hub may have to be asked. */
  authenticate(header: string | null, nowMs: number): AgentSession | Promise<AgentSession | ApiError> {
    const credential = header === null ? undefined : this.credentials.get(header)
    if (credential && !credential.session.isClosed) {
      const { session, tokenHash } = credential
      const { record } = session
      if (record.tokenHash === tokenHash) return session
      if (record.prevTokenHash === tokenHash && nowMs < record.prevTokenExpiresAtMs) return session
    }
    return this.resolve(header, nowMs)
  }

  /** The hash of the token of a header, or null when there is none. */
  static tokenHash(header: string | null): string | null {
    const token = header === null ? null : (/^Bearer +(\S+) *$/i.exec(header)?.[1] ?? null)
    return token === null || token.length > TOKEN_CHARS_MAX ? null : sha256Hex(token)
  }

  private async resolve(header: string | null, nowMs: number): Promise<AgentSession | ApiError> {
    if (header !== null) this.credentials.delete(header)
    const tokenHash = Authenticator.tokenHash(header)
    if (header === null || tokenHash === null) return this.refuse('missing')
    let match = this.registry.byTokenHash(tokenHash, nowMs)
    if (!match) {
      const result = await this.lookup.resolve(tokenHash)
      if (result === 'unavailable') return this.refuse('unavailable')
      match = this.registry.byTokenHash(tokenHash, this.nowMs())
      if (!match) return this.refuse('unknown')
    }
    if (match.record.state === 'revoked') return this.refuse('revoked')
    if (!match.isValid) return this.refuse('expired')
    const session = this.sessions.of(match.record, nowMs)
    if (this.credentials.size >= CREDENTIALS_MAX) this.credentials.clear()
    this.credentials.set(header, { session, tokenHash })
    return session
  }

  private refuse(reason: AuthFailure): ApiError {
    this.metrics.authFailures.inc({ reason })
    switch (reason) {
      case 'revoked':
        return agentRevoked()
      case 'unavailable':
        return unavailable('the token cannot be checked now')
      case 'missing':
      case 'unknown':
      case 'expired':
        return unauthorized()
    }
  }
}
