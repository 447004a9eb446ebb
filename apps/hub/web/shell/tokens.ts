// The screen that issues and revokes API tokens (decisions G-01, G-12). Tokens are managed with a session, never with a
// token.

import { and, asc, eq, sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'
import { isOwnToken } from '../../identity/csrf.ts'
import { assignablePermissions, expandPermissions } from '../../identity/permission-keys.ts'
import { defaultLifeDays } from '../../identity/token-life.ts'
import {
  issuePermission,
  issueToken,
  listTokens,
  revokeIssuedToken,
  type TokenInput,
  type TokenRow,
} from '../../identity/tokens.ts'
import { users } from '../../platform/db/schema-identity.ts'
import { ApiError } from '../../platform/http/api-error.ts'
import { render } from '../../platform/http/api-texts.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import { refuseInMaintenance } from '../../platform/http/refuse-in-maintenance.ts'
import { say } from '../words/forms.ts'
import type { WebLanguage } from '../words/words.ts'
import { readForm } from './form.ts'
import { header } from './header.ts'
import { type Html, html, pageResponse, redirect } from './html.ts'
import { languageOf } from './login.ts'
import { type Guest, guestOf, visitorOf } from './page-visitor.ts'

const PEOPLE_SHOWN = 500
const PERMISSIONS_SHOWN = 4

/** A guest who may issue, with the company; or the answer for one who may not. */
type Issuer = { readonly guest: Guest; readonly companyId: string }

async function issuerOf(hub: Hub, request: Request): Promise<Issuer | Response> {
  const language = languageOf(request)
  const guest = await guestOf(hub, request)
  if (guest === null) return redirect('/login')
  const { companyId } = guest.caller.user
  if (guest.caller.permissions.has(issuePermission) && companyId !== null) return { guest, companyId }
  const title = say(language, 'tokens')
  const body = html`${header(language, guest)}
<main class="notice"><h1>${title}</h1><p>${say(language, 'tokens_no_access')}</p></main>`
  return pageResponse(403, { language, title, body })
}

const minutes = (at: Date | null, otherwise: string): string =>
  at === null ? otherwise : at.toISOString().slice(0, 16).replace('T', ' ')

function stateOf({ token, isMakerOut }: TokenRow, nowMs: number): 'token_active' | 'token_expired' | 'token_revoked' {
  if (token.revokedAt !== null || isMakerOut) return 'token_revoked'
  return token.expiresAt !== null && token.expiresAt.getTime() <= nowMs ? 'token_expired' : 'token_active'
}

/** A few permissions as they are; of many the first ones and how many more, with the whole list to point at. */
function permissionCell(language: WebLanguage, permissions: readonly string[] | null): Html {
  const isAll = permissions === null || expandPermissions(permissions).size >= assignablePermissions.length
  if (isAll) return html`<td>${say(language, 'all_permissions')}</td>`
  const more = permissions.length - PERMISSIONS_SHOWN
  const shown = permissions.slice(0, PERMISSIONS_SHOWN).join(', ')
  return html`<td title="${permissions.join(', ')}">${shown}${more > 0 ? ` +${more}` : ''}</td>`
}

function tokenLine(language: WebLanguage, csrfToken: string, row: TokenRow, nowMs: number): Html {
  const { token, owner } = row
  const state = stateOf(row, nowMs)
  const never = say(language, 'never')
  const button = html`<form method="post" action="/tokens/revoke"><input type="hidden" name="csrf_token" value="${csrfToken}">
<input type="hidden" name="id" value="${token.id}"><button type="submit">${say(language, 'token_revoke')}</button></form>`
  return html`<tr data-state="${state}"><td>${token.name}</td><td>${owner.name}</td><td><code>${token.tokenHint}</code></td>
${permissionCell(language, token.permissions)}<td>${minutes(token.expiresAt, never)}</td>
<td>${minutes(token.lastUsedAt, never)}</td><td>${say(language, state)}</td><td>${state === 'token_revoked' ? null : button}</td></tr>
`
}

type Notification = { readonly status: number; readonly fault?: string; readonly token?: string }

function issueForm(
  language: WebLanguage,
  guest: Guest,
  people: readonly { id: string; name: string; email: string }[],
  ratePerMinute: number,
): Html {
  const own = guest.caller.user.id
  const options = people.map(
    ({ id, name, email }) =>
      html`<option value="${id}"${id === own ? html` selected` : null}>${name} (${email})</option>`,
  )
  const boxes = assignablePermissions.map(
    permission => html`<label><input type="checkbox" name="permissions" value="${permission}"> ${permission}</label>`,
  )
  return html`<form class="issue" method="post" action="/tokens">
<input type="hidden" name="csrf_token" value="${guest.csrfToken}">
<label>${say(language, 'token_name')}<input name="name" required maxlength="255"></label>
<label>${say(language, 'token_user')}<select name="user_id">${options}</select></label>
<label>${say(language, 'token_days')}<input name="expires_in_days" inputmode="numeric" value="${defaultLifeDays}"></label>
<label>${say(language, 'token_ranges')}<input name="ip_ranges" placeholder="192.0.2.0/24, 2001:db8::/32"></label>
<label>${say(language, 'token_rate', { default: ratePerMinute })}<input name="rate_per_minute" inputmode="numeric"></label>
<fieldset><legend>${say(language, 'token_permissions')}</legend>${boxes}</fieldset>
<button class="primary" type="submit">${say(language, 'token_issue')}</button>
</form>`
}

async function page(hub: Hub, request: Request, { guest, companyId }: Issuer, told: Notification): Promise<Response> {
  const language = languageOf(request)
  const { db } = hub.database
  const [tokens, people] = await Promise.all([
    listTokens(db, companyId),
    db
      .select({ id: users.id, name: users.name, email: users.email })
      .from(users)
      .where(and(eq(users.companyId, companyId), eq(users.kind, 'person'), sql`${users.disabledAt} is null`))
      .orderBy(asc(sql`lower(${users.name})`), asc(users.id))
      .limit(PEOPLE_SHOWN),
  ])
  const columns = [
    'token_name',
    'token_user',
    'token_hint',
    'permissions',
    'token_expires',
    'token_used',
    'token_state',
  ] as const
  const heads = columns.map(key => html`<th scope="col">${say(language, key)}</th>`)
  const lines = tokens.map(row => tokenLine(language, guest.csrfToken, row, hub.now()))
  const table = html`<div class="wide"><table><thead><tr>${heads}<th></th></tr></thead><tbody>${lines}</tbody></table></div>`
  const body = html`${header(language, guest)}
<main class="tokens">
<h1>${say(language, 'tokens')}</h1>
${told.fault === undefined ? null : html`<p class="fault" role="alert">${told.fault}</p>`}
${told.token === undefined ? null : html`<div class="once" role="status"><p>${say(language, 'token_once')}</p><code id="token">${told.token}</code></div>`}
${tokens.length > 0 ? table : html`<p class="muted">${say(language, 'token_none')}</p>`}
<h2>${say(language, 'token_new')}</h2>
${issueForm(language, guest, people, hub.config['rate.default_per_minute'])}
</main>`
  return pageResponse(told.status, { language, title: say(language, 'tokens'), body })
}

/** GET /tokens */
export async function tokensPage(hub: Hub, request: Request): Promise<Response> {
  const issuer = await issuerOf(hub, request)
  return issuer instanceof Response ? issuer : page(hub, request, issuer, { status: 200 })
}

const numberOf = (text: string | null): number | null => (text === null || text.trim() === '' ? null : Number(text))

function inputOf(form: URLSearchParams): TokenInput {
  const permissions = form.getAll('permissions')
  return {
    userId: form.get('user_id') ?? '',
    name: form.get('name') ?? '',
    permissions: permissions.length > 0 ? permissions : null,
    ipRanges: (form.get('ip_ranges') ?? '').split(/[\s,;]+/).filter(range => range !== ''),
    ratePerMinute: numberOf(form.get('rate_per_minute')),
    expiresInDays: numberOf(form.get('expires_in_days')),
  }
}

/** What the refusal says, field by field. */
function faultText(error: ApiError, language: WebLanguage): string {
  const fields = Object.entries(error.more.errors ?? {}).map(
    ([field, texts]) => `${field}: ${texts.map(text => render(text, language)).join(', ')}`,
  )
  return fields.length > 0 ? fields.join('; ') : render(error.text, language)
}

/** Runs an act of the screen's forms: with a session that may, and the session's own token in the form. */
async function acted(
  hub: Hub,
  request: Request,
  act: (issuer: Issuer, form: URLSearchParams) => Promise<Response>,
): Promise<Response> {
  const issuer = await issuerOf(hub, request)
  if (issuer instanceof Response) return issuer
  const form = await readForm(request)
  if (!isOwnToken(form.get('csrf_token'), issuer.guest)) return redirect('/tokens')
  try {
    refuseInMaintenance(hub, issuer.guest.caller.actsAsSuperAdmin, languageOf(request))
    return await act(issuer, form)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return page(hub, request, issuer, { status: error.status, fault: faultText(error, languageOf(request)) })
  }
}

/** POST /tokens: the answer shows the token, and no other page ever does. */
export const issue = (hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> =>
  acted(hub, request, async (issuer, form) => {
    const visitor = visitorOf(hub, request, requestMeta)
    const { token } = await issueToken(hub, issuer.guest.caller, issuer.companyId, inputOf(form), visitor)
    return page(hub, request, issuer, { status: 201, token })
  })

/** POST /tokens/revoke */
export const revoke = (hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> =>
  acted(hub, request, async (issuer, form) => {
    const visitor = visitorOf(hub, request, requestMeta)
    await revokeIssuedToken(hub, issuer.guest.caller, issuer.companyId, form.get('id') ?? '', visitor)
    return redirect('/tokens')
  })
