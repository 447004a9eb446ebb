// Which session cookie counts: over https the one that no other host can set.
import type { HttpRequest } from '../../../http/http-request.ts'
import { sessionCookie } from './caller.ts'

/**
 * A browser accepts a cookie with this prefix over https only, from the host itself and for all its paths: no other
 * host can replace the session.
 */
const SECURE_PREFIX = '__Host-'

/** The name of the session cookie that a browser is given. */
export const cookieName = (secure: boolean): string => (secure ? `${SECURE_PREFIX}${sessionCookie}` : sessionCookie)

/**
 * Removes all session cookies from a request but the one that counts, which gets its plain name: over https the one
 * with the prefix. There the plain one does not count, since any neighbouring host can set it.
 */
export function chooseSessionCookie(request: HttpRequest, secure: boolean): void {
  const header = request.headers.get('cookie')
  if (header === null || !header.includes(sessionCookie)) return
  const cookies = header.split(';').map(cookie => cookie.trim())
  const prefixed = cookies.find(cookie => cookie.startsWith(`${cookieName(true)}=`))
  const plain = secure ? undefined : cookies.find(cookie => cookie.startsWith(`${sessionCookie}=`))
  const chosen = prefixed?.slice(SECURE_PREFIX.length) ?? plain
  const names = [cookieName(true), cookieName(false)]
  const others = cookies.filter(cookie => !names.includes(cookie.split('=')[0] ?? ''))
  request.headers.set('cookie', [...(chosen === undefined ? [] : [chosen]), ...others].join('; '))
}
