// The web interface of the hub: login, logout, the live page with its stream, and the files they need.
import { eq, isNotNull, sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { usableCompanies } from '../identity/authenticate.ts'
import type { Page } from '../platform/app.ts'
import { collectors } from '../platform/db/schema.ts'
import { companies } from '../platform/db/schema-identity.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { render } from '../platform/http/api-texts.ts'
import type { RequestMeta } from '../platform/http/pipeline.ts'
import { toApiError } from '../platform/http/respond.ts'
import { productVersion } from '../version.ts'
import { assets, serveAsset } from './assets.ts'
import { addressPage, decidedAddress } from './confirm-mail-address.ts'
import { header } from './header.ts'
import { type Html, html, pageResponse, redirect } from './html.ts'
import { acceptedInvitation, invitationPage } from './invitation.ts'
import { LiveStreams } from './live.ts'
import { LivePictures } from './live-views.ts'
import { languageOf, logIn, loginPage, logOut } from './login.ts'
import { companyToShow, type Guest, guestOf } from './page-visitor.ts'
import { issue, revoke, tokensPage } from './tokens.ts'
import { say, type WebLanguage } from './web-texts.ts'

/** The companies to choose from; just the name when there is one. */
function companyChoice(language: WebLanguage, usable: readonly { id: string; name: string }[], shownId: string): Html {
  const shown = usable.find(company => company.id === shownId)
  if (usable.length < 2) return html`<span class="company">${shown?.name ?? ''}</span>`
  const options = usable.map(
    ({ id, name }) => html`<option value="${id}"${id === shownId ? html` selected` : null}>${name}</option>`,
  )
  return html`<select id="company" class="company" aria-label="${say(language, 'company')}">${options}</select>`
}

/** Where agents report, as far as the hub was told; else what a collector listens on unless it is told otherwise. */
async function agentUrl(hub: Hub): Promise<string> {
  const [row] = await hub.database.db
    .select({ url: collectors.baseUrl })
    .from(collectors)
    .where(isNotNull(collectors.baseUrl))
    .orderBy(sql`${collectors.lastHeartbeatAt} desc nulls last`)
    .limit(1)
  return row?.url ?? 'http://127.0.0.1:8081'
}

async function livePage(hub: Hub, guest: Guest, companyId: string, language: WebLanguage): Promise<Response> {
  const { db } = hub.database
  const own = await usableCompanies(db, guest.caller)
  const isListed = own.some(company => company.id === companyId)
  const shown = isListed
    ? own
    : await db.select({ id: companies.id, name: companies.name }).from(companies).where(eq(companies.id, companyId))
  const body = html`<a class="skip" href="#servers">${say(language, 'skip')}</a>
${header(language, guest, companyChoice(language, shown, companyId), true)}
<div id="live"><noscript><p class="banner">${say(language, 'needs_script')}</p></noscript></div>
<footer class="bottom"><a href="/docs">${say(language, 'api_documents')}</a> <span>${productVersion}</span></footer>`
  const mayManage = guest.caller.permissions.has('monitoring.manage')
  const data = {
    csrf: guest.csrfToken,
    company: companyId,
    'may-manage': String(mayManage),
    'may-add': String(mayManage && guest.caller.permissions.has('servers.manage')),
    'agent-url': await agentUrl(hub),
  }
  return pageResponse(200, { language, title: say(language, 'product'), body, data, withScript: true })
}

const noAccessPage = (guest: Guest, language: WebLanguage, reason: string): Response => {
  const body = html`${header(language, guest)}
<main class="notice"><h1>${say(language, 'no_access_title')}</h1><p>${say(language, 'no_access')}</p><p class="muted">${reason}</p></main>`
  return pageResponse(403, { language, title: say(language, 'no_access_title'), body })
}

async function home(hub: Hub, request: Request): Promise<Response> {
  const language = languageOf(request)
  const guest = await guestOf(hub, request)
  if (guest === null) return loginPage(language)
  const asked = new URL(request.url).searchParams.get('company')
  try {
    return await livePage(hub, guest, await companyToShow(hub, guest, asked), language)
  } catch (error) {
    if (error instanceof ApiError && error.status === 403)
      return noAccessPage(guest, language, render(error.text, language))
    throw error
  }
}

async function loginOrHome(hub: Hub, request: Request): Promise<Response> {
  return (await guestOf(hub, request)) === null ? loginPage(languageOf(request)) : redirect('/')
}

async function unknownPage(_hub: Hub, request: Request): Promise<Response> {
  const language = languageOf(request)
  const title = say(language, 'no_page_title')
  const body = html`<main class="notice"><h1>${title}</h1><p><a href="/">${say(language, 'no_page_home')}</a></p></main>`
  return pageResponse(404, { language, title, body })
}

type Handle = (hub: Hub, request: Request, requestMeta: RequestMeta) => Promise<Response>

/** A fault becomes a page that says so and nothing else; the log has the rest. */
const guarded =
  (handle: Handle): Handle =>
  async (hub, request, requestMeta) => {
    try {
      return await handle(hub, request, requestMeta)
    } catch (error) {
      const { status } = toApiError(error, hub.log)
      const language = languageOf(request)
      const text = say(language, status === 503 ? 'unavailable' : 'failed')
      const body = html`<main class="notice"><h1>${say(language, 'product')}</h1><p>${text}</p></main>`
      return pageResponse(status, { language, title: say(language, 'product'), body })
    }
  }

/** Counts what a page answers, under one name for all files. */
const counted = (page: Page): Page => ({
  ...page,
  handle: async (hub, request, requestMeta) => {
    const response = await page.handle(hub, request, requestMeta)
    const path = Object.values(assets).some(asset => asset.path === page.path) ? '/web/:file' : page.path
    hub.metrics.requests.inc({ route: `${page.method} ${path}`, code: response.status })
    return response
  },
})

/** The pages of a hub, for its application. */
export function webPages(): readonly Page[] {
  const streams = new WeakMap<Hub, LiveStreams>()
  const streamsOf = (hub: Hub): LiveStreams => {
    const known = streams.get(hub) ?? new LiveStreams(hub, new LivePictures(hub))
    streams.set(hub, known)
    return known
  }
  const pages: readonly Page[] = [
    { method: 'GET', path: '/', handle: guarded(home) },
    { method: 'GET', path: '/login', handle: guarded(loginOrHome) },
    { method: 'POST', path: '/login', handle: guarded(logIn) },
    { method: 'POST', path: '/logout', handle: guarded(logOut) },
    { method: 'GET', path: '/invitation', handle: guarded(invitationPage) },
    { method: 'POST', path: '/invitation', handle: guarded(acceptedInvitation) },
    { method: 'GET', path: '/address', handle: guarded(addressPage) },
    { method: 'POST', path: '/address', handle: guarded(decidedAddress) },
    { method: 'GET', path: '/tokens', handle: guarded(tokensPage) },
    { method: 'POST', path: '/tokens', handle: guarded(issue) },
    { method: 'POST', path: '/tokens/revoke', handle: guarded(revoke) },
    {
      method: 'GET',
      path: '/web/live',
      handle: (hub, request, requestMeta) => streamsOf(hub).open(request, requestMeta),
    },
    // Notifications link to an alert; the live page shows it among the open ones.
    {
      method: 'GET',
      path: '/alerts/:alert',
      handle: (_hub, request) => redirect(`/#alert-${lastSegment(request.url)}`),
    },
    { method: 'GET', path: '*', handle: guarded(unknownPage) },
    { method: 'GET', path: '/favicon.ico', handle: () => redirect(assets.icon.path) },
    ...Object.values(assets).map(
      (asset): Page => ({ method: 'GET', path: asset.path, handle: () => serveAsset(asset) }),
    ),
  ]
  return pages.map(counted)
}

/** An id, and nothing that could lead elsewhere. */
const lastSegment = (url: string): string => /[0-9a-f-]{0,36}$/.exec(new URL(url).pathname)?.[0] ?? ''
