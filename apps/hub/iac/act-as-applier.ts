// The background work of a run, as the person who applies it: what it writes is theirs, in the audit log too.
import { and, eq, isNull } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import type { AuditChanges } from '../platform/db/schema-identity.ts'
import { users } from '../platform/db/schema-identity.ts'
import { joining, type Tx } from '../platform/db/transaction.ts'
import type { Language } from '../platform/http/api-texts.ts'
import type { Caller } from '../platform/http/caller.ts'
import type { RouteContext } from '../platform/http/route.ts'

export type Applier = Caller['user']

/** The person with an id; null when they are gone or disabled meanwhile. */
export async function loadApplier(hub: Hub, id: string | null): Promise<Applier | null> {
  if (id === null) return null
  const [row] = await hub.database.db
    .select()
    .from(users)
    .where(and(eq(users.id, id), isNull(users.disabledAt)))
  if (!row) return null
  const { kind, name, email, companyId, superAdmin } = row
  return { id, kind, name, email, companyId, superAdmin }
}

/** The hub, whose acts are part of a transaction. */
export const hubWithin = (hub: Hub, tx: Tx): Hub => ({ ...hub, database: { ...hub.database, db: joining(tx) } })

/** A context for acts that no request asked for itself. */
export const actingContext = (
  hub: Hub,
  user: Applier,
  companyId: string,
  permissions: readonly string[],
  language: Language,
  auditNote: AuditChanges,
): RouteContext => ({
  hub,
  caller: {
    kind: 'session',
    credentialId: '',
    user,
    permissions: new Set(permissions),
    actsAsSuperAdmin: false,
    accountPermissions: null,
    madeBy: null,
    ipRanges: null,
    ratePerMinute: null,
    rateMax: null,
    isIssued: false,
    csrfToken: null,
  },
  companyId,
  params: {},
  ip: '',
  forwardedFor: null,
  userAgent: null,
  language,
  url: new URL('http://hub.invalid/'),
  header: () => null,
  signal: () => new AbortController().signal,
  isStillAdmitted: async () => true,
  auditNote,
})
