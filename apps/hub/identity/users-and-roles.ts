// Users and roles as an administrator of a company manages them (decision G-03). What may be given to them:
// may-give-permissions.ts.
import { randomUUID } from 'node:crypto'
import { and, eq, inArray, sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { type Executor, violatedUniqueIndex } from '../platform/db/connect.ts'
import { roles, userRoles, users } from '../platform/db/schema-identity.ts'
import { inTransaction, inTransactionUnlessTaken, type Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { createUser, endTokensMadeBy, isLogin } from './accounts.ts'
import { refuseAbove, refuseActOn } from './may-act-on-person.ts'
import { checkGiving } from './may-give-permissions.ts'
import { expandPermissions } from './permission-keys.ts'
import { findRole, presentRole, type Role, rolesFor } from './role-list.ts'
import { findUser, people, presentUser, type User, type UserRow } from './user-list.ts'

/** A user of the company that a body refers to, locked so that none deletes it meanwhile. Throws 422 on user_id. */
export async function referredUser(tx: Tx, companyId: string, id: string): Promise<User> {
  const [user] = await tx.db
    .select()
    .from(users)
    .where(and(people(companyId), eq(users.id, id)))
    .for('no key update')
  if (!user) throw invalidField('user_id', 'unknown_reference')
  return user
}

export async function permissionsOfUser(db: Executor, { user, roles: held }: UserRow): Promise<string[]> {
  const ids = held.map(role => role.id)
  const rows = ids.length > 0 ? await db.select().from(roles).where(inArray(roles.id, ids)) : []
  return [...expandPermissions([...user.permissions, ...rows.flatMap(role => role.permissions)])].sort()
}

/** The roles of the ids that the company may use, its own and the built-in ones, locked so that none deletes them. */
export async function usableRoles(tx: Tx, companyId: string, ids: readonly string[]): Promise<Role[]> {
  if (ids.length === 0) return []
  const rows = await tx.db
    .select()
    .from(roles)
    .where(and(inArray(roles.id, [...ids]), rolesFor(companyId)))
    .for('key share')
  if (rows.length !== new Set(ids).size) throw invalidField('role_ids', 'unknown_reference')
  return rows
}

async function setRoles(context: RouteContext, tx: Tx, userId: string, roleIds: readonly string[]): Promise<void> {
  const chosen = await usableRoles(tx, context.companyId, roleIds)
  checkGiving(
    context.caller,
    chosen.flatMap(role => role.permissions),
    'role_ids',
  )
  await assignRoles(
    tx,
    userId,
    chosen.map(role => role.id),
  )
}

/** Assigns roles; the caller has already checked that they may be granted. */
export async function assignRoles(tx: Tx, userId: string, roleIds: readonly string[]): Promise<void> {
  await tx.db.delete(userRoles).where(eq(userRoles.userId, userId))
  if (roleIds.length > 0) await tx.db.insert(userRoles).values(roleIds.map(roleId => ({ userId, roleId })))
}

const subjectOf = ({ user }: UserRow) => ({ type: 'user', id: user.id, name: user.name })

/** A user that the caller may act on, locked. Throws 404, and 403 for a user with more permissions. */
async function subordinate(context: RouteContext, tx: Tx, id: string): Promise<UserRow> {
  const { companyId } = context
  // Locked before it is read: the change is written back from what is read here.
  await tx.db
    .select({ id: users.id })
    .from(users)
    .where(and(people(companyId), eq(users.id, id)))
    .for('no key update')
  const found = await findUser(tx.db, companyId, id)
  await refuseActOn(tx.db, context.caller, sql`u.id = ${id}`)
  return found
}

type UserInput = {
  readonly email: string
  readonly name: string
  readonly permissions?: readonly string[] | null | undefined
  readonly role_ids?: readonly string[] | null | undefined
}

export async function addUser(context: RouteContext, input: UserInput): Promise<UserRow> {
  const { hub, companyId } = context
  checkGiving(context.caller, input.permissions ?? [], 'permissions')
  return inTransactionUnlessTaken(hub.database.db, async tx => {
    const { email, name } = input
    const permissions = input.permissions ?? []
    const { id } = await createUser(tx, { companyId, email, name, permissions, addressUnconfirmed: true })
    await setRoles(context, tx, id, input.role_ids ?? [])
    const row = await findUser(tx.db, companyId, id)
    await auditRequest(tx, context, 'user.create', subjectOf(row))
    return row
  })
}

type UserPatch = {
  readonly email?: string | undefined
  readonly name?: string | undefined
  readonly permissions?: readonly string[] | undefined
  readonly language?: 'en' | 'vi' | undefined
  readonly time_zone?: string | undefined
}

export async function changeUser(context: RouteContext, id: string, patch: UserPatch): Promise<UserRow> {
  const { hub, companyId } = context
  if (patch.permissions) checkGiving(context.caller, patch.permissions, 'permissions')
  return inTransactionUnlessTaken(hub.database.db, async tx => {
    const before = await subordinate(context, tx, id)
    const email = patch.email?.toLowerCase() ?? before.user.email
    const isMoved = email !== before.user.email.toLowerCase()
    try {
      await tx.db
        .update(users)
        .set({
          email,
          ...(isMoved ? { addressUnconfirmed: true } : {}),
          // The address is already a login in another company: an error would reveal that to this one.
          ...(isMoved && (await isLogin(tx.db, email, id)) ? { passwordHash: null } : {}),
          name: patch.name ?? before.user.name,
          permissions: patch.permissions ? [...patch.permissions] : before.user.permissions,
          language: patch.language ?? before.user.language,
          timeZone: patch.time_zone ?? before.user.timeZone,
        })
        .where(eq(users.id, id))
    } catch (error) {
      if (violatedUniqueIndex(error) === 'users_email') throw invalidField('email', 'taken')
      throw error
    }
    const after = await findUser(tx.db, companyId, id)
    const changes = changesBetween(presentUser(before), presentUser(after))
    await auditRequest(tx, context, 'user.update', subjectOf(after), changes)
    return after
  })
}

export async function setUserRoles(context: RouteContext, id: string, roleIds: readonly string[]): Promise<UserRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    const before = await subordinate(context, tx, id)
    await setRoles(context, tx, id, roleIds)
    const after = await findUser(tx.db, companyId, id)
    const changes = changesBetween({ roles: before.roles }, { roles: after.roles })
    await auditRequest(tx, context, 'user.roles', subjectOf(after), changes)
    return after
  })
}

