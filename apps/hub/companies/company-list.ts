// Companies as people see them: the one that they work in, and what is below it (decision G-04).
import { and, asc, eq, isNull, sql } from 'drizzle-orm'
import { companyResponse } from '../identity/identity-response.ts'
import type { Executor } from '../platform/db/connect.ts'
import { companies } from '../platform/db/schema-identity.ts'
import { isAnyOf } from '../platform/db/transaction.ts'
import { notFound } from '../platform/http/api-error.ts'
import { collection, collectionReadBy, equals, ofParent } from '../platform/http/collection.ts'
import { isUuid, uuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'

export type Company = typeof companies.$inferSelect

const ALIVE = isNull(companies.deletedAt)
const BY_NAME = [asc(sql`lower(${companies.name})`), asc(companies.id)]
const selectCompanies = (db: Executor) => db.select().from(companies)

export const presentCompany = (row: Company) => ({
  id: row.id,
  name: row.name,
  slug: row.slug,
  parent_id: row.parentId,
  plan_code: row.planCode,
  plan_expires_at: row.planExpiresAt,
  personal: row.personal,
  suspended_at: row.suspendedAt,
  created_at: row.createdAt,
})

/** The ids of the company the caller works in and of everything below it. */
async function treeIds(db: Executor, companyId: string): Promise<string[]> {
  const rows = await db.execute<{ id: string }>(sql`
    with recursive tree as (
      select id, 0 as depth from companies where id = ${companyId}
      union all select c.id, t.depth + 1 from companies c join tree t on c.parent_id = t.id
        where c.deleted_at is null and t.depth < 32)
    select id from tree`)
  return rows.map(row => row.id)
}

/** The company and those below it, by name. */
export const companyTree = collectionReadBy({
  filters: {},
  within: {},
  async read({ hub, companyId }, _given, { limit, offset }) {
    const { db } = hub.database
    const ids = await treeIds(db, companyId)
    const rows = await selectCompanies(db)
      .where(isAnyOf(companies.id, ids))
      .orderBy(...BY_NAME)
      .limit(limit)
      .offset(offset)
    return { rows, total: ids.length }
  },
  response: companyResponse,
  present: presentCompany,
})

/** Direct children of a company. */
export const childCompanies = collection({
  table: companies,
  scope: ofParent(ALIVE),
  within: { parent_id: equals(companies.parentId, uuid()) },
  select: selectCompanies,
  order: BY_NAME,
  response: companyResponse,
  present: presentCompany,
})

/** A company of the caller's tree; super administrators find every one. Throws 404. */
export async function findCompany(context: RouteContext, id: string): Promise<Company> {
  const { hub, companyId, caller } = context
  const { db } = hub.database
  if (!isUuid(id)) throw notFound()
  if (!caller.actsAsSuperAdmin && !(await treeIds(db, companyId)).includes(id.toLowerCase())) throw notFound()
  const [row] = await selectCompanies(db).where(and(eq(companies.id, id), ALIVE))
  if (!row) throw notFound()
  return row
}
