// The caller of a request, as every route sees it, and the calls of identity by which the pipeline reads it from the
// database.
import type { IncomingRequest } from '../../../http/http-request.ts'
import type { Executor } from '../db/connect.ts'

export type Caller = {
  readonly kind: 'token' | 'session'
  /** Id of the API token or of the session. */
  readonly credentialId: string
  readonly user: {
    readonly id: string
    readonly kind: 'person' | 'collector' | 'matcher'
    readonly name: string
    readonly email: string
    readonly companyId: string | null
    readonly superAdmin: boolean
  }
  readonly permissions: ReadonlySet<string>
  /**
   * True for a super administrator with an unrestricted credential: a token for a few permissions has no power over the
   * hub.
   */
  readonly actsAsSuperAdmin: boolean
  /**
   * The permissions that let a restricted token reach the account of its user; null when it may reach the whole
   * account.
   */
  readonly accountPermissions: ReadonlySet<string> | null
  /** Who created the token for its user, and when; null when the user or a command of the hub created it. */
  readonly madeBy: { readonly id: string; readonly superAdmin: boolean; readonly at: string } | null
  readonly ipRanges: readonly string[] | null
  /** Requests a minute; null means the hub's default. */
  readonly ratePerMinute: number | null
  /**
   * The most requests a minute that the company may give to a token created in the web interface. Null means the hub's
   * bound.
   */
  readonly rateMax: number | null
  readonly isIssued: boolean
  readonly csrfToken: string | null
}

export const sessionCookie = 'hub_session'

export type Identity = {
  /** Returns the caller of a request, by its Authorization header or else its session cookie. Throws 401. */
  readonly authenticate: (db: Executor, request: IncomingRequest) => Promise<Caller>
  /** Returns the company to work in, given X-Company-Id. Throws 403 for a company outside the caller's scope. */
  readonly companyOf: (db: Executor, caller: Caller, header: string | null) => Promise<string>
}