function refuseSelf(context: RouteContext, id: string): void {
  if (context.caller.user.id === id) throw invalidField('user', 'not_self')
}

/** A disabled user's tokens and sessions stop working at once. */
export async function setUserEnabled(context: RouteContext, id: string, enabled: boolean): Promise<UserRow> {
  const { hub, companyId } = context
  if (!enabled) refuseSelf(context, id)
  return inTransaction(hub.database.db, async tx => {
    await subordinate(context, tx, id)
    await tx.db
      .update(users)
      .set({ disabledAt: enabled ? null : new Date(hub.now()) })
      .where(and(people(companyId), eq(users.id, id)))
    const row = await findUser(tx.db, companyId, id)
    await auditRequest(tx, context, enabled ? 'user.enable' : 'user.disable', subjectOf(row))
    return row
  })
}

export async function deleteUser(context: RouteContext, id: string): Promise<void> {
  const { hub } = context
  refuseSelf(context, id)
  await inTransaction(hub.database.db, async tx => {
    const row = await subordinate(context, tx, id)
    await endTokensMadeBy(tx, id)
    await tx.db.delete(users).where(eq(users.id, id))
    await auditRequest(tx, context, 'user.delete', subjectOf(row))
  })
}

/**
 * A role that the caller may change or delete, locked. Throws 404, 422 for a built-in one, 403 for one that grants more
 * than the caller holds.
 */
async function changeableRole(context: RouteContext, tx: Tx, id: string): Promise<Role> {
  await tx.db.select({ id: roles.id }).from(roles).where(eq(roles.id, id)).for('update')
  const role = await findRole(tx.db, context.companyId, id)
  if (role.builtIn) throw invalidField('role', 'built_in')
  refuseAbove(context.caller, role.permissions)
  return role
}

type RoleInput = { readonly name?: string | undefined; readonly permissions?: readonly string[] | undefined }

/** Creates a role, or changes the one with the id. */
export async function saveRole(context: RouteContext, knownId: string | null, input: RoleInput): Promise<Role> {
  const { hub, companyId } = context
  if (input.permissions) checkGiving(context.caller, input.permissions, 'permissions')
  const id = knownId ?? randomUUID()
  return inTransaction(hub.database.db, async tx => {
    const before = knownId === null ? null : await changeableRole(context, tx, knownId)
    const name = input.name ?? before?.name ?? ''
    const permissions = [...new Set(input.permissions ?? before?.permissions ?? [])].sort()
    try {
      if (before) await tx.db.update(roles).set({ name, permissions }).where(eq(roles.id, id))
      else await tx.db.insert(roles).values({ id, companyId, name, permissions })
    } catch (error) {
      if (violatedUniqueIndex(error) === 'roles_name') throw invalidField('name', 'taken')
      throw error
    }
    const after = await findRole(tx.db, companyId, id)
    const changes = before ? changesBetween(presentRole(before), presentRole(after)) : {}
    const subject = { type: 'role', id, name }
    await auditRequest(tx, context, before ? 'role.update' : 'role.create', subject, changes)
    return after
  })
}

/** Takes a role from what names it, before it is deleted in the same transaction. */
export type BeforeRoleGoes = (tx: Tx, context: RouteContext, role: { kind: 'role'; id: string }) => Promise<void>

export async function deleteRole(context: RouteContext, id: string, beforeGoes: BeforeRoleGoes): Promise<void> {
  await inTransaction(context.hub.database.db, async tx => {
    const role = await changeableRole(context, tx, id)
    const used = await tx.db.select({ id: userRoles.userId }).from(userRoles).where(eq(userRoles.roleId, id)).limit(1)
    if (used.length > 0) throw invalidField('role', 'in_use')
    await beforeGoes(tx, context, { kind: 'role', id })
    await tx.db.delete(roles).where(eq(roles.id, id))
    await auditRequest(tx, context, 'role.delete', { type: 'role', id, name: role.name })
  })
}
