// A login whose password was right and whose code is still to come (decision G-02). It is a cookie that the hub has
// sealed for this alone, and so no session. It holds for five minutes, and no longer than the password it was made
// with.
import { sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'
import { tokenHash } from '../../identity/token-forms.ts'
import type { FoundLogin, LoginUser } from './sessions.ts'

const PENDING_SECONDS = 300
const PLACE = 'pending login'

type Pending = { readonly userId: string; readonly passwordMark: string; readonly untilMs: number }

/** Over https with the prefix that no neighbouring host can set, as the session's cookie. */
const nameOf = (secure: boolean): string => (secure ? '__Host-hub_login' : 'hub_login')

const header = (value: string, seconds: number, secure: boolean): string =>
  `${nameOf(secure)}=${value}; Max-Age=${seconds}; Path=/; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`

export function pendingCookieHeader(hub: Hub, user: FoundLogin, secure: boolean): string {
  const pending: Pending = {
    userId: user.id,
    passwordMark: tokenHash(user.passwordHash),
    untilMs: hub.now() + PENDING_SECONDS * 1000,
  }
  const sealed = hub.sealer.sealBytes(Buffer.from(JSON.stringify(pending)), PLACE)
  return header(Buffer.from(sealed).toString('base64url'), PENDING_SECONDS, secure)
}

export const endedPendingCookieHeader = (secure: boolean): string => header('', 0, secure)

function pendingIn(hub: Hub, request: Request, secure: boolean): Pending | null {
  const cookies = (request.headers.get('cookie') ?? '').split(';').map(cookie => cookie.trim())
  const value = cookies.find(cookie => cookie.startsWith(`${nameOf(secure)}=`))?.slice(nameOf(secure).length + 1)
  if (!value) return null
  const content = hub.sealer.openBytes(Buffer.from(value, 'base64url'), PLACE)
  if (content === null) return null
  const pending: Pending = JSON.parse(Buffer.from(content).toString())
  return pending.untilMs > hub.now() ? pending : null
}

type UserRow = { id: string; name: string; email: string; company_id: string | null; password_hash: string }

/** Whose code is awaited; null when nobody's is, or that person may not log in with it any more. */
export async function pendingLogin(
  hub: Hub,
  request: Request,
  secure: boolean,
): Promise<(LoginUser & { readonly email: string }) | null> {
  const pending = pendingIn(hub, request, secure)
  if (pending === null) return null
  const [row] = await hub.database.db.execute<UserRow>(sql`
    select u.id, u.name, u.email, u.company_id, u.password_hash
    from users u join user_second_factors f on f.user_id = u.id left join companies c on c.id = u.company_id
    where u.id = ${pending.userId} and u.password_hash is not null and u.kind = 'person' and u.disabled_at is null
      and c.deleted_at is null`)
  if (!row || tokenHash(row.password_hash) !== pending.passwordMark) return null
  return { id: row.id, name: row.name, email: row.email, companyId: row.company_id }
}
