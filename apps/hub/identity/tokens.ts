// API tokens that users issue and revoke in the web interface (decisions G-01, G-12): for users of the company, never
// with more than both the user and the issuer may do. The issuer's permissions are stored with a token for another
// user, and every request is checked against them (identity/authenticate.ts).
import { and, desc, eq, sql } from 'drizzle-orm'
import { DAY_MS } from '../../../core/limits.ts'
import { type AuditEntry, writeAudit } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { apiTokens, companies, users } from '../platform/db/schema-identity.ts'
import { inTransaction, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import type { Caller } from '../platform/http/caller.ts'
import { tokenRateMax } from '../platform/http/request-rate.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import { createToken } from './accounts.ts'
import { refuseAbove } from './may-act-on-person.ts'
import { effectivePermissions, expandPermissions, isAssignable, wildcard } from './permission-keys.ts'
import { DAYS_MAX } from './token-life.ts'
import { findUser, type UserRow } from './user-list.ts'
import { permissionsOfUser } from './users-and-roles.ts'

export const issuePermission = 'api-tokens.manage'
const SHOWN_MAX = 500
/** At most this many are shown, and every working token must be visible. */
const WORKING_MAX = SHOWN_MAX
const RANGES_MAX = 50

const selectTokens = (db: Executor, companyId: string) =>
  db
    .select({
      token: apiTokens,
      owner: { id: users.id, name: users.name, email: users.email },
      // A token made by another user ends with its maker.
      isMakerOut: sql<boolean>`(${apiTokens.makerId} <> ${apiTokens.userId} and not exists (
        select 1 from users m where m.id = ${apiTokens.makerId} and m.disabled_at is null)) is true`,
    })
    .from(apiTokens)
    .innerJoin(users, eq(users.id, apiTokens.userId))
    .where(and(eq(users.companyId, companyId), eq(users.kind, 'person')))
    .orderBy(sql`${apiTokens.revokedAt} is not null`, desc(apiTokens.createdAt), desc(apiTokens.id))
    .limit(SHOWN_MAX)
export type TokenRow = Awaited<ReturnType<typeof selectTokens>>[number]

/** The company's tokens: those that work first, newest first. Hashes stay here. */
export const listTokens = (db: Executor, companyId: string): Promise<TokenRow[]> => selectTokens(db, companyId)

export type TokenInput = {
  readonly userId: string
  readonly name: string
  /** Null: all that the user may do. */
  readonly permissions: readonly string[] | null
  readonly ipRanges: readonly string[]
  readonly ratePerMinute: number | null
  /** Null: never. */
  readonly expiresInDays: number | null
}

type Act = Pick<AuditEntry, 'ip' | 'userAgent'>

const actorOf = (caller: Caller) => ({ type: 'user' as const, id: caller.user.id, name: caller.user.name })

function checkForm(input: TokenInput): void {
  if (input.name.trim() === '' || input.name.length > 255) throw invalidField('name', 'required')
  const { expiresInDays: days, ratePerMinute: rate } = input
  if (days !== null && !(Number.isInteger(days) && days >= 1))
    throw invalidField('expires_in_days', 'minimum', { min: 1 })
  if (days !== null && days > DAYS_MAX) throw invalidField('expires_in_days', 'maximum', { max: DAYS_MAX })
  if (rate !== null && !(Number.isInteger(rate) && rate >= 1))
    throw invalidField('rate_per_minute', 'minimum', { min: 1 })
  if (input.ipRanges.length > RANGES_MAX) throw invalidField('ip_ranges', 'list_max', { max: RANGES_MAX })
}

/** The most requests a minute that the company may give a token: its own bound, else the hub's. */
async function rateMaxOf(hub: Hub, db: Executor, companyId: string): Promise<number> {
  const [company] = await db
    .select({ rateMax: companies.tokenRateMax })
    .from(companies)
    .where(eq(companies.id, companyId))
  return tokenRateMax(hub.config, company?.rateMax)
}

/** Refuses a rate above the company's bound, and one working token more than are shown. */
async function checkBounds(hub: Hub, tx: Tx, companyId: string, rate: number | null): Promise<void> {
  const rateMax = await rateMaxOf(hub, tx.db, companyId)
  if (rate !== null && rate > rateMax) throw invalidField('rate_per_minute', 'maximum', { max: rateMax })
  const [working] = await tx.db.execute<{ count: number }>(sql`
    select count(*)::integer as count from api_tokens t join users u on u.id = t.user_id
    where u.company_id = ${companyId} and u.kind = 'person' and t.revoked_at is null
      and (t.expires_at is null or t.expires_at > now())`)
  if ((working?.count ?? 0) >= WORKING_MAX) throw invalidField('name', 'tokens_max', { max: WORKING_MAX })
}

/**
 * Refuses a token that would grant more than its user or its issuer may do. Throws 422 that names the first such
 * permission.
 */
function checkGrant(caller: Caller, owner: UserRow, held: readonly string[], asked: readonly string[] | null): void {
  for (const permission of asked ?? [])
    if (!isAssignable(permission)) throw invalidField('permissions', 'unknown_permission', { permission })
  const ofOwner = new Set(held)
  const isOwn = owner.user.id === caller.user.id
  if (!isOwn && owner.user.superAdmin && !caller.actsAsSuperAdmin) throw invalidField('user_id', 'super_admin_only')
  for (const permission of expandPermissions(asked ?? held)) {
    if (!ofOwner.has(permission)) throw invalidField('permissions', 'owner_lacks', { permission })
    // Otherwise a token for another user would give its issuer permissions that the issuer does not have.
    if (!isOwn && !caller.actsAsSuperAdmin && !caller.permissions.has(permission))
      throw invalidField('permissions', 'permission_not_held', { permission })
  }
}

/** Issues a token for a person of the company. Returns the clear token, which is shown once. Throws 422 by field. */
export async function issueToken(
  hub: Hub,
  caller: Caller,
  companyId: string,
  input: TokenInput,
  act: Act,
): Promise<{ id: string; token: string }> {
  checkForm(input)
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    await checkBounds(hub, tx, companyId, input.ratePerMinute)
    const owner = await findUser(tx.db, companyId, input.userId)
    checkGrant(caller, owner, await permissionsOfUser(tx.db, owner), input.permissions)
    const days = input.expiresInDays
    return createToken(
      tx,
      {
        userId: owner.user.id,
        name: input.name.trim(),
        permissions: input.permissions,
        ipRanges: input.ipRanges,
        ratePerMinute: input.ratePerMinute,
        expiresAt: days === null ? null : new Date(hub.now() + days * DAY_MS),
        maker: { id: caller.user.id, permissions: caller.actsAsSuperAdmin ? [wildcard] : [...caller.permissions] },
      },
      { actor: actorOf(caller), ...act },
    )
  })
}

