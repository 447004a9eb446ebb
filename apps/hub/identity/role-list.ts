// Roles that a company may use: its own, and the built-in ones (decision G-03).
import { asc, eq, isNull, or, sql } from 'drizzle-orm'
import { roles } from '../platform/db/schema-identity.ts'
import { collection } from '../platform/http/collection.ts'
import { roleResponse } from './identity-response.ts'

export type Role = typeof roles.$inferSelect

export const rolesFor = (companyId: string) => or(eq(roles.companyId, companyId), isNull(roles.companyId))

export const presentRole = (role: Role) => ({
  id: role.id,
  company_id: role.companyId,
  name: role.name,
  permissions: role.permissions,
  built_in: role.builtIn,
  created_at: role.createdAt,
})

/** The built-in ones first. */
export const roleCollection = collection({
  table: roles,
  scope: { owner: 'company', where: rolesFor },
  select: db => db.select().from(roles),
  order: [sql`${roles.companyId} is not null`, asc(sql`lower(${roles.name})`), asc(roles.id)],
  response: roleResponse,
  present: presentRole,
})

export const findRole = roleCollection.find
