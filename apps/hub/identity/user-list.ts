// Users of a company as its administrators see them (decision G-03).
import { and, asc, eq, type SQL, sql } from 'drizzle-orm'
import { users } from '../platform/db/schema-identity.ts'
import { collection, ofCompany, search } from '../platform/http/collection.ts'
import { userResponse } from './identity-response.ts'

export type User = typeof users.$inferSelect
export type UserRow = { readonly user: User; readonly roles: readonly { readonly id: string; readonly name: string }[] }

const PEOPLE = eq(users.kind, 'person')
export const people = (companyId: string): SQL => and(eq(users.companyId, companyId), PEOPLE) as SQL

// The table is named in full: a column of the only table of a select is rendered bare, which here would mean the
// role's.
export const ROLES_OF_USER = sql<
  UserRow['roles']
>`(select coalesce(json_agg(json_build_object('id', r.id, 'name', r.name) order by r.name), '[]')
  from user_roles ur join roles r on r.id = ur.role_id where ur.user_id = users.id)`

export const presentUser = ({ user, roles }: UserRow) => ({
  id: user.id,
  company_id: user.companyId,
  email: user.email,
  name: user.name,
  permissions: user.permissions,
  roles,
  super_admin: user.superAdmin,
  language: user.language,
  time_zone: user.timeZone,
  enabled: user.disabledAt === null,
  created_at: user.createdAt,
})

export const userCollection = collection({
  table: users,
  scope: ofCompany(users.companyId, PEOPLE),
  filters: { search: search(users.name, users.email) },
  select: db => db.select({ user: users, roles: ROLES_OF_USER }).from(users),
  order: [asc(sql`lower(${users.name})`), asc(users.id)],
  response: userResponse,
  present: presentUser,
})

export const findUser = userCollection.find
