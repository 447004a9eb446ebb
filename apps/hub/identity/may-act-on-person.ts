// Who may act on whom. Nobody acts on a person, a role, a team or an invitation that has more permissions than they do:
// with identity.manage alone an administrator could be locked out, or their address be taken over (decision G-03).
import { type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { ApiError, invalidField } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import type { Caller } from '../platform/http/caller.ts'
import { expandPermissions, keysBeyond, wildcard } from './permission-keys.ts'

/** The permissions of the caller's credential, which may be fewer than those of its user when the token is limited. */
type Actor = Pick<Caller, 'permissions' | 'actsAsSuperAdmin'>

const refused = (permission: string): ApiError =>
  new ApiError(403, 'forbidden', words('may_do_more', { permission }), { reason: 'permission_denied' })

/** Refuses an action on permissions that the caller does not hold. Throws 403. */
export function refuseAbove(actor: Actor, permissions: readonly string[]): void {
  if (actor.actsAsSuperAdmin) return
  const beyond = new Set(keysBeyond(actor.permissions))
  for (const permission of expandPermissions(permissions)) if (beyond.has(permission)) throw refused(permission)
}

/** Requires every assignable permission: for an action that ends or moves everything of a company. Throws 403. */
export const demandEverything = (actor: Actor): void => refuseAbove(actor, [wildcard])

/**
 * Refuses to act on users of whom one has a permission that the caller does not hold, or is a super administrator.
 * `which` is a condition on `u` that selects the users. They are locked, so that nobody extends their permissions
 * meanwhile. Throws 403, and 422 for a super administrator.
 */
export async function refuseActOn(db: Executor, actor: Actor, which: SQL): Promise<void> {
  if (actor.actsAsSuperAdmin) return
  const beyond = keysBeyond(actor.permissions)
  const rows = await db.execute<{ super_admin: boolean; key: string | null }>(sql`
    select u.super_admin, (
      select key from (
        select unnest(u.permissions) as key
        union all select unnest(r.permissions) from user_roles ur join roles r on r.id = ur.role_id where ur.user_id = u.id) held
      where key = any(${`{${beyond.join(',')}}`}::text[]) limit 1) as key
    from users u where ${which} order by u.id for no key update of u`)
  for (const row of rows) {
    if (row.super_admin) throw invalidField('user', 'super_admin_only')
    if (row.key !== null) throw refused(row.key === wildcard ? (beyond[1] ?? wildcard) : row.key)
  }
}
