// API tokens as the management screen issues and revokes them (decisions G-01, G-12): for people of the company, never with
// more than both the person and the issuer may do.
import { and, desc, eq, sql } from 'drizzle-orm'
import { DAY_MS } from '../../../core/limits.ts'
import { type AuditEntry, writeAudit } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { apiTokens, users } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import { createToken, tokenLifeMs } from './accounts.ts'
import type { Caller } from './authenticate.ts'
import { findUser, permissionsOfUser } from './people.ts'
import { effectivePermissions, isAssignable } from './permissions.ts'

export const issuePermission = 'api-tokens.manage'
const SHOWN_MAX = 500
const RATE_MAX = 100_000
const DAYS_MAX = 3650
const RANGES_MAX = 50

const selectTokens = (db: Executor, companyId: string) =>
  db
    .select({ token: apiTokens, owner: { id: users.id, name: users.name, email: users.email } })
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
  /** Null: all that the person may do. */
  readonly permissions: readonly string[] | null
  readonly ipRanges: readonly string[]
  readonly ratePerMinute: number | null
  /** Null: never. */
  readonly expiresInDays: number | null
}

export type Act = Pick<AuditEntry, 'ip' | 'userAgent'>

const actorOf = (caller: Caller) => ({ type: 'user' as const, id: caller.user.id, name: caller.user.name })

function checkForm(input: TokenInput): void {
  if (input.name.trim() === '' || input.name.length > 255) throw invalidField('name', 'required')
  const { expiresInDays: days, ratePerMinute: rate } = input
  if (days !== null && !(Number.isInteger(days) && days >= 1))
    throw invalidField('expires_in_days', 'minimum', { min: 1 })
  if (days !== null && days > DAYS_MAX) throw invalidField('expires_in_days', 'maximum', { max: DAYS_MAX })
  if (rate !== null && !(Number.isInteger(rate) && rate >= 1))
    throw invalidField('rate_per_minute', 'minimum', { min: 1 })
  if (rate !== null && rate > RATE_MAX) throw invalidField('rate_per_minute', 'maximum', { max: RATE_MAX })
  if (input.ipRanges.length > RANGES_MAX) throw invalidField('ip_ranges', 'list_max', { max: RANGES_MAX })
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
    const owner = await findUser(tx.db, companyId, input.userId)
    const held = await permissionsOfUser(tx.db, owner)
    for (const permission of input.permissions ?? [])
      if (!isAssignable(permission)) throw invalidField('permissions', 'unknown_permission', { permission })
    const given = effectivePermissions(held, input.permissions)
    // A token for somebody else must not be a way to more than one has.
    const isOwn = owner.user.id === caller.user.id
    if (!isOwn && !caller.user.superAdmin) {
      if (owner.user.superAdmin) throw invalidField('user_id', 'super_admin_only')
      for (const permission of given)
        if (!caller.permissions.has(permission))
          throw invalidField('permissions', 'permission_not_held', { permission })
    }
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
      },
      { actor: actorOf(caller), ...act },
    )
  })
}

/** Revokes a token of the company; it stops working at once. Revoking again changes nothing. Throws 404. */
export async function revokeIssuedToken(
  hub: Hub,
  caller: Caller,
  companyId: string,
  id: string,
  act: Act,
): Promise<void> {
  if (!isUuid(id)) throw notFound()
  await inTransaction(hub.database.db, async tx => {
    const [row] = await tx.db.execute<{ name: string; revoked: boolean }>(sql`
      select t.name, t.revoked_at is not null as revoked from api_tokens t join users u on u.id = t.user_id
      where t.id = ${id} and u.company_id = ${companyId} and u.kind = 'person' for update of t`)
    if (!row) throw notFound()
    if (row.revoked) return
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

export const defaultLifeDays = tokenLifeMs / DAY_MS
