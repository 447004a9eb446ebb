// People and API tokens, as the commands of the hub and the first start make them (decisions G-01, G-12). Accounts of
// collectors and matchers: service-accounts.ts.
import { randomUUID } from 'node:crypto'
import { eq, type SQL, sql } from 'drizzle-orm'
import { isAddressOrRange } from '../../../core/network/ip-address.ts'
import { type AuditEntry, auditByHub, HUB_ACTOR, writeAudit } from '../audit/audit.ts'
import type { Executor } from '../platform/db/connect.ts'
import { apiTokens, sessions, users } from '../platform/db/schema-identity.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { isEmail } from '../platform/http/request-schema.ts'
import { checkAssignable } from './may-give-permissions.ts'
import { wildcard } from './permission-keys.ts'
import { newApiToken, tokenHash, tokenHint } from './token-forms.ts'

type NewUser = {
  readonly companyId: string | null
  readonly email: string
  readonly name: string
  readonly permissions: readonly string[]
  readonly superAdmin?: boolean
  readonly password?: string | null
  /** Another user entered the address, and nobody has confirmed it yet. */
  readonly addressUnconfirmed?: boolean
}

export async function createUser(tx: Tx, user: NewUser): Promise<{ id: string; email: string }> {
  checkAssignable(user.permissions, 'permissions', user.superAdmin === true)
  const email = user.email.trim().toLowerCase()
  if (!isEmail(email)) throw invalidField('email', 'email')
  if (await isMember(tx.db, user.companyId, email)) throw invalidField('email', 'taken')
  if (user.password && (await isLogin(tx.db, email))) throw invalidField('email', 'taken')
  if (user.companyId !== null) {
    const known = await tx.db.execute(sql`select 1 from companies where id = ${user.companyId} and deleted_at is null`)
    if (known.length === 0) throw invalidField('company', 'unknown_reference')
  }
  const id = randomUUID()
  await tx.db.insert(users).values({
    id,
    companyId: user.companyId,
    email,
    name: user.name,
    passwordHash: user.password ? await Bun.password.hash(user.password, 'argon2id') : null,
    permissions: [...user.permissions],
    superAdmin: user.superAdmin ?? false,
    addressUnconfirmed: user.addressUnconfirmed ?? false,
  })
  return { id, email }
}

/** Whether the company has a user with the address, given in lower case. Nothing is revealed about other companies. */
export async function isMember(db: Executor, companyId: string | null, email: string): Promise<boolean> {
  const rows = await db.execute(
    sql`select 1 from users where company_id is not distinct from ${companyId}::uuid and lower(email) = ${email}`,
  )
  return rows.length > 0
}

/**
 * Whether another user logs in with the address, given in lower case, in any company: an address identifies one login.
 */
export async function isLogin(db: Executor, email: string, exceptId: string | null = null): Promise<boolean> {
  const rows = await db.execute(sql`
    select 1 from users where lower(email) = ${email} and password_hash is not null
      and id is distinct from ${exceptId}::uuid`)
  return rows.length > 0
}

/**
 * Takes a login from a user of another company who never confirmed the address, given in lower case: somebody who reads
 * the mailbox asks for it. The user stays, without password and sessions; a login that was confirmed stays too.
 */
export async function endUnconfirmedLogin(tx: Tx, companyId: string, email: string): Promise<void> {
  const ended = await tx.db.execute<{ id: string; name: string; company_id: string | null }>(sql`
    update users set password_hash = null
    where lower(email) = ${email} and password_hash is not null and address_unconfirmed
      and company_id is distinct from ${companyId}
    returning id, name, company_id`)
  for (const { id, name, company_id } of ended) {
    await tx.db.delete(sessions).where(eq(sessions.userId, id))
    await auditByHub(tx, company_id, 'user.login_end', { type: 'user', id, name })
  }
}

type NewToken = {
  readonly userId: string
  readonly name: string
  readonly permissions?: readonly string[] | null
  readonly ipRanges?: readonly string[] | null
  readonly ratePerMinute?: number | null
  /** Null: never. */
  readonly expiresAt: Date | null
  /**
   * The user who issues the token in the web interface, and that user's permissions now; absent for a command of the
   * hub.
   */
  readonly maker?: { readonly id: string; readonly permissions: readonly string[] }
}

/** The issuer for the audit entry: a user, or else the hub itself. */
type Issuer = Pick<AuditEntry, 'actor' | 'ip' | 'userAgent'>
const BY_HUB: Issuer = { actor: HUB_ACTOR }

/** Creates an API token. The clear token is in the answer and nowhere else. */
export async function createToken(
  tx: Tx,
  token: NewToken,
  by: Issuer = BY_HUB,
): Promise<{ id: string; token: string }> {
  for (const range of token.ipRanges ?? []) if (!isAddressOrRange(range)) throw invalidField('ip_range', 'cidr')
  const clear = newApiToken()
  const id = randomUUID()
  await tx.db.insert(apiTokens).values({
    id,
    userId: token.userId,
    name: token.name,
    tokenHash: tokenHash(clear),
    tokenHint: tokenHint(clear),
    permissions: token.permissions ? [...token.permissions] : null,
    ipRanges: token.ipRanges && token.ipRanges.length > 0 ? [...token.ipRanges] : null,
    ratePerMinute: token.ratePerMinute ?? null,
    makerId: token.maker?.id ?? null,
    makerPermissions: token.maker && token.maker.id !== token.userId ? [...token.maker.permissions] : null,
    expiresAt: token.expiresAt,
  })
  const [owner] = await tx.db.select().from(users).where(eq(users.id, token.userId))
  await writeAudit(tx, {
    ...by,
    companyId: owner?.companyId ?? null,
    action: 'token.create',
    subject: { type: 'token', id, name: token.name },
  })
  return { id, token: clear }
}

/** Revokes tokens that still work, each with an audit entry in its user's company. */
export async function endTokens(tx: Tx, which: SQL): Promise<void> {
  const ended = await tx.db.execute<{ id: string; name: string; company_id: string | null }>(sql`
    update api_tokens t set revoked_at = now() from users u
    where u.id = t.user_id and t.revoked_at is null and ${which} returning t.id, t.name, u.company_id`)
  for (const { id, name, company_id } of ended)
    await auditByHub(tx, company_id, 'token.revoke', { type: 'token', id, name })
}

/** Revokes the tokens that a user made for others, since their maker has seen them. */
export const endTokensMadeBy = (tx: Tx, userId: string): Promise<void> =>
  endTokens(tx, sql`t.maker_id = ${userId} and t.user_id <> t.maker_id`)

/** Revokes a token; one that is already revoked stays as it is. */
export async function revokeToken(tx: Tx, id: string): Promise<void> {
  const known = await tx.db.execute(sql`select 1 from api_tokens where id = ${id}`)
  if (known.length === 0) throw notFound()
  await endTokens(tx, sql`t.id = ${id}`)
}

export const adminPermissions: readonly string[] = [wildcard]
