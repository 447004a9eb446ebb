// REST: /teams (group "Identity and permissions").

import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { and, asc, count, eq, sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { teamAnswer } from '../identity/identity-response.ts'
import { referredUser } from '../identity/people.ts'
import { refuseActOn } from '../identity/standing.ts'
import { type Executor, violatedUniqueIndex } from '../platform/db/connect.ts'
import { teamMembers, teams, users } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { isUuid, text, uuid } from '../platform/http/request-schema.ts'
import { answer, answerPage } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'

const TAG = 'Identity and permissions'
const VIEW = ['identity.view']
const MANAGE = ['identity.manage']

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

/** Refuses to touch a team of which a member may do more than the caller. Throws 403. */
const refuseTeamAbove = (context: RouteContext, db: Executor, team: Team): Promise<void> =>
  refuseActOn(db, context.caller, sql`u.id in (select user_id from team_members where team_id = ${team.id})`)

async function saveTeam(context: RouteContext, before: Team | null, name: string) {
  const { hub, companyId } = context
  const id = before?.id ?? randomUUID()
  return inTransaction(hub.database.db, async tx => {
    if (before) await refuseTeamAbove(context, tx.db, before)
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

export const teamRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/teams',
    tag: TAG,
    summary: 'List teams',
    permissions: VIEW,
    query: Type.Object(pageQuery),
    answer: answerPage(teamAnswer),
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
    answer: answer(teamAnswer),
    handle: context => saveTeam(context, null, context.body.name),
  }),
  route({
    method: 'GET',
    path: '/teams/:team',
    tag: TAG,
    summary: 'Show a team',
    permissions: VIEW,
    subject: teamSubject,
    answer: answer(teamAnswer),
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
    answer: answer(teamAnswer),
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
        await refuseTeamAbove(context, tx.db, team)
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
    answer: answer(teamAnswer),
    async handle(context) {
      const { hub, companyId, body, subject: team } = context
      const user = await referredUser(hub.database.db, companyId, body.user_id)
      return inTransaction(hub.database.db, async tx => {
        await refuseActOn(tx.db, context.caller, sql`u.id = ${user.id}`)
        await tx.db.insert(teamMembers).values({ teamId: team.id, userId: user.id }).onConflictDoNothing()
        const changes = { member: { old: null, new: user.id } }
        await auditRequest(tx, context, 'team.member_add', { type: 'team', id: team.id, name: team.name }, changes)
        return { data: await presentTeam(tx.db, team) }
      })
    },
  }),
  route({
    method: 'DELETE',
    path: '/teams/:team/members/:user',
    tag: TAG,
    summary: 'Remove a member',
    permissions: MANAGE,
    subject: teamSubject,
    async handle(context) {
      const { hub, params, subject: team } = context
      const userId = params.user ?? ''
      if (!isUuid(userId)) throw notFound()
      await inTransaction(hub.database.db, async tx => {
        const gone = await tx.db
          .delete(teamMembers)
          .where(and(eq(teamMembers.teamId, team.id), eq(teamMembers.userId, userId)))
          .returning({ id: teamMembers.userId })
        if (gone.length === 0) throw notFound()
        await refuseActOn(tx.db, context.caller, sql`u.id = ${userId}`)
        const changes = { member: { old: userId, new: null } }
        await auditRequest(tx, context, 'team.member_remove', { type: 'team', id: team.id, name: team.name }, changes)
      })
      return undefined
    },
  }),
]
