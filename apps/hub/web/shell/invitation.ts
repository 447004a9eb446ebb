// The page behind an invitation's link: whoever has it chooses a name and a password, and is logged in.

import type { Hub } from '../../hub-context.ts'
import { isOwnForm } from '../../identity/csrf.ts'
import { mayUseLink } from '../../identity/login-attempts.ts'
import { PASSWORD_CHARS_MIN } from '../../identity/password-length.ts'
import { acceptInvitation, type InvitationLink, type Invited, invitationOf } from '../../invitations/invitations.ts'
import { clientAddress } from '../../platform/http/client-address.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import { say } from '../words/forms.ts'
import type { WebLanguage } from '../words/words.ts'
import { readForm } from './form.ts'
import { brand, html, pageResponse } from './html.ts'
import { languageOf, signIn } from './login.ts'
import { visitorOf } from './page-visitor.ts'

function gonePage(language: WebLanguage): Response {
  const title = say(language, 'invitation_gone_title')
  const body = html`<main class="notice"><h1>${title}</h1><p>${say(language, 'invitation_gone')}</p></main>`
  return pageResponse(404, { language, title, body })
}

function formPage(
  language: WebLanguage,
  { token, mailed }: InvitationLink,
  invited: Invited,
  name: string,
  fault: string | null,
): Response {
  const title = say(language, 'invitation_title', { company: invited.companyName })
  const min = PASSWORD_CHARS_MIN
  const body = html`<main class="login">
<div class="login-box">
<p class="brand">${brand(language)}</p>
<h1>${title}</h1>
<p class="muted">${say(language, 'invitation_text', { email: invited.email })}</p>
<p class="muted">${say(language, 'invitation_login')}</p>
<form method="post" action="/invitation">
${fault === null ? null : html`<p class="fault" role="alert">${fault}</p>`}
<input type="hidden" name="token" value="${token}">
<input type="hidden" name="mailed" value="${mailed}">
<label for="name">${say(language, 'name')}</label>
<input id="name" name="name" autocomplete="name" required maxlength="255" value="${name}">
<label for="password">${say(language, 'new_password', { min })}</label>
<input id="password" name="password" type="password" autocomplete="new-password" required minlength="${min}" maxlength="1024">
<label for="again">${say(language, 'new_password_again')}</label>
<input id="again" name="again" type="password" autocomplete="new-password" required minlength="${min}" maxlength="1024">
<button class="primary" type="submit">${say(language, 'join')}</button>
</form>
</div>
</main>`
  return pageResponse(fault === null ? 200 : 422, { language, title, body })
}

/** Nobody finds a link by trying: 256 random bits. The limit keeps trying from costing anything. */
function isAllowed(hub: Hub, request: Request, requestMeta: RequestMeta): boolean {
  const ip = clientAddress(requestMeta.peer, request.headers.get('x-forwarded-for'), hub.config.trusted_proxies)
  return mayUseLink(hub.requestWindows, 'invitation', ip)
}

const linkOf = (fields: URLSearchParams): InvitationLink => ({
  token: fields.get('token') ?? '',
  mailed: fields.get('mailed') ?? '',
})

/** GET /invitation?token= */
export async function invitationPage(hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> {
  const language = languageOf(request)
  const link = linkOf(new URL(request.url).searchParams)
  const invited = isAllowed(hub, request, requestMeta) ? await invitationOf(hub, link.token) : null
  return invited ? formPage(language, link, invited, invited.name ?? '', null) : gonePage(language)
}

/** POST /invitation */
export async function acceptedInvitation(hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> {
  const language = languageOf(request)
  const form = await readForm(request)
  const link = linkOf(form)
  const isUsable = isOwnForm(request) && isAllowed(hub, request, requestMeta)
  const invited = isUsable ? await invitationOf(hub, link.token) : null
  if (!invited) return gonePage(language)
  const name = (form.get('name') ?? '').trim().slice(0, 255)
  const password = form.get('password') ?? ''
  const min = PASSWORD_CHARS_MIN
  const refuse = (fault: string) => formPage(language, link, invited, name, fault)
  if (password.length < min || password.length > 1024) return refuse(say(language, 'password_short', { min }))
  if (password !== form.get('again')) return refuse(say(language, 'passwords_differ'))
  const visitor = visitorOf(hub, request, requestMeta)
  const user = await acceptInvitation(hub, link, { name: name || invited.email, password }, visitor)
  if (!user) return gonePage(language)
  if (user === 'login_taken') return refuse(say(language, 'invitation_taken'))
  return signIn(hub, request, requestMeta, user, '/')
}
