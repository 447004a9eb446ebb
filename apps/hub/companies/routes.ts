// REST: /companies (group "Identity and permissions"): the caller's company and what is below it.

import { Type } from '@sinclair/typebox'
import { and, asc, eq, sql } from 'drizzle-orm'
import { auditRequest, changesBetween } from '../audit/audit.ts'
import { companyAnswer, companyWithPlan, grantAnswer, grantHolder } from '../identity/identity-response.ts'
import { referredUser } from '../identity/people.ts'
import { demandEverything, refuseActOn } from '../identity/standing.ts'
import type { Executor } from '../platform/db/connect.ts'
import { companies, userCompanyGrants, users } from '../platform/db/schema-identity.ts'
import { inTransaction, lockCompany, uuidList } from '../platform/db/transaction.ts'
import { ApiError, invalidField, notFound } from '../platform/http/api-error.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { isUuid, optional, text, uuid } from '../platform/http/request-schema.ts'
import { answer, answerList, answerPage } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { changeParent, createCompany, deleteCompany } from './companies.ts'
import { checkCompanyLimit } from './company-limits.ts'
import { effectivePlan } from './plan.ts'

const TAG = 'Identity and permissions'
const VIEW = ['identity.view']
const MANAGE = ['identity.manage']

type Company = typeof companies.$inferSelect

