// The head of every page that one sees after the login: where one is, who one is, and the way out.

import { issuePermission } from '../identity/tokens.ts'
import { brand, type Html, html } from './html.ts'
import type { Guest } from './page-visitor.ts'
import { say, type WebLanguage } from './web-texts.ts'

function signOutForm(language: WebLanguage, csrfToken: string): Html {
  return html`<form class="sign-out" method="post" action="/logout">
<input type="hidden" name="csrf_token" value="${csrfToken}">
<button type="submit">${say(language, 'sign_out')}</button>
</form>`
}

const CONNECTION = html`<span id="connection" class="connection" role="status" data-state="connecting"></span>`

/** `company` stands beside the product's name. A live page shows here whether it is connected. */
export const header = (
  language: WebLanguage,
  guest: Guest,
  company: Html | null = null,
  isLive = false,
): Html => html`<header class="top">
<a class="brand" href="/">${brand(language)}</a>
${company}
<span class="spacer"></span>
${isLive ? CONNECTION : null}
${guest.caller.permissions.has(issuePermission) ? html`<a class="plain" href="/tokens">${say(language, 'tokens')}</a>` : null}
<span class="user">${guest.caller.user.name}</span>
${signOutForm(language, guest.csrfToken)}
</header>`
