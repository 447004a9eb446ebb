// The web interface of the hub: login, logout, the documents of its pages, their data and their stream, and the files
// they need.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import type { Page } from '../platform/app.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { render } from '../platform/http/api-texts.ts'
import type { RequestMeta } from '../platform/http/pipeline.ts'
import { refuseInMaintenance } from '../platform/http/refuse-in-maintenance.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import { toApiError } from '../platform/http/unexpected-error.ts'
import { matchPage } from './address/site-map.ts'
import { assetPaths, assets, iconPaths, serveAsset, serveIcon } from './assets.ts'
import { LiveStreams } from './live/live-stream.ts'
import { SharedViews } from './live/shared-views.ts'
import { savedViewRoutes } from './saved-views/routes.ts'
import { addressPage, decidedAddress } from './shell/confirm-mail-address.ts'
import { documentResponse, sessionResponse } from './shell/document.ts'
import { header } from './shell/header.ts'
import { html, pageResponse, redirect } from './shell/html.ts'
import { acceptedInvitation, invitationPage } from './shell/invitation.ts'
import { languageOf, logIn, loginPage, logOut } from './shell/login.ts'
import { companyAsked, companyOfSlug, type Guest, guestOf, type ShownCompany } from './shell/page-visitor.ts'
import { issue, revoke, tokensPage } from './shell/tokens.ts'
import { renewedCodes, turnedOff, turnedOn, twoFactorPage } from './shell/two-factor.ts'
import { codeFormPage, logInWithCode } from './shell/two-factor-login.ts'
import { webRoute } from './shell/web-route.ts'
import { serveServersCsv } from './views/serve-csv.ts'
import { serveFindingsExport } from './views/serve-findings-export.ts'
import { serveView } from './views/serve-view.ts'
import { say } from './words/forms.ts'
import type { WebLanguage } from './words/words.ts'

const noAccessPage = (guest: Guest, language: WebLanguage, reason: string): Response => {
  const body = html`${header(language, guest)}
<main class="notice"><h1>${say(language, 'no_access_title')}</h1><p>${say(language, 'no_access')}</p><p class="muted">${reason}</p></main>`
  return pageResponse(403, { language, title: say(language, 'no_access_title'), body })
}

/** The path below the company in an address: `/c/acme/servers` → `/servers`. */
const belowCompany = (url: URL): string => url.pathname.replace(/^\/c\/[^/]*/, '') || '/'

const slugOf = (url: URL): string => {
  try {
    return decodeURIComponent(url.pathname.split('/')[2] ?? '')
  } catch {
    return ''
  }
}

/** `/`: the company's overview; `?company=` is how addresses named it before they had its slug. */
async function home(hub: Hub, request: Request): Promise<Response> {
  const language = languageOf(request)
  const guest = await guestOf(hub, request)
  if (guest === null) return loginPage(language)
  try {
    const { slug } = await companyAsked(hub, guest, new URL(request.url).searchParams.get('company'))
    return redirect(`/c/${encodeURIComponent(slug)}/`)
  } catch (error) {
    if (error instanceof ApiError && error.status === 403)
      return noAccessPage(guest, language, render(error.text, language))
    throw error
  }
}

/** `/alerts/{id}`: notifications link to an alert, whatever company it is of. */
async function alertOfAnyCompany(hub: Hub, request: Request): Promise<Response> {
  const guest = await guestOf(hub, request)
  const { pathname, search } = new URL(request.url)
  if (guest === null) return loginPage(languageOf(request), '', null, pathname + search)
  const id = pathname.slice(pathname.lastIndexOf('/') + 1)
  if (!isUuid(id)) return unknownPage(hub, request)
  const [row] = await hub.database.db.execute<{ company_id: string }>(
    sql`select company_id from monitoring_alerts where id = ${id}`,
  )
  const company = await companyAsked(hub, guest, row?.company_id ?? null).catch(error => {
    if (error instanceof ApiError) return null
    throw error
  })
  if (row === undefined || company === null) return unknownPage(hub, request)
  return redirect(`/c/${encodeURIComponent(company.slug)}/alerts/${id}${search}`)
}

/** `/c/{company}/…`: the document of a page; 404 alike for what is not there and for what is another tenant's. */
async function companyPage(hub: Hub, views: SharedViews, request: Request): Promise<Response> {
  const language = languageOf(request)
  const url = new URL(request.url)
  const guest = await guestOf(hub, request)
  if (guest === null) return loginPage(language, '', null, url.pathname + url.search)
  const page = matchPage(belowCompany(url))
  const company = page && (await shownCompany(hub, guest, slugOf(url)))
  if (page === null || company === null) return unknownPage(hub, request)
  return documentResponse(hub, views, request, guest, company, page, language)
}

