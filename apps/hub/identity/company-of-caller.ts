// In which company a caller works: their own or, by X-Company-Id, one below it that they were granted (decision G-04).
// This is the wall between tenants: what a request reads and writes is of the company that is decided here.
import { type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import type { Caller } from '../platform/http/caller.ts'
import { isUuid } from '../platform/http/request-schema.ts'

const companyRefused = (): ApiError =>
  new ApiError(403, 'forbidden', words('company_not_allowed'), { reason: 'company_not_allowed' })

/**
 * Whether the user was granted the company `t` when the token was made and still is: the token does not get later
 * grants.
 */
const grantedWhenMade = (userId: string, at: string): SQL => sql`exists (
  select 1 from user_company_grants g
  where g.user_id = ${userId} and g.company_id = t.id and g.created_at <= ${at}::timestamptz)`

/**
 * Which of the companies `t` below the caller's own were granted. A token made by another user reaches the companies
 * that both may reach.
 */
function isGranted({ user, madeBy }: Caller): SQL {
  if (madeBy === null)
    return sql`exists (select 1 from user_company_grants g where g.user_id = ${user.id} and g.company_id = t.id)`
  const byUser = grantedWhenMade(user.id, madeBy.at)
  return madeBy.superAdmin ? byUser : sql`${byUser} and ${grantedWhenMade(madeBy.id, madeBy.at)}`
}

/** The companies, the caller's own first, that X-Company-Id may name: granted descendants (decision G-04). */
export async function usableCompanies(db: Executor, caller: Caller): Promise<{ id: string; name: string }[]> {
  if (caller.user.companyId === null) return []
  const rows = await db.execute<{ id: string; name: string }>(sql`
    with recursive tree as (
      select id, name, 0 as depth from companies where id = ${caller.user.companyId}
      union all select c.id, c.name, t.depth + 1 from companies c join tree t on c.parent_id = t.id
        where c.deleted_at is null and t.depth < 32
    )
    select t.id, t.name from tree t where t.depth = 0 or ${isGranted(caller)} order by t.depth, t.name`)
  return [...rows]
}

/** The company to work in. Throws 403 company_not_allowed for one outside the caller's scope. */
export async function companyOf(db: Executor, caller: Caller, header: string | null): Promise<string> {
  const own = caller.user.companyId
  if (header === null || header.trim() === '') {
    if (own === null) throw companyRefused()
    return own
  }
  const asked = header.trim().toLowerCase()
  if (!isUuid(asked)) throw companyRefused()
  if (asked === own) return own
  if (caller.user.superAdmin) {
    const rows = await db.execute(sql`select 1 from companies where id = ${asked} and deleted_at is null`)
    if (rows.length === 0) throw companyRefused()
    return asked
  }
  const usable = await usableCompanies(db, caller)
  if (!usable.some(company => company.id === asked)) throw companyRefused()
  return asked
}
