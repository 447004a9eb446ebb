// Whether a request that a browser sent with its cookies comes from a page of this hub (decision G-02): with a session,
// by the token that the page was given; before the login, by where the browser says the form was.
import { ApiError } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'

type Session = { readonly csrfToken: string | null }

/** Whether a form brought the token of its session. */
export const isOwnToken = (given: string | null, session: Session): boolean =>
  given !== null && given === session.csrfToken

/** Throws 403 for a call without the session's token in X-CSRF-Token. */
export function refuseForeign(headers: Pick<Headers, 'get'>, session: Session): void {
  if (!isOwnToken(headers.get('x-csrf-token'), session))
    throw new ApiError(403, 'forbidden', words('csrf'), { reason: 'permission_denied' })
}

/** Whether a form was sent from a page of this hub: by what the browser says of it, else by its origin. */
export function isOwnForm(request: Request): boolean {
  const site = request.headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin' || site === 'none'
  const origin = request.headers.get('origin')
  return origin === null || URL.parse(origin)?.host === request.headers.get('host')
}
