// The page behind the link in a message to an unconfirmed address: the reader of the mailbox confirms the address or
// stops the messages. Mail scanners open links too, so only the form changes anything.

import type { Hub } from '../../hub-context.ts'
import { isOwnForm } from '../../identity/csrf.ts'
import { mayUseLink } from '../../identity/login-attempts.ts'
import { type AddressOfLink, addressOfLink, decideAddress } from '../../notifications/unconfirmed-addresses.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import { say } from '../words/forms.ts'
import type { WebLanguage } from '../words/words.ts'
import { readForm } from './form.ts'
import { brand, html, pageResponse } from './html.ts'
import { languageOf } from './login.ts'
import { visitorOf } from './page-visitor.ts'

function notice(language: WebLanguage, status: number, text: string): Response {
  const title = say(language, 'address_title')
  const body = html`<main class="notice"><h1>${title}</h1><p>${text}</p></main>`
  return pageResponse(status, { language, title, body })
}

const gone = (language: WebLanguage): Response => notice(language, 404, say(language, 'address_gone'))

function choice(language: WebLanguage, token: string, { address, companyName }: AddressOfLink): Response {
  const title = say(language, 'address_title')
  const body = html`<main class="login">
<div class="login-box">
<p class="brand">${brand(language)}</p>
<h1>${title}</h1>
<p>${say(language, 'address_text', { address, company: companyName })}</p>
<form method="post" action="/address">
<input type="hidden" name="token" value="${token}">
<button class="primary" type="submit" name="decision" value="confirm">${say(language, 'address_confirm')}</button>
<button type="submit" name="decision" value="stop">${say(language, 'address_stop')}</button>
</form>
</div>
</main>`
  return pageResponse(200, { language, title, body })
}

/** The address of a link; null for an invalid link, and for a client with too many attempts. */
async function found(
  hub: Hub,
  request: Request,
  requestMeta: RequestMeta,
  token: string,
): Promise<AddressOfLink | null> {
  const { ip } = visitorOf(hub, request, requestMeta)
  return mayUseLink(hub.requestWindows, 'address', ip) ? addressOfLink(hub, token) : null
}

/** GET /address?token= */
export async function addressPage(hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> {
  const language = languageOf(request)
  const token = new URL(request.url).searchParams.get('token') ?? ''
  const address = await found(hub, request, requestMeta, token)
  return address ? choice(language, token, address) : gone(language)
}

/** POST /address */
export async function decidedAddress(hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> {
  const language = languageOf(request)
  const form = await readForm(request)
  const decision = form.get('decision')
  const address = isOwnForm(request) ? await found(hub, request, requestMeta, form.get('token') ?? '') : null
  if (!address || (decision !== 'confirm' && decision !== 'stop')) return gone(language)
  await decideAddress(hub, address, decision)
  return notice(language, 200, say(language, decision === 'confirm' ? 'address_confirmed' : 'address_stopped'))
}
