// The screen where people turn their second factor on and off (decision G-02). It is turned on with the password and a
// code, so that nobody who finds an open session locks its owner out, and off with a code, so that the password that it
// guards does not undo it.
import { encode } from 'uqr'
import type { Hub } from '../../hub-context.ts'
import { isOwnToken } from '../../identity/csrf.ts'
import { takeLoginAttempt } from '../../identity/login-attempts.ts'
import {
  newOffer,
  type Offer,
  offerOf,
  recoveryCodesLeft,
  renewRecoveryCodes,
  turnOff,
  turnOn,
} from '../../identity/second-factor.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import { refuseInMaintenance } from '../../platform/http/refuse-in-maintenance.ts'
import { say } from '../words/forms.ts'
import type { WebLanguage } from '../words/words.ts'
import { readForm } from './form.ts'
import { header } from './header.ts'
import { type Html, html, pageResponse, redirect } from './html.ts'
import { type Fault, faultOf, languageOf, retryHeaders } from './login.ts'
import { type Refused, tryLogin } from './login-tries.ts'
import { type Guest, guestOf, visitorOf } from './page-visitor.ts'
import { findLogin, type Visitor } from './sessions.ts'

/** Light around the code, in modules, that readers need. */
const QUIET_ZONE = 4

/** Dark on light whatever the colours of the page are, and without a style, which the policy of pages forbids. */
function qrCode(text: string, label: string): Html {
  const { size, data } = encode(text, { border: QUIET_ZONE })
  const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])))
  return html`<svg class="qr" role="img" aria-label="${label}" viewBox="0 0 ${size} ${size}" width="240" height="240" shape-rendering="crispEdges"><rect width="${size}" height="${size}" fill="white"/><path d="${dark.join('')}" fill="black"/></svg>`
}

const hidden = (name: string, value: string): Html => html`<input type="hidden" name="${name}" value="${value}">`

const codeField = (language: WebLanguage, label: 'two_factor_app_code' | 'two_factor_code'): Html =>
  html`<label>${say(language, label)}<input name="code" autocomplete="one-time-code" autocapitalize="off" spellcheck="false" required maxlength="64"></label>`

function offForms(language: WebLanguage, guest: Guest, offer: Offer): Html {
  return html`<p>${say(language, 'two_factor_is_off')}</p>
<p>${say(language, 'two_factor_scan')}</p>
${qrCode(offer.link, say(language, 'two_factor_qr'))}
<p>${say(language, 'two_factor_secret')} <code id="secret">${offer.secret}</code></p>
<p><a href="${offer.link}">${say(language, 'two_factor_link')}</a></p>
<form class="second-factor" method="post" action="/two-factor">
${hidden('csrf_token', guest.csrfToken)}${hidden('offer', offer.sealed)}
${codeField(language, 'two_factor_app_code')}
<label>${say(language, 'password')}<input name="password" type="password" autocomplete="current-password" required maxlength="1024"></label>
<button class="primary" type="submit">${say(language, 'two_factor_turn_on')}</button>
</form>`
}

function onForms(language: WebLanguage, guest: Guest, left: number): Html {
  const form = (action: string, title: 'two_factor_new_codes' | 'two_factor_turn_off') =>
    html`<h2>${say(language, title)}</h2>
<form class="second-factor" method="post" action="${action}">
${hidden('csrf_token', guest.csrfToken)}
${codeField(language, 'two_factor_code')}
<button type="submit">${say(language, title)}</button>
</form>`
  return html`<p>${say(language, 'two_factor_is_on', { left })}</p>
${form('/two-factor/codes', 'two_factor_new_codes')}
${form('/two-factor/off', 'two_factor_turn_off')}`
}

const recoveryList = (language: WebLanguage, codes: readonly string[]): Html =>
  html`<div class="once" role="status"><p>${say(language, 'two_factor_once')}</p>
<ul class="recovery-codes">${codes.map(code => html`<li><code>${code}</code></li>`)}</ul></div>`

type Told = { readonly fault?: Fault; readonly offer?: Offer | null; readonly codes?: readonly string[] }