async function shownCompany(hub: Hub, guest: Guest, slug: string): Promise<ShownCompany | null> {
  try {
    return await companyOfSlug(hub, guest, slug)
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null
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
      const { status, text: said, more } = toApiError(error, hub.log)
      const language = languageOf(request)
      const isMaintenance = more.reason === 'maintenance_mode'
      const text = isMaintenance ? render(said, language) : say(language, status === 503 ? 'unavailable' : 'failed')
      const body = html`<main class="notice"><h1>${say(language, 'product')}</h1><p>${text}</p></main>`
      return pageResponse(status, { language, title: say(language, 'product'), body })
    }
  }

/** A form of somebody who is not signed in, and so is no super administrator, waits until maintenance is over. */
const changing =
  (handle: Handle): Handle =>
  async (hub, request, requestMeta) => {
    refuseInMaintenance(hub, false, languageOf(request))
    return handle(hub, request, requestMeta)
  }

/** Counts what a page answers, under one name for all files. */
const counted = (page: Page): Page => ({
  ...page,
  handle: async (hub, request, requestMeta) => {
    const response = await page.handle(hub, request, requestMeta)
    const path = assets.some(asset => asset.path === page.path) ? '/web/:file' : page.path
    hub.metrics.requests.inc({ route: `${page.method} ${path}`, code: response.status })
    return response
  },
})

/** What all requests of a hub share: the views, and the streams that send their changes. */
type Shared = { readonly views: SharedViews; readonly streams: LiveStreams }

function sharedOfHubs(): (hub: Hub) => Shared {
  const known = new WeakMap<Hub, Shared>()
  return hub => {
    const found = known.get(hub)
    if (found) return found
    const views = new SharedViews(hub)
    const made = { views, streams: new LiveStreams(hub, views) }
    known.set(hub, made)
    return made
  }
}

/** The pages of a hub, for its application. */
export function webPages(): readonly Page[] {
  const shared = sharedOfHubs()
  const ofCompany: Handle = (hub, request) => companyPage(hub, shared(hub).views, request)
  const pages: readonly Page[] = [
    { method: 'GET', path: '/', handle: guarded(home) },
    { method: 'GET', path: '/login', handle: guarded(loginOrHome) },
    { method: 'POST', path: '/login', handle: guarded(logIn) },
    { method: 'GET', path: '/login/two-factor', handle: guarded(codeFormPage) },
    { method: 'POST', path: '/login/two-factor', handle: guarded(logInWithCode) },
    { method: 'POST', path: '/logout', handle: guarded(logOut) },
    { method: 'GET', path: '/invitation', handle: guarded(invitationPage) },
    { method: 'POST', path: '/invitation', handle: guarded(changing(acceptedInvitation)) },
    { method: 'GET', path: '/address', handle: guarded(addressPage) },
    { method: 'POST', path: '/address', handle: guarded(changing(decidedAddress)) },
    { method: 'GET', path: '/tokens', handle: guarded(tokensPage) },
    { method: 'POST', path: '/tokens', handle: guarded(issue) },
    { method: 'POST', path: '/tokens/revoke', handle: guarded(revoke) },
    { method: 'GET', path: '/two-factor', handle: guarded(twoFactorPage) },
    { method: 'POST', path: '/two-factor', handle: guarded(turnedOn) },
    { method: 'POST', path: '/two-factor/off', handle: guarded(turnedOff) },
    { method: 'POST', path: '/two-factor/codes', handle: guarded(renewedCodes) },
    { method: 'GET', path: '/c/:company', handle: guarded(ofCompany) },
    { method: 'GET', path: '/c/:company/*', handle: guarded(ofCompany) },
    { method: 'GET', path: '/web/session', handle: sessionResponse },
    {
      method: 'GET',
      path: '/web/view/:view',
      handle: (hub, request, requestMeta) => serveView(hub, shared(hub).views, request, requestMeta),
    },
    {
      method: 'GET',
      path: '/web/live',
      handle: (hub, request, requestMeta) => shared(hub).streams.open(request, requestMeta),
    },
    ...savedViewRoutes.map(webRoute),
    {
      method: 'GET',
      path: '/web/servers.csv',
      handle: (hub, request, requestMeta) => serveServersCsv(hub, shared(hub).views, request, requestMeta),
    },
    { method: 'GET', path: '/web/findings-export/:export', handle: serveFindingsExport },
    { method: 'GET', path: '/alerts/:alert', handle: guarded(alertOfAnyCompany) },
    { method: 'GET', path: '*', handle: guarded(unknownPage) },
    { method: 'GET', path: '/favicon.ico', handle: () => redirect(assetPaths.icon) },
    ...iconPaths.map((path): Page => ({ method: 'GET', path, handle: () => serveIcon(path) })),
    ...assets.map(
      (asset): Page => ({ method: 'GET', path: asset.path, handle: (_hub, request) => serveAsset(request, asset) }),
    ),
  ]
  return pages.map(counted)
}
