// Changes to the companies of the caller's tree: create a child, rename and move it, delete it (decision G-04).
import { eq } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { demandEverything } from '../identity/may-act-on-person.ts'
import { checkCompanyLimit } from '../plans/company-limits.ts'
import { effectivePlan } from '../plans/effective-plan.ts'
import { companies } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { ApiError, invalidField } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { changeParent, createCompany, deleteCompany, rootsOf } from './companies.ts'
import { type Company, findCompany } from './company-list.ts'

const subjectOf = ({ id, name }: Pick<Company, 'id' | 'name'>) => ({ type: 'company', id, name })

/** The parent for a company: one of the tree, or the caller's company where none is given. */
async function parentOf(context: RouteContext, id: string | null | undefined): Promise<string> {
  if (id == null) return context.companyId
  try {
    return (await findCompany(context, id)).id
  } catch (error) {
    if (error instanceof ApiError) throw invalidField('parent_id', 'unknown_reference')
    throw error
  }
}

export async function createChild(
  context: RouteContext,
  { name, parent_id }: { readonly name: string; readonly parent_id?: string | null | undefined },
): Promise<Company> {
  const { hub } = context
  const parentId = await parentOf(context, parent_id)
  const { id } = await inTransaction(hub.database.db, async tx => {
    const made = await createCompany(hub, tx, { name, parentId })
    // The limit counts the whole tree: otherwise each company below could have as many again.
    if (!context.caller.actsAsSuperAdmin)
      for (const top of await rootsOf(tx, [parentId])) await checkCompanyLimit(hub, tx, top, 'companies')
    await auditRequest(tx, context, 'company.create', subjectOf({ id: made.id, name }))
    return made
  })
  return findCompany(context, id)
}

export async function changeChild(
  context: RouteContext,
  before: Company,
  given: { readonly name?: string | undefined; readonly parent_id?: string | undefined },
): Promise<Company> {
  const { hub } = context
  if (given.parent_id !== undefined && before.id === context.companyId) throw invalidField('parent_id', 'immutable')
  const parentId = given.parent_id === undefined ? null : await parentOf(context, given.parent_id)
  // A move changes the plan of everything in the company, and who may reach it.
  if (parentId !== null && parentId !== before.parentId) demandEverything(context.caller)
  await inTransaction(hub.database.db, async tx => {
    if (parentId !== null && parentId !== before.parentId) await changeParent(hub, tx, before.id, parentId)
    if (given.name !== undefined)
      await tx.db.update(companies).set({ name: given.name }).where(eq(companies.id, before.id))
    const changes = changesBetween(
      { name: before.name, parent_id: before.parentId },
      { name: given.name ?? before.name, parent_id: parentId ?? before.parentId },
    )
    await auditRequest(tx, context, 'company.update', subjectOf(before), changes)
  })
  return findCompany(context, before.id)
}

export async function deleteChild(context: RouteContext, row: Company): Promise<void> {
  const { hub } = context
  if (row.id === context.companyId) throw invalidField('company', 'not_self')
  // The deletion also ends the company's users, servers and agents.
  demandEverything(context.caller)
  await inTransaction(hub.database.db, async tx => {
    await deleteCompany(hub, tx, row.id)
    await auditRequest(tx, context, 'company.delete', subjectOf(row))
  })
}

/** The effective plan of a company. */
export async function shownPlan({ hub }: RouteContext, companyId: string) {
  const plan = await effectivePlan(hub.database.db, companyId)
  return { code: plan.code, agent_quota: plan.agentQuota, metrics_retention_days: plan.metricsRetentionDays }
}
