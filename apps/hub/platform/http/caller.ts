// Who makes a request, as every route knows them; and what the pipeline asks of identity, which reads it from the
// database.
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
  /** A super administrator whose credential is not limited: a token for a few permissions has no power over the hub. */
  readonly actsAsSuperAdmin: boolean
  /** The permissions with which a limited token may reach the account of its person; null: the whole account. */
  readonly accountPermissions: ReadonlySet<string> | null
  /** Who made the token for its user, and when; null: the user, or a command of the hub. */
  readonly madeBy: { readonly id: string; readonly superAdmin: boolean; readonly at: string } | null
  readonly ipRanges: readonly string[] | null
  /** Null: the hub's default. */
  readonly ratePerMinute: number | null
  /**
   * Of a token that was issued on the screen: the requests a minute that its company may give it. Null: the hub's
   * bound.
   */
  readonly rateMax: number | null
  readonly isIssued: boolean
  readonly csrfToken: string | null
}

export const sessionCookie = 'hub_session'

export type Identity = {
  /** The caller of a request, by its Authorization header, else by its session cookie. Throws 401. */
  readonly authenticate: (db: Executor, request: Request) => Promise<Caller>
  /** The company to work in, given X-Company-Id. Throws 403 for one outside the caller's scope. */
  readonly companyOf: (db: Executor, caller: Caller, header: string | null) => Promise<string>
}
