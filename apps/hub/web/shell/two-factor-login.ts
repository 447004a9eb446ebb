// The second half of a login (decision G-02): after the right password of a person with a second factor, the form that
// takes a code of their app or a recovery code. The session begins here, and not before.
import type { Hub } from '../../hub-context.ts'
import { isOwnForm } from '../../identity/csrf.ts'
import { takeLoginAttempt } from '../../identity/login-attempts.ts'
import { takeCode } from '../../identity/second-factor.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import { say } from '../words/forms.ts'
import type { WebLanguage } from '../words/words.ts'
import { readForm } from './form.ts'
import { brand, html, pageResponse, redirect } from './html.ts'
import { type Fault, faultOf, isOwnPath, languageOf, retryHeaders, signIn } from './login.ts'
import { type Refused, tryLogin } from './login-tries.ts'
import { visitorOf } from './page-visitor.ts'
import { endedPendingCookieHeader, pendingLogin } from './pending-login.ts'

function codePage(language: WebLanguage, next: string, fault: Fault | null = null): Response {
  const body = html`<main class="login">
<div class="login-box">
<h1 class="brand">${brand(language)}</h1>
<form method="post" action="/login/two-factor">
${fault === null ? null : html`<p class="fault" role="alert">${fault.message}</p>`}
${isOwnPath(next) ? html`<input type="hidden" name="next" value="${next}">` : null}
<label for="code">${say(language, 'two_factor_code')}</label>
<input id="code" name="code" autocomplete="one-time-code" autocapitalize="off" spellcheck="false" required maxlength="64" autofocus>
<button class="primary" type="submit">${say(language, 'sign_in')}</button>
</form>
<p class="hint">${say(language, 'two_factor_login_hint')}</p>
</div>
</main>`
  const title = `${say(language, 'two_factor')} · ${say(language, 'product')}`
  return pageResponse(fault?.status ?? 200, { language, title, body }, retryHeaders(fault))
}

/** To the password, for whoever comes here without one that was right a moment ago. */
const toLogin = (secure: boolean): Response => redirect('/login', { 'Set-Cookie': endedPendingCookieHeader(secure) })

/** GET /login/two-factor */
export async function codeFormPage(hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> {
  if ((await pendingLogin(hub, request, requestMeta.secure)) === null) return toLogin(requestMeta.secure)
  return codePage(languageOf(request), new URL(request.url).searchParams.get('next') ?? '')
}

/** POST /login/two-factor */
export async function logInWithCode(hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> {
  const language = languageOf(request)
  const { secure } = requestMeta
  const user = await pendingLogin(hub, request, secure)
  if (user === null) return toLogin(secure)
  if (!isOwnForm(request)) return codePage(language, '', { status: 403, message: say(language, 'login_foreign') })
  const visitor = visitorOf(hub, request, requestMeta)
  const form = await readForm(request)
  const next = form.get('next') ?? ''
  const refuse = (refused: Refused) => codePage(language, next, faultOf(language, refused, 'code_failed'))
  const attempt = takeLoginAttempt(hub.requestWindows, visitor.ip)
  if (!attempt.allowed) return refuse({ refused: 'limited', retryAfterSeconds: attempt.retryAfterSeconds })

  const code = (form.get('code') ?? '').slice(0, 64)
  const taken = await tryLogin(hub, user.email, visitor.ip, () => takeCode(hub, user.id, code))
  if ('refused' in taken) return refuse(taken)
  const response = await signIn(hub, request, requestMeta, user, next)
  response.headers.append('Set-Cookie', endedPendingCookieHeader(secure))
  return response
}
