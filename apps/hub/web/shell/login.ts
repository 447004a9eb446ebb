// The login: a form without script, limited by e-mail and address (identity/login-attempts.ts), and the logout. Who has
// a second factor is led on to its form (two-factor-login.ts).

import type { Hub } from '../../hub-context.ts'
import { isOwnForm, isOwnToken } from '../../identity/csrf.ts'
import { takeLoginAttempt } from '../../identity/login-attempts.ts'
import { preferredLanguage } from '../../platform/http/negotiation.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import { say } from '../words/forms.ts'
import type { WebLanguage } from '../words/words.ts'
import { readForm } from './form.ts'
import { brand, html, pageResponse, redirect } from './html.ts'
import { type Refused, tryLogin } from './login-tries.ts'
import { guestOf, visitorOf } from './page-visitor.ts'
import { pendingCookieHeader } from './pending-login.ts'
import {
  beginSession,
  endedCookieHeader,
  endWebSession,
  findLogin,
  type LoginUser,
  sessionCookieHeader,
} from './sessions.ts'

export const languageOf = (request: Request): WebLanguage => preferredLanguage(request.headers.get('accept-language'))

export type Fault = { readonly status: number; readonly message: string; readonly retryAfterSeconds?: number }

/** When to try again, for a page that refuses for a while. */
export const retryHeaders = (fault: Fault | null): Readonly<Record<string, string>> =>
  fault?.retryAfterSeconds === undefined ? {} : { 'Retry-After': String(fault.retryAfterSeconds) }

/** A path of this hub, and nothing that could lead elsewhere. */
export const isOwnPath = (path: string): boolean => /^\/(c|alerts)\/[\x21-\x5b\x5d-\x7e]*$/.test(path)

/** The login page, with the reason when an attempt was refused; `next` is where it leads to. */
export function loginPage(language: WebLanguage, email = '', fault: Fault | null = null, next = ''): Response {
  const body = html`<main class="login">
<div class="login-box">
<h1 class="brand">${brand(language)}</h1>
<form method="post" action="/login">
${fault === null ? null : html`<p class="fault" role="alert">${fault.message}</p>`}
${next === '' ? null : html`<input type="hidden" name="next" value="${next}">`}
<label for="email">${say(language, 'email')}</label>
<input id="email" name="email" type="email" autocomplete="username" required maxlength="254" value="${email}"${email === '' ? html` autofocus` : null}>
<label for="password">${say(language, 'password')}</label>
<input id="password" name="password" type="password" autocomplete="current-password" required maxlength="1024"${email === '' ? null : html` autofocus`}>
<button class="primary" type="submit">${say(language, 'sign_in')}</button>
</form>
<p class="hint">${say(language, 'sign_in_hint')}</p>
</div>
</main>`
  const title = `${say(language, 'sign_in')} · ${say(language, 'product')}`
  return pageResponse(fault?.status ?? 200, { language, title, body }, retryHeaders(fault))
}

/** What a form of the login says of a try that was refused; `wrong`: its words for what was wrong. */
export function faultOf(
  language: WebLanguage,
  refused: Refused,
  wrong: 'login_failed' | 'code_failed' | 'two_factor_failed',
): Fault {
  if (refused.refused === 'limited') {
    const seconds = refused.retryAfterSeconds
    return { status: 429, message: say(language, 'login_limited', { seconds }), retryAfterSeconds: seconds }
  }
  const isBusy = refused.refused === 'busy'
  return { status: isBusy ? 503 : 401, message: say(language, isBusy ? 'unavailable' : wrong) }
}

/** POST /login */
export async function logIn(hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> {
  const language = languageOf(request)
  const refuse = (email: string, refused: Refused, next = '') =>
    loginPage(language, email, faultOf(language, refused, 'login_failed'), next)
  if (!isOwnForm(request)) return loginPage(language, '', { status: 403, message: say(language, 'login_foreign') })
  const visitor = visitorOf(hub, request, requestMeta)
  const attempt = takeLoginAttempt(hub.requestWindows, visitor.ip)
  if (!attempt.allowed) return refuse('', { refused: 'limited', retryAfterSeconds: attempt.retryAfterSeconds })

  const form = await readForm(request)
  const next = form.get('next') ?? ''
  const email = (form.get('email') ?? '').trim().slice(0, 254)
  const password = form.get('password') ?? ''
  if (email === '' || password === '' || password.length > 1024) return refuse(email, { refused: 'wrong' })

  const found = await tryLogin(
    hub,
    email,
    visitor.ip,
    async () => (await findLogin(hub, email, password)) ?? { refused: 'wrong' },
  )
  if ('refused' in found) return refuse(email, found, found.refused === 'wrong' ? next : '')
  if (!found.hasSecondFactor) return signIn(hub, request, requestMeta, found, next)
  const query = isOwnPath(next) ? `?${new URLSearchParams({ next })}` : ''
  const cookie = pendingCookieHeader(hub, found, requestMeta.secure)
  return redirect(`/login/two-factor${query}`, { 'Set-Cookie': cookie })
}

/** Begins the session of somebody who has shown all that their login asks for, and leads to the address they wanted. */
export async function signIn(
  hub: Hub,
  request: Request,
  requestMeta: RequestMeta,
  user: LoginUser,
  next: string,
): Promise<Response> {
  const visitor = visitorOf(hub, request, requestMeta)
  // The session that the browser still has ends with the new one.
  const former = await guestOf(hub, request)
  if (former !== null) await endWebSession(hub, former.caller, visitor)
  const token = await beginSession(hub, user, visitor)
  return redirect(isOwnPath(next) ? next : '/', { 'Set-Cookie': sessionCookieHeader(token, requestMeta.secure) })
}

/** POST /logout: with the session's token in X-CSRF-Token or in the form. */
export async function logOut(hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> {
  const guest = await guestOf(hub, request)
  if (guest !== null) {
    const given = request.headers.get('x-csrf-token') ?? (await readForm(request)).get('csrf_token')
    if (!isOwnToken(given, guest)) return redirect('/')
    await endWebSession(hub, guest.caller, visitorOf(hub, request, requestMeta))
  }
  return redirect('/login', { 'Set-Cookie': endedCookieHeader(requestMeta.secure) })
}
