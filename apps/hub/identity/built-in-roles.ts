// What the built-in roles may do (decision G-03): the viewer everything that only reads, the operator also what the
// daily work needs, the admin everything that a company's people can be given. Companies make other roles themselves.
import { sql } from 'drizzle-orm'
import type { Database } from '../platform/db/connect.ts'
import { roles } from '../platform/db/schema-identity.ts'
import { assignablePermissions, wildcard } from './permission-keys.ts'

const reading = assignablePermissions.filter(key => key.endsWith('.view'))

const idOf = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`

const builtInRoles = [
  { id: idOf(1), name: 'viewer', permissions: reading },
  { id: idOf(2), name: 'operator', permissions: [...reading, 'monitoring.manage', 'iac.submit'] },
  { id: idOf(3), name: 'admin', permissions: [wildcard] },
]

/** Makes the rows that people are given say what stands here; those that say so already are left alone. */
export const storeBuiltInRoles = async ({ db }: Database): Promise<void> => {
  const permissions = sql`excluded.permissions`
  await db
    .insert(roles)
    .values(builtInRoles.map(role => ({ ...role, permissions: [...role.permissions], builtIn: true })))
    .onConflictDoUpdate({
      target: roles.id,
      set: { permissions },
      setWhere: sql`${roles.permissions} <> ${permissions}`,
    })
}
