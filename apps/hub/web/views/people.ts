// The people of a company, whom it has invited, its teams; and its roles with what each of them may.

import { asc, desc, eq, sql } from 'drizzle-orm'
import { assignablePermissions, wildcard } from '../../identity/permission-keys.ts'
import { rolesFor } from '../../identity/role-list.ts'
import { people, ROLES_OF_USER } from '../../identity/user-list.ts'
import { invitations, roles, teams, users } from '../../platform/db/schema-identity.ts'
import { MEMBERS } from '../../teams/teams.ts'
import { matchesFilter, parseFilter } from '../address/filter-language.ts'
import { sitePages } from '../address/site-map.ts'
import type { InvitationRow, Named, PeopleView, PersonRow, RolesView } from './administration-pages.ts'
import { askedOffset, type View, type ViewContext } from './view.ts'

const WINDOW = 60
/** The first by name: others are found over the API. */
const READ_MAX = 5_000

const TEAMS = sql<
  Named[]
>`(select coalesce(json_agg(json_build_object('id', t.id, 'name', t.name) order by lower(t.name)), '[]')
  from team_members m join teams t on t.id = m.team_id where m.user_id = users.id)`
const LAST_SEEN = sql<string | null>`(select max(s.last_seen_at) from sessions s where s.user_id = users.id)`
const HAS_SECOND_FACTOR = sql<boolean>`exists (select 1 from user_second_factors f where f.user_id = users.id)`

async function allPeople({ hub, companyId }: ViewContext): Promise<PersonRow[]> {
  const rows = await hub.database.db
    .select({
      user: users,
      roles: ROLES_OF_USER,
      teams: TEAMS,
      lastSeen: LAST_SEEN,
      hasSecondFactor: HAS_SECOND_FACTOR,
    })
    .from(users)
    .where(people(companyId))
    .orderBy(asc(sql`lower(${users.name})`), asc(users.id))
    .limit(READ_MAX)
  return rows.map(({ user, lastSeen, ...row }) => ({
    ...{ id: user.id, name: user.name, email: user.email, permissions: user.permissions },
    ...{ roles: row.roles, teams: row.teams, hasSecondFactor: row.hasSecondFactor, isSuperAdmin: user.superAdmin },
    isEnabled: user.disabledAt === null,
    lastSeenAtMs: lastSeen === null ? null : new Date(lastSeen).getTime(),
  }))
}

async function openInvitations(
  { hub, companyId }: ViewContext,
  roleNames: ReadonlyMap<string, string>,
): Promise<InvitationRow[]> {
  const rows = await hub.database.db
    .select({ invitation: invitations, inviter: users.name })
    .from(invitations)
    .leftJoin(users, eq(users.id, invitations.invitedBy))
    .where(eq(invitations.companyId, companyId))
    .orderBy(desc(invitations.createdAt), desc(invitations.id))
    .limit(READ_MAX)
  return rows.map(({ invitation, inviter }) => ({
    ...{ id: invitation.id, email: invitation.email, name: invitation.name, inviter },
    roles: invitation.roleIds.flatMap(id => roleNames.get(id) ?? []),
    expiresAtMs: invitation.expiresAt.getTime(),
    isExpired: invitation.expiresAt.getTime() <= hub.now(),
  }))
}

const rolesOf = ({ hub, companyId }: ViewContext) =>
  hub.database.db
    .select()
    .from(roles)
    .where(rolesFor(companyId))
    .orderBy(sql`${roles.companyId} is not null`, asc(sql`lower(${roles.name})`), asc(roles.id))
    .limit(READ_MAX)

const teamsOf = ({ hub, companyId }: ViewContext) =>
  hub.database.db
    .select({ id: teams.id, name: teams.name, members: MEMBERS })
    .from(teams)
    .where(eq(teams.companyId, companyId))
    .orderBy(asc(sql`lower(${teams.name})`), asc(teams.id))
    .limit(READ_MAX)

export const peopleView: View<PeopleView> = {
  permissions: ['identity.view'],
  params: sitePages.people.takes,
  async make(context) {
    const [all, known, allTeams] = await Promise.all([allPeople(context), rolesOf(context), teamsOf(context)])
    const invited = await openInvitations(context, new Map(known.map(({ id, name }) => [id, name])))
    const terms = parseFilter(context.param('q'))
    const matching = all.filter(({ name, email, roles: held, teams: joined, isEnabled }) =>
      matchesFilter(
        {
          words: [name, email],
          values: {
            role: held.map(each => each.name),
            team: joined.map(each => each.name),
            status: isEnabled ? 'enabled' : 'disabled',
          },
        },
        terms,
      ),
    )
    const offset = Math.min(askedOffset(context.param('offset')), Math.max(0, matching.length - 1))
    return {
      ...{ total: all.length, matching: matching.length, offset },
      rows: matching.slice(offset, offset + WINDOW),
      invitations: invited,
      teams: allTeams,
      roles: known.map(({ id, name }) => ({ id, name })),
    }
  },
}

export const rolesView: View<RolesView> = {
  permissions: ['identity.view'],
  params: sitePages.roles.takes,
  async make(context) {
    const { hub, companyId } = context
    const [known, counted] = await Promise.all([
      rolesOf(context),
      hub.database.db.execute<{ role: string; holders: number }>(sql`
        select ur.role_id as role, count(*)::int as holders from user_roles ur join users u on u.id = ur.user_id
        where u.company_id = ${companyId} group by ur.role_id`),
    ])
    const holders = new Map(counted.map(row => [row.role, row.holders]))
    return {
      keys: [...assignablePermissions, wildcard],
      rows: known.map(({ id, name, permissions, builtIn }) => ({
        ...{ id, name, permissions, isBuiltIn: builtIn },
        holders: holders.get(id) ?? 0,
      })),
    }
  },
}