const present = (row: Company) => ({
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

/** A company of the caller's tree; super administrators find every one. */
async function find(context: RouteContext, id: string): Promise<Company> {
  const { hub, companyId, caller } = context
  const { db } = hub.database
  if (!isUuid(id)) throw notFound()
  if (!caller.user.superAdmin && !(await treeIds(db, companyId)).includes(id.toLowerCase())) throw notFound()
  const [row] = await db
    .select()
    .from(companies)
    .where(and(eq(companies.id, id), sql`${companies.deletedAt} is null`))
  if (!row) throw notFound()
  return row
}

const subject = (context: RouteContext) => find(context, context.params.company ?? '')

async function listOf(context: RouteContext, ids: readonly string[], query: { page?: number | undefined }) {
  const { hub, url } = context
  const page = pageOf(query)
  const rows = await hub.database.db
    .select()
    .from(companies)
    .where(sql`${companies.id} = any(${uuidList(ids)}::uuid[])`)
    .orderBy(asc(sql`lower(${companies.name})`), asc(companies.id))
    .limit(page.limit)
    .offset(page.offset)
  return paged(url, page, ids.length, rows.map(present))
}

async function parentOf(context: RouteContext, id: string | null | undefined): Promise<string> {
  if (id == null) return context.companyId
  try {
    return (await find(context, id)).id
  } catch (error) {
    if (error instanceof ApiError) throw invalidField('parent_id', 'unknown_reference')
    throw error
  }
}

export const companyRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/companies',
    tag: TAG,
    summary: 'The company and those below it',
    permissions: VIEW,
    query: Type.Object(pageQuery),
    answer: answerPage(companyAnswer),
    handle: async context => listOf(context, await treeIds(context.hub.database.db, context.companyId), context.query),
  }),
  route({
    method: 'POST',
    path: '/companies',
    tag: TAG,
    summary: 'Create a child company',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({ name: text(255), parent_id: optional(uuid()) }),
    answer: answer(companyAnswer),
    async handle(context) {
      const { hub, body } = context
      const parentId = await parentOf(context, body.parent_id)
      const { id } = await inTransaction(hub.database.db, async tx => {
        await lockCompany(tx, context.companyId)
        const made = await createCompany(hub, tx, { name: body.name, parentId })
        if (!context.caller.user.superAdmin) await checkCompanyLimit(hub, tx, context.companyId, 'companies')
        await auditRequest(tx, context, 'company.create', { type: 'company', id: made.id, name: body.name })
        return made
      })
      return { data: present(await find(context, id)) }
    },
  }),
  route({
    method: 'GET',
    path: '/companies/:company',
    tag: TAG,
    summary: 'Show a company with its effective plan',
    permissions: VIEW,
    subject,
    answer: answer(companyWithPlan),
    async handle({ hub, subject }) {
      const plan = await effectivePlan(hub.database.db, subject.id)
      const effective = {
        code: plan.code,
        agent_quota: plan.agentQuota,
        metrics_retention_days: plan.metricsRetentionDays,
      }
      return { data: { ...present(subject), effective_plan: effective } }
    },
  }),
  route({
    method: 'PATCH',
    path: '/companies/:company',
    tag: TAG,
    summary: 'Rename a company, or move it below another one',
    permissions: MANAGE,
    subject,
    body: Type.Object({ name: Type.Optional(text(255)), parent_id: Type.Optional(uuid()) }),
    answer: answer(companyAnswer),
    async handle(context) {
      const { hub, body, subject: before } = context
      if (body.parent_id !== undefined && before.id === context.companyId) throw invalidField('parent_id', 'immutable')
      const parentId = body.parent_id === undefined ? null : await parentOf(context, body.parent_id)
      // The plan of all that is in it, and who may reach it, follow the place in the tree.
      if (parentId !== null && parentId !== before.parentId) demandEverything(context.caller)
      await inTransaction(hub.database.db, async tx => {
        if (parentId !== null && parentId !== before.parentId) await changeParent(hub, tx, before.id, parentId)
        if (body.name !== undefined)
          await tx.db.update(companies).set({ name: body.name }).where(eq(companies.id, before.id))
        const changes = changesBetween(
          { name: before.name, parent_id: before.parentId },
          { name: body.name ?? before.name, parent_id: parentId ?? before.parentId },
        )
        await auditRequest(
          tx,
          context,
          'company.update',
          { type: 'company', id: before.id, name: before.name },
          changes,
        )
      })
      return { data: present(await find(context, before.id)) }
    },
  }),
  route({
    method: 'DELETE',
    path: '/companies/:company',
    tag: TAG,
    summary: 'Delete a child company; its data stay for 30 days',
    permissions: MANAGE,
    subject,
    async handle(context) {
      const { hub, subject: row } = context
      if (row.id === context.companyId) throw invalidField('company', 'not_self')
      // With the company go its people, its servers and its agents.
      demandEverything(context.caller)
      await inTransaction(hub.database.db, async tx => {
        await deleteCompany(hub, tx, row.id)
        await auditRequest(tx, context, 'company.delete', { type: 'company', id: row.id, name: row.name })
      })
      return undefined
    },
  }),
  route({
    method: 'GET',
    path: '/companies/:company/children',
    tag: TAG,
    summary: 'Direct children',
    permissions: VIEW,
    subject,
    query: Type.Object(pageQuery),
    answer: answerPage(companyAnswer),
    async handle(context) {
      const rows = await context.hub.database.db
        .select({ id: companies.id })
        .from(companies)
        .where(and(eq(companies.parentId, context.subject.id), sql`${companies.deletedAt} is null`))
      return listOf(
        context,
        rows.map(row => row.id),
        context.query,
      )
    },
  }),
  route({
    method: 'GET',
    path: '/companies/:company/grants',
    tag: TAG,
    summary: 'Who may work in it through X-Company-Id',
    permissions: VIEW,
    subject,
    answer: answerList(grantHolder),
    async handle({ hub, subject }) {
      const rows = await hub.database.db
        .select({ id: users.id, name: users.name, email: users.email })
        .from(userCompanyGrants)
        .innerJoin(users, eq(users.id, userCompanyGrants.userId))
        .where(eq(userCompanyGrants.companyId, subject.id))
        .orderBy(asc(sql`lower(${users.name})`), asc(users.id))
      return { data: rows }
    },
  }),
  route({
    method: 'POST',
    path: '/companies/:company/grants',
    tag: TAG,
    summary: "Let a user of the caller's company work in it",
    permissions: MANAGE,
    subject,
    status: 201,
    body: Type.Object({ user_id: uuid() }),
    answer: answer(grantAnswer),
    async handle(context) {
      const { hub, companyId, body, subject: row } = context
      const user = await referredUser(hub.database.db, companyId, body.user_id)
      await inTransaction(hub.database.db, async tx => {
        await refuseActOn(tx.db, context.caller, sql`u.id = ${user.id}`)
        await tx.db.insert(userCompanyGrants).values({ userId: user.id, companyId: row.id }).onConflictDoNothing()
        await auditRequest(
          tx,
          context,
          'company.grant',
          { type: 'company', id: row.id, name: row.name },
          {
            user_id: { old: null, new: user.id },
          },
        )
      })
      return { data: { company_id: row.id, user: { id: user.id, name: user.name } } }
    },
  }),
  route({
    method: 'DELETE',
    path: '/companies/:company/grants/:user',
    tag: TAG,
    summary: 'Withdraw a grant',
    permissions: MANAGE,
    subject,
    async handle(context) {
      const { hub, params, subject: row } = context
      const userId = params.user ?? ''
      if (!isUuid(userId)) throw notFound()
      await inTransaction(hub.database.db, async tx => {
        const gone = await tx.db
          .delete(userCompanyGrants)
          .where(and(eq(userCompanyGrants.companyId, row.id), eq(userCompanyGrants.userId, userId)))
          .returning({ id: userCompanyGrants.userId })
        if (gone.length === 0) throw notFound()
        await refuseActOn(tx.db, context.caller, sql`u.id = ${userId}`)
        await auditRequest(tx, context, 'company.revoke_grant', { type: 'company', id: row.id, name: row.name })
      })
      return undefined
    },
  }),
]
