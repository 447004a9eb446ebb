// What the internal API needs from the rest of the matcher.
import type { MatcherState } from '../state/state-types.ts'
import type { Cursors } from './cursor.ts'

export type MatcherAdminDeps = {
  readonly state: MatcherState
  readonly cursors: Cursors
  /** The tokens that open the API now: `admin.token`, and `admin.token_previous` while it is set. */
  readonly tokens: () => readonly string[]
  /** Resolves when no event of the company is on its way to the hub. */
  readonly untilUnsent: (companyId: string) => Promise<void>
  /** Starts an update of the vulnerability database. */
  readonly updateDatabase: () => void
  readonly status: () => Readonly<Record<string, unknown>>
  /** `path` is that of the route, and `other` for one that no route has. */
  readonly onRequest: (method: string, path: string, status: number, seconds: number) => void
  readonly onError: (what: string, error: unknown) => void
}
