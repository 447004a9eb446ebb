// REST: /companies and /teams (group "Identity and permissions"): the caller's company and what is below it.
import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { and, asc, count, eq, sql } from 'drizzle-orm'
import { auditRequest, changesBetween } from '../audit/audit.ts'
import { type Executor, violatedUniqueIndex } from '../db/connect.ts'
import { companies, teamMembers, teams, userCompanyGrants, users } from '../db/schema-identity.ts'
import { inTransaction, uuidList } from '../db/transaction.ts'
import { invalidField, notFound } from '../http/api-error.ts'
import { paged, pageOf, pageQuery } from '../http/paging.ts'
import { type Route, type RouteContext, route } from '../http/route.ts'
import { isUuid, optional, text, uuid } from '../http/schema.ts'
import { findUser } from '../identity/people.ts'
import { changeParent, createCompany, deleteCompany } from './companies.ts'
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
  } catch {
    throw invalidField('parent_id', 'unknown_reference')
  }
}

const companyRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/companies',
    tag: TAG,
    summary: 'The company and those below it',
    permissions: VIEW,
    query: Type.Object(pageQuery),
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
    async handle(context) {
      const { hub, body } = context
      const parentId = await parentOf(context, body.parent_id)
      const { id } = await inTransaction(hub.database.db, async tx => {
        const made = await createCompany(hub, tx, { name: body.name, parentId })
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
    async handle(context) {
      const { hub, body, subject: before } = context
      if (body.parent_id !== undefined && before.id === context.companyId) throw invalidField('parent_id', 'immutable')
      const parentId = body.parent_id === undefined ? null : await parentOf(context, body.parent_id)
      await inTransaction(hub.database.db, async tx => {
        if (body.name !== undefined)
          await tx.db.update(companies).set({ name: body.name }).where(eq(companies.id, before.id))
        if (parentId !== null && parentId !== before.parentId) await changeParent(hub, tx, before.id, parentId)
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
    async handle(context) {
      const { hub, companyId, body, subject: row } = context
      const { user } = await findUser(hub.database.db, companyId, body.user_id).catch(() => {
        throw invalidField('user_id', 'unknown_reference')
      })
      await inTransaction(hub.database.db, async tx => {
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
        await auditRequest(tx, context, 'company.revoke_grant', { type: 'company', id: row.id, name: row.name })
      })
      return undefined
    },
  }),
]

type Team = typeof teams.$inferSelect

async function findTeam(db: Executor, companyId: string, id: string): Promise<Team> {
  if (!isUuid(id)) throw notFound()
  const [row] = await db
    .select()
    .from(teams)
    .where(and(eq(teams.companyId, companyId), eq(teams.id, id)))
  if (!row) throw notFound()
  return row
}

const teamSubject = ({ hub, companyId, params }: RouteContext) =>
  findTeam(hub.database.db, companyId, params.team ?? '')

async function presentTeam(db: Executor, team: Team) {
  const members = await db
    .select({ id: users.id, name: users.name })
    .from(teamMembers)
    .innerJoin(users, eq(users.id, teamMembers.userId))
    .where(eq(teamMembers.teamId, team.id))
    .orderBy(asc(sql`lower(${users.name})`), asc(users.id))
  return { id: team.id, company_id: team.companyId, name: team.name, members, created_at: team.createdAt }
}

async function saveTeam(context: RouteContext, before: Team | null, name: string) {
  const { hub, companyId } = context
  const id = before?.id ?? randomUUID()
  return inTransaction(hub.database.db, async tx => {
    try {
      if (before) await tx.db.update(teams).set({ name }).where(eq(teams.id, id))
      else await tx.db.insert(teams).values({ id, companyId, name })
    } catch (error) {
      if (violatedUniqueIndex(error) === 'teams_name') throw invalidField('name', 'taken')
      throw error
    }
    await auditRequest(tx, context, before ? 'team.update' : 'team.create', { type: 'team', id, name })
    return { data: await presentTeam(tx.db, await findTeam(tx.db, companyId, id)) }
  })
}

const teamRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/teams',
    tag: TAG,
    summary: 'List teams',
    permissions: VIEW,
    query: Type.Object(pageQuery),
    async handle({ hub, companyId, query, url }) {
      const page = pageOf(query)
      const { db } = hub.database
      const where = eq(teams.companyId, companyId)
      const [rows, totals] = await Promise.all([
        db
          .select()
          .from(teams)
          .where(where)
          .orderBy(asc(sql`lower(${teams.name})`))
          .limit(page.limit)
          .offset(page.offset),
        db.select({ total: count() }).from(teams).where(where),
      ])
      return paged(url, page, totals[0]?.total ?? 0, await Promise.all(rows.map(row => presentTeam(db, row))))
    },
  }),
  route({
    method: 'POST',
    path: '/teams',
    tag: TAG,
    summary: 'Create a team',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({ name: text(255) }),
    handle: context => saveTeam(context, null, context.body.name),
  }),
  route({
    method: 'GET',
    path: '/teams/:team',
    tag: TAG,
    summary: 'Show a team',
    permissions: VIEW,
    subject: teamSubject,
    handle: async ({ hub, subject }) => ({ data: await presentTeam(hub.database.db, subject) }),
  }),
  route({
    method: 'PATCH',
    path: '/teams/:team',
    tag: TAG,
    summary: 'Rename a team',
    permissions: MANAGE,
    subject: teamSubject,
    body: Type.Object({ name: text(255) }),
    handle: context => saveTeam(context, context.subject, context.body.name),
  }),
  route({
    method: 'DELETE',
    path: '/teams/:team',
    tag: TAG,
    summary: 'Delete a team',
    permissions: MANAGE,
    subject: teamSubject,
    async handle(context) {
      const { hub, subject: team } = context
      await inTransaction(hub.database.db, async tx => {
        await tx.db.delete(teams).where(eq(teams.id, team.id))
        await auditRequest(tx, context, 'team.delete', { type: 'team', id: team.id, name: team.name })
      })
      return undefined
    },
  }),
  route({
    method: 'POST',
    path: '/teams/:team/members',
    tag: TAG,
    summary: 'Add a member',
    permissions: MANAGE,
    subject: teamSubject,
    status: 201,
    body: Type.Object({ user_id: uuid() }),
    async handle({ hub, companyId, body, subject: team }) {
      const { db } = hub.database
      const { user } = await findUser(db, companyId, body.user_id).catch(() => {
        throw invalidField('user_id', 'unknown_reference')
      })
      await db.insert(teamMembers).values({ teamId: team.id, userId: user.id }).onConflictDoNothing()
      return { data: await presentTeam(db, team) }
    },
  }),
  route({
    method: 'DELETE',
    path: '/teams/:team/members/:user',
    tag: TAG,
    summary: 'Remove a member',
    permissions: MANAGE,
    subject: teamSubject,
    async handle({ hub, params, subject: team }) {
      const userId = params.user ?? ''
      if (!isUuid(userId)) throw notFound()
      const gone = await hub.database.db
        .delete(teamMembers)
        .where(and(eq(teamMembers.teamId, team.id), eq(teamMembers.userId, userId)))
        .returning({ id: teamMembers.userId })
      if (gone.length === 0) throw notFound()
      return undefined
    },
  }),
]

export const companyAndTeamRoutes: readonly Route[] = [...companyRoutes, ...teamRoutes]
