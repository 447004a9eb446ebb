// From the Authorization header to the agent, and to its session (document 3 "Authentication"; decision G-36). A token
// that was seen before is found by its text, without hashing it for each request. Identity comes from here only.
import { sha256Hex } from '../../../../core/series/hash.ts'
import { type ApiError, unavailable } from '../../../http/api-error.ts'
import { BoundedMap } from '../../bounded-map.ts'
import { type AgentRecord, isTokenOf } from '../../store/registry/agent-record.ts'
import type { AgentRegistry } from '../../store/registry/registry.ts'
import type { UnknownTokenLookup } from '../../store/registry/unknown-token-lookup.ts'
import type { CollectorMetrics } from '../../telemetry.ts'
import { agentRevoked, unauthorized } from '../listener/responses.ts'
import type { AgentSession, Sessions } from './agent-session.ts'
import type { RefusalLog } from './refusal-log.ts'

const TOKEN_CHARS_MAX = 512
const CREDENTIALS_MAX = 250_000

/** Why authentication failed; the reason label of svc_auth_failures_total. */
const authFailures = ['missing', 'unknown', 'expired', 'revoked', 'unavailable'] as const
export type AuthFailure = (typeof authFailures)[number]

/** The error for a caller whose authentication failed. */
export function authError(reason: AuthFailure): ApiError {
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

/** A token that was authenticated, and the agent it belongs to. */
export class Credential<S extends AgentSession> {
  /** The record whose current token this is. When the agent has another record, the token must be checked again. */
  private currentOf: AgentRecord | null = null

  constructor(
    readonly session: S,
    private readonly tokenHash: string,
  ) {}

  isValid(nowMs: number): boolean {
    const { record } = this.session
    if (record === this.currentOf) return true
    if (record.tokenHash === this.tokenHash) this.currentOf = record
    return isTokenOf(record, this.tokenHash, nowMs)
  }
}

/** From the hash of a token to the record of its agent; asks the hub about one that the registry does not have. */
export class Identifier {
  constructor(
    private readonly parts: {
      readonly registry: AgentRegistry
      readonly lookup: UnknownTokenLookup
      readonly metrics: CollectorMetrics
      readonly refusals: RefusalLog
      readonly nowMs: () => number
    },
  ) {
    for (const reason of authFailures) parts.metrics.authFailures.inc({ reason }, 0)
  }

  /** `tokenHash` null: the request carries no token. */
  async identify(tokenHash: string | null): Promise<AgentRecord | AuthFailure> {
    const found = await this.find(tokenHash)
    if (typeof found === 'string') this.parts.metrics.authFailures.inc({ reason: found })
    return found
  }

  /** False when the record was replaced since it was found. */
  isCurrent(record: AgentRecord): boolean {
    return this.parts.registry.byAgent(record.agentId) === record
  }

  private async find(tokenHash: string | null): Promise<AgentRecord | AuthFailure> {
    const { registry, lookup, nowMs } = this.parts
    if (tokenHash === null) return 'missing'
    let match = registry.byTokenHash(tokenHash, nowMs())
    if (!match) {
      // Another process may just have written it: the worker, to which the hub pushes.
      registry.refresh()
      match = registry.byTokenHash(tokenHash, nowMs())
    }
    if (!match) {
      const result = await lookup.resolve(tokenHash)
      if (result === 'unavailable') return 'unavailable'
      match = registry.byTokenHash(tokenHash, nowMs())
      if (!match) return 'unknown'
    }
    if (match.record.state !== 'revoked' && match.isValid) return match.record
    const reason = match.record.state === 'revoked' ? 'revoked' : 'expired'
    this.parts.refusals.noteStranger(match.record, authError(reason))
    return reason
  }
}

export class Authenticator {
  /** By the whole header. */
  private readonly credentials = new BoundedMap<string, Credential<AgentSession>>(CREDENTIALS_MAX)

  constructor(
    private readonly identifier: Identifier,
    private readonly sessions: Sessions,
  ) {}

  /** The session at once for a token that was seen before; else a promise, for the hub may have to be asked. */
  authenticate(header: string | null, nowMs: number): AgentSession | Promise<AgentSession | ApiError> {
    const credential = header === null ? undefined : this.credentials.get(header)
    if (credential && !credential.session.isClosed && credential.isValid(nowMs)) return credential.session
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
    let record = await this.identifier.identify(tokenHash)
    while (typeof record !== 'string' && !this.identifier.isCurrent(record))
      record = await this.identifier.identify(tokenHash)
    if (typeof record === 'string' || header === null || tokenHash === null)
      return authError(typeof record === 'string' ? record : 'missing')
    const session = this.sessions.of(record, nowMs)
    this.credentials.set(header, new Credential(session, tokenHash))
    return session
  }
}