async function page(hub: Hub, request: Request, guest: Guest, told: Told = {}): Promise<Response> {
  const language = languageOf(request)
  const { fault, codes } = told
  const left = await recoveryCodesLeft(hub, guest.caller.user.id)
  const title = say(language, 'two_factor')
  const body = html`${header(language, guest)}
<main class="tokens">
<h1>${title}</h1>
${fault === undefined ? null : html`<p class="fault" role="alert">${fault.message}</p>`}
${codes === undefined ? null : recoveryList(language, codes)}
${left === null ? offForms(language, guest, told.offer ?? newOffer(hub, guest.caller.user)) : onForms(language, guest, left)}
</main>`
  return pageResponse(
    fault?.status ?? (codes === undefined ? 200 : 201),
    { language, title, body },
    retryHeaders(fault ?? null),
  )
}

/** GET /two-factor */
export async function twoFactorPage(hub: Hub, request: Request): Promise<Response> {
  const guest = await guestOf(hub, request)
  return guest === null ? redirect('/login') : page(hub, request, guest)
}

type Form = {
  readonly guest: Guest
  readonly fields: URLSearchParams
  readonly offer: Offer | null
  readonly visitor: Visitor
}

/**
 * Runs an act of the screen's forms: with a session, its own token in the form, and within the limits of logins.
 * `attempt`: the recovery codes that the page then tells, if any, or why it was refused.
 */
async function acted(
  hub: Hub,
  request: Request,
  requestMeta: RequestMeta,
  attempt: (form: Form) => Promise<Pick<Told, 'codes'> | Refused>,
): Promise<Response> {
  const guest = await guestOf(hub, request)
  if (guest === null) return redirect('/login')
  const fields = await readForm(request)
  if (!isOwnToken(fields.get('csrf_token'), guest)) return redirect('/two-factor')
  const language = languageOf(request)
  refuseInMaintenance(hub, guest.caller.actsAsSuperAdmin, language)
  const visitor = visitorOf(hub, request, requestMeta)
  const offer = offerOf(hub, guest.caller.user, fields.get('offer') ?? '')
  const refuse = (refused: Refused) =>
    page(hub, request, guest, { fault: faultOf(language, refused, 'two_factor_failed'), offer })
  const allowance = takeLoginAttempt(hub.requestWindows, visitor.ip)
  if (!allowance.allowed) return refuse({ refused: 'limited', retryAfterSeconds: allowance.retryAfterSeconds })
  const told = await tryLogin(hub, guest.caller.user.email, visitor.ip, () =>
    attempt({ guest, fields, offer, visitor }),
  )
  if ('refused' in told) return refuse(told)
  return told.codes === undefined ? redirect('/two-factor') : page(hub, request, guest, told)
}

const codeIn = (fields: URLSearchParams): string => (fields.get('code') ?? '').slice(0, 64)

/** POST /two-factor: turns it on. The answer shows the recovery codes, and no other page ever does. */
export const turnedOn = (hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> =>
  acted(hub, request, requestMeta, async ({ guest: { caller }, fields, offer, visitor }) => {
    const password = fields.get('password') ?? ''
    const found = password.length > 1024 ? null : await findLogin(hub, caller.user.email, password)
    if (found?.id !== caller.user.id || offer === null) return { refused: 'wrong' }
    const codes = await turnOn(hub, caller, offer.secret, codeIn(fields), visitor)
    return codes === null ? { refused: 'wrong' } : { codes }
  })

/** POST /two-factor/off */
export const turnedOff = (hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> =>
  acted(hub, request, requestMeta, async ({ guest, fields, visitor }) => {
    const answer = await turnOff(hub, guest.caller, codeIn(fields), visitor)
    return 'refused' in answer ? answer : {}
  })

/** POST /two-factor/codes: ten new recovery codes, shown in this answer alone. */
export const renewedCodes = (hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> =>
  acted(hub, request, requestMeta, ({ guest, fields, visitor }) =>
    renewRecoveryCodes(hub, guest.caller, codeIn(fields), visitor),
  )
