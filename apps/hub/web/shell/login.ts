// The login: a form without script, limited by e-mail and address (identity/login-attempts.ts), and the logout.

import { availableParallelism } from 'node:os'
import { rateKeyOf } from '../../../../core/network/rate-key.ts'
import type { Hub } from '../../hub-context.ts'
import { isOwnForm, isOwnToken } from '../../identity/csrf.ts'
import { countLoginFailure, mayFailAgain, takeLoginAttempt } from '../../identity/login-attempts.ts'
import { FairTurns } from '../../platform/fair-turns.ts'
import { preferredLanguage } from '../../platform/http/negotiation.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import { say } from '../words/forms.ts'
import type { WebLanguage } from '../words/words.ts'
import { readForm } from './form.ts'
import { brand, html, pageResponse, redirect } from './html.ts'
import { guestOf, visitorOf } from './page-visitor.ts'
import { beginSession, endedCookieHeader, endWebSession, findLogin, sessionCookieHeader } from './sessions.ts'

const WAITING_MAX = 100

export const languageOf = (request: Request): WebLanguage => preferredLanguage(request.headers.get('accept-language'))

type Fault = { readonly status: number; readonly message: string; readonly retryAfterSeconds?: number }

/** A path of this hub, and nothing that could lead elsewhere. */
const isOwnPath = (path: string): boolean => /^\/(c|alerts)\/[\x21-\x5b\x5d-\x7e]*$/.test(path)

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
  const retry = fault?.retryAfterSeconds
  const title = `${say(language, 'sign_in')} · ${say(language, 'product')}`
  return pageResponse(
    fault?.status ?? 200,
    { language, title, body },
    retry === undefined ? {} : { 'Retry-After': String(retry) },
  )
}

/**
 * A hash occupies a core and 64 MiB of memory, outside the thread that answers requests. One address has one login at a
 * time, so that concurrent attempts cannot pass a limit that is checked before each.
 */
const logins = new FairTurns(Math.max(1, Math.floor(availableParallelism() / 2)), WAITING_MAX)

/** POST /login */
export async function logIn(hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> {
  const language = languageOf(request)
  const refuse = (email: string, status: number, key: 'login_failed' | 'login_foreign' | 'unavailable', next = '') =>
    loginPage(language, email, { status, message: say(language, key) }, next)
  const limited = (email: string, seconds: number) =>
    loginPage(language, email, {
      status: 429,
      message: say(language, 'login_limited', { seconds }),
      retryAfterSeconds: seconds,
    })
  if (!isOwnForm(request)) return refuse('', 403, 'login_foreign')
  const visitor = visitorOf(hub, request, requestMeta)
  const attempt = takeLoginAttempt(hub.requestWindows, visitor.ip)
  if (!attempt.allowed) return limited('', attempt.retryAfterSeconds)

  const form = await readForm(request)
  const next = form.get('next') ?? ''
  const email = (form.get('email') ?? '').trim().slice(0, 254)
  const password = form.get('password') ?? ''
  if (email === '' || password === '' || password.length > 1024) return refuse(email, 401, 'login_failed')

  const answer = await logins.run(rateKeyOf(visitor.ip), async () => {
    const allowance = mayFailAgain(hub.requestWindows, email, visitor.ip)
    if (!allowance.allowed) return limited(email, allowance.retryAfterSeconds)
    const user = await findLogin(hub, email, password)
    if (user !== null) return user
    countLoginFailure(hub.requestWindows, email, visitor.ip)
    return refuse(email, 401, 'login_failed', next)
  })
  if (answer === null) return refuse(email, 503, 'unavailable')
  if (answer instanceof Response) return answer

  // The session that the browser still has ends with the new one.
  const former = await guestOf(hub, request)
  if (former !== null) await endWebSession(hub, former.caller, visitor)
  const token = await beginSession(hub, answer, visitor)
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