type RevocableRow = {
  name: string
  revoked: boolean
  user_id: string
  maker_id: string | null
  permissions: string[] | null
}

/** A token's user or maker may revoke it; another user only when it grants no more than that user holds. Throws 403. */
async function refuseRevocation(tx: Tx, caller: Caller, companyId: string, row: RevocableRow): Promise<void> {
  if (row.user_id === caller.user.id || row.maker_id === caller.user.id) return
  const owner = await findUser(tx.db, companyId, row.user_id)
  if (owner.user.superAdmin && !caller.actsAsSuperAdmin) throw invalidField('user', 'super_admin_only')
  refuseAbove(caller, [...effectivePermissions(await permissionsOfUser(tx.db, owner), [row.permissions])])
}

/** Revokes a token of the company; it stops working at once. Revoking again changes nothing. Throws 404 and 403. */
export async function revokeIssuedToken(
  hub: Hub,
  caller: Caller,
  companyId: string,
  id: string,
  act: Act,
): Promise<void> {
  if (!isUuid(id)) throw notFound()
  await inTransaction(hub.database.db, async tx => {
    const [row] = await tx.db.execute<RevocableRow>(sql`
      select t.name, t.revoked_at is not null as revoked, t.user_id, t.maker_id, t.permissions from api_tokens t join users u on u.id = t.user_id
      where t.id = ${id} and u.company_id = ${companyId} and u.kind = 'person' for update of t`)
    if (!row) throw notFound()
    if (row.revoked) return
    await refuseRevocation(tx, caller, companyId, row)
    await tx.db
      .update(apiTokens)
      .set({ revokedAt: new Date(hub.now()) })
      .where(eq(apiTokens.id, id))
    await writeAudit(tx, {
      companyId,
      actor: actorOf(caller),
      action: 'token.revoke',
      subject: { type: 'token', id, name: row.name },
      ...act,
    })
  })
}
