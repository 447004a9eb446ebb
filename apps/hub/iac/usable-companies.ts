// The companies whose resources the manifests of a caller may name (decision G-126): the caller's own and those granted
// below it; for super administrators every company.
import { sql } from 'drizzle-orm'
import { usableCompanies } from '../identity/company-of-caller.ts'
import { uuidList } from '../platform/db/transaction.ts'
import type { RouteContext } from '../platform/http/route.ts'
import type { UsableCompanies } from './manifest.ts'

const COMPANIES_MAX = 10_000

/** Ids by slug. */
export async function usableCompaniesBySlug({ hub, caller, companyId }: RouteContext): Promise<UsableCompanies> {
  const { db } = hub.database
  const ids = caller.user.superAdmin ? [] : (await usableCompanies(db, caller)).map(company => company.id)
  const list = uuidList([...ids, companyId])
  const rows = await db.execute<{ id: string; slug: string }>(sql`
    select id, slug from companies
    where deleted_at is null and (${caller.user.superAdmin} or id = any(${list}::uuid[]))
    order by slug limit ${COMPANIES_MAX}`)
  return new Map(rows.map(row => [row.slug, row.id]))
}
