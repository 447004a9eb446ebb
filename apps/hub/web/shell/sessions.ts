// Sessions of the web interface (decision G-02): begun by a login, ended by a logout, their token kept as a hash only.
// Who a cookie belongs to is decided in identity/authenticate.ts for pages and API alike, when it is too old in
// identity/session-life.ts.
import { randomUUID } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import { writeAudit } from '../../audit/audit.ts'
import type { Hub } from '../../hub-context.ts'
import { sessionHours } from '../../identity/session-life.ts'
import { newSessionToken, tokenHash } from '../../identity/token-forms.ts'
import { sessions } from '../../platform/db/schema-identity.ts'
import { inTransaction } from '../../platform/db/transaction.ts'
import type { Caller } from '../../platform/http/caller.ts'
import { cookieName } from '../../platform/http/session-cookie.ts'

export type Visitor = { readonly ip: string; readonly userAgent: string | null }
export type LoginUser = { readonly id: string; readonly name: string; readonly companyId: string | null }
/** Whom an e-mail and a password belong to; with a second factor they are not signed in by these alone. */
export type FoundLogin = LoginUser & { readonly passwordHash: string; readonly hasSecondFactor: boolean }

type UserRow = {
  id: string
  name: string
  company_id: string | null
  password_hash: string | null
  has_second_factor: boolean
}

/** Verified when there is no such user, so that the response takes the same time. Made when first needed. */
let dummyHash: Promise<string> | null = null
const hashOfNobody = (): Promise<string> => {
  dummyHash ??= Bun.password.hash(randomUUID(), 'argon2id')
  return dummyHash
}

/** The person whose e-mail and password these are; null when they are not, or the user may not log in. */
export async function findLogin(hub: Hub, email: string, password: string): Promise<FoundLogin | null> {
  const [row] = await hub.database.db.execute<UserRow>(sql`
    select u.id, u.name, u.company_id, u.password_hash,
      exists (select 1 from user_second_factors f where f.user_id = u.id) as has_second_factor
    from users u left join companies c on c.id = u.company_id
    where lower(u.email) = ${email.toLowerCase()} and u.password_hash is not null and u.kind = 'person' and u.disabled_at is null and c.deleted_at is null`)
  const hash = row?.password_hash ?? (await hashOfNobody())
  // A hash of an unknown kind matches no password, and is no fault of the caller.
  const isRight = await Bun.password.verify(password, hash).catch(() => false)
  if (!row || row.password_hash === null || !isRight) return null
  return {
    id: row.id,
    name: row.name,
    companyId: row.company_id,
    passwordHash: row.password_hash,
    hasSecondFactor: row.has_second_factor,
  }
}

const auditOf = (user: LoginUser, visitor: Visitor, action: string) => ({
  companyId: user.companyId,
  actor: { type: 'user' as const, id: user.id, name: user.name },
  action,
  subject: { type: 'user', id: user.id, name: user.name },
  ip: visitor.ip,
  userAgent: visitor.userAgent,
})

/** Begins a session. Returns the clear token for the cookie, which is kept nowhere else. */
export async function beginSession(hub: Hub, user: LoginUser, visitor: Visitor): Promise<string> {
  const token = newSessionToken()
  const at = new Date(hub.now())
  await inTransaction(hub.database.db, async tx => {
    await tx.db.insert(sessions).values({
      id: randomUUID(),
      tokenHash: tokenHash(token),
      csrfToken: newSessionToken(),
      userId: user.id,
      ip: visitor.ip,
      userAgent: visitor.userAgent,
      createdAt: at,
      lastSeenAt: at,
    })
    await writeAudit(tx, auditOf(user, visitor, 'user.login'))
  })
  return token
}

export async function endWebSession(hub: Hub, caller: Caller, visitor: Visitor): Promise<void> {
  await inTransaction(hub.database.db, async tx => {
    await tx.db.delete(sessions).where(eq(sessions.id, caller.credentialId))
    await writeAudit(tx, auditOf(caller.user, visitor, 'user.logout'))
  })
}

const attributes = (secure: boolean): string => `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`

export const sessionCookieHeader = (token: string, secure: boolean): string =>
  `${cookieName(secure)}=${token}; Max-Age=${sessionHours * 3600}; ${attributes(secure)}`

export const endedCookieHeader = (secure: boolean): string => `${cookieName(secure)}=; Max-Age=0; ${attributes(secure)}`
