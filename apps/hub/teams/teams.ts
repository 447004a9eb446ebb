// Teams: people of a company under one name.
import { and, asc, eq, sql } from 'drizzle-orm'
import { leaveSteps } from '../approvals/leave-steps.ts'
import { auditRequest } from '../audit/audit.ts'
import { recorded } from '../audit/change-with-audit.ts'
import { teamResponse } from '../identity/identity-response.ts'
import { refuseActOn } from '../identity/may-act-on-person.ts'
import { referredUser } from '../identity/users-and-roles.ts'
import { violatedUniqueIndex } from '../platform/db/connect.ts'
import { teamMembers, teams } from '../platform/db/schema-identity.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { collection, ofCompany } from '../platform/http/collection.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { disown } from '../resources/resources-of-deleted-team.ts'

type Member = { readonly id: string; readonly name: string }

// The table is named in full: a column of the only table of a select is rendered bare, which here would mean the
// member's.
export const MEMBERS = sql<Member[]>`(select coalesce(json_agg(json_build_object('id', u.id, 'name', u.name)
  order by lower(u.name), u.id), '[]') from team_members m join users u on u.id = m.user_id where m.team_id = teams.id)`

export const teamCollection = collection({
  table: teams,
  scope: ofCompany(teams.companyId),
  select: db => db.select({ team: teams, members: MEMBERS }).from(teams),
  order: [asc(sql`lower(${teams.name})`), asc(teams.id)],
  response: teamResponse,
  present: ({ team, members }) => ({
    id: team.id,
    company_id: team.companyId,
    name: team.name,
    members,
    created_at: team.createdAt,
  }),
})

type TeamRow = Awaited<ReturnType<typeof teamCollection.find>>
type TeamInput = { readonly name: string }

const changes = recorded({
  type: 'team',
  of: teamCollection,
  named: ({ team }: TeamRow) => ({ id: team.id, name: team.name }),
})

/** Refuses to touch a team of which a member may do more than the caller. Throws 403. */
const refuseTeamAbove = (context: RouteContext, tx: Tx, { team }: TeamRow): Promise<void> =>
  refuseActOn(tx.db, context.caller, sql`u.id in (select user_id from team_members where team_id = ${team.id})`)

async function refuseTakenName(act: PromiseLike<unknown>): Promise<void> {
  try {
    await act
  } catch (error) {
    if (violatedUniqueIndex(error) === 'teams_name') throw invalidField('name', 'taken')
    throw error
  }
}

export const createTeam = (context: RouteContext, { name }: TeamInput): Promise<TeamRow> =>
  changes.create(context, (tx, id) =>
    refuseTakenName(tx.db.insert(teams).values({ id, companyId: context.companyId, name })),
  )

export const renameTeam = (context: RouteContext, { team }: TeamRow, { name }: TeamInput): Promise<TeamRow> =>
  changes.change(context, team.id, async (tx, before) => {
    await refuseTeamAbove(context, tx, before)
    await refuseTakenName(tx.db.update(teams).set({ name }).where(eq(teams.id, team.id)))
  })

export const deleteTeam = (context: RouteContext, { team }: TeamRow): Promise<void> =>
  changes.delete(context, team.id, async (tx, row) => {
    await refuseTeamAbove(context, tx, row)
    await leaveSteps(tx, context, { kind: 'team', id: team.id })
    await disown(context, tx, row.team)
    await tx.db.delete(teams).where(eq(teams.id, team.id))
  })

const auditMember = (
  tx: Tx,
  context: RouteContext,
  { team }: TeamRow,
  action: string,
  was: string | null,
  is: string | null,
) =>
  auditRequest(tx, context, action, { type: 'team', id: team.id, name: team.name }, { member: { old: was, new: is } })

/** Once more changes nothing. Throws 422 for somebody who is no user of the company. */
export async function addMember(context: RouteContext, row: TeamRow, userId: string): Promise<TeamRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    // First the team, as its deletion does.
    await teamCollection.lock(tx, companyId, row.team.id)
    const user = await referredUser(tx, companyId, userId)
    await refuseActOn(tx.db, context.caller, sql`u.id = ${user.id}`)
    await tx.db.insert(teamMembers).values({ teamId: row.team.id, userId: user.id }).onConflictDoNothing()
    await auditMember(tx, context, row, 'team.member_add', null, user.id)
    return teamCollection.find(tx.db, companyId, row.team.id)
  })
}

/** Throws 404 for somebody who is not in the team. */
export async function removeMember(context: RouteContext, row: TeamRow, userId: string): Promise<void> {
  if (!isUuid(userId)) throw notFound()
  await inTransaction(context.hub.database.db, async tx => {
    const gone = await tx.db
      .delete(teamMembers)
      .where(and(eq(teamMembers.teamId, row.team.id), eq(teamMembers.userId, userId)))
      .returning({ id: teamMembers.userId })
    if (gone.length === 0) throw notFound()
    await refuseActOn(tx.db, context.caller, sql`u.id = ${userId}`)
    await auditMember(tx, context, row, 'team.member_remove', userId, null)
  })
}
