// Grants: who may work in a company below their own, through X-Company-Id (decision G-04).
import { and, asc, eq, sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { refuseActOn } from '../identity/may-act-on-person.ts'
import { referredUser } from '../identity/users-and-roles.ts'
import type { Executor } from '../platform/db/connect.ts'
import { userCompanyGrants, users } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { notFound } from '../platform/http/api-error.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import type { Company } from './company-list.ts'

const subjectOf = ({ id, name }: Company) => ({ type: 'company', id, name })

/** By name. */
export const holdersOf = (db: Executor, companyId: string): Promise<{ id: string; name: string; email: string }[]> =>
  db
    .select({ id: users.id, name: users.name, email: users.email })
    .from(userCompanyGrants)
    .innerJoin(users, eq(users.id, userCompanyGrants.userId))
    .where(eq(userCompanyGrants.companyId, companyId))
    .orderBy(asc(sql`lower(${users.name})`), asc(users.id))

/** A repeated grant changes nothing. Throws 422 for a user who is not of the caller's company. */
export async function grant(context: RouteContext, row: Company, userId: string) {
  const { hub, companyId } = context
  const user = await inTransaction(hub.database.db, async tx => {
    const user = await referredUser(tx, companyId, userId)
    await refuseActOn(tx.db, context.caller, sql`u.id = ${user.id}`)
    await tx.db.insert(userCompanyGrants).values({ userId: user.id, companyId: row.id }).onConflictDoNothing()
    await auditRequest(tx, context, 'company.grant', subjectOf(row), { user_id: { old: null, new: user.id } })
    return user
  })
  return { company_id: row.id, user: { id: user.id, name: user.name } }
}

/** Throws 404 for a user without a grant. */
export async function withdrawGrant(context: RouteContext, row: Company, userId: string): Promise<void> {
  if (!isUuid(userId)) throw notFound()
  await inTransaction(context.hub.database.db, async tx => {
    const gone = await tx.db
      .delete(userCompanyGrants)
      .where(and(eq(userCompanyGrants.companyId, row.id), eq(userCompanyGrants.userId, userId)))
      .returning({ id: userCompanyGrants.userId })
    if (gone.length === 0) throw notFound()
    await refuseActOn(tx.db, context.caller, sql`u.id = ${userId}`)
    await auditRequest(tx, context, 'company.revoke_grant', subjectOf(row))
  })
}
