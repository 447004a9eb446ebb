// The head of every page that one sees after the login: where one is, who one is, and the way out.

import { issuePermission } from '../../identity/tokens.ts'
import { say } from '../words/forms.ts'
import type { WebLanguage } from '../words/words.ts'
import { brand, type Html, html } from './html.ts'
import type { Guest } from './page-visitor.ts'

function signOutForm(language: WebLanguage, csrfToken: string): Html {
  return html`<form class="sign-out" method="post" action="/logout">
<input type="hidden" name="csrf_token" value="${csrfToken}">
<button type="submit">${say(language, 'sign_out')}</button>
</form>`
}

export const header = (language: WebLanguage, guest: Guest): Html => html`<header class="top">
<a class="brand" href="/">${brand(language)}</a>
<span class="spacer"></span>
${guest.caller.permissions.has(issuePermission) ? html`<a class="plain" href="/tokens">${say(language, 'tokens')}</a>` : null}
<a class="plain" href="/two-factor">${say(language, 'two_factor')}</a>
<span class="user">${guest.caller.user.name}</span>
${signOutForm(language, guest.csrfToken)}
</header>`
