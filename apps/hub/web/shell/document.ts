// The document of the interface: an empty page with the script, and in a block of JSON whoever is signed in, the
// company, and the first data of the page that the address names, so that it is drawn without a further request.
import { randomBytes } from 'node:crypto'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { and, desc, eq, isNotNull, isNull, sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'
import { usableCompanies } from '../../identity/company-of-caller.ts'
import { sessionHours } from '../../identity/session-life.ts'
import { collectors } from '../../platform/db/schema.ts'
import { companies, sessions } from '../../platform/db/schema-identity.ts'
import { ApiError, permissionDenied } from '../../platform/http/api-error.ts'
import { productVersion } from '../../version.ts'
import { type MatchedPage, missingKey, viewOf } from '../address/site-map.ts'
import { assetPaths, encodingFor } from '../assets.ts'
import type { SharedViews } from '../live/shared-views.ts'
import { say } from '../words/forms.ts'
import { shellWords } from '../words/shell.ts'
import { textsIn, type WebLanguage } from '../words/words.ts'
import { Html, html, pageHeaders } from './html.ts'
import { type Guest, guestOf, type ShownCompany } from './page-visitor.ts'

type CompanyName = { readonly slug: string; readonly name: string }

/** What the script finds in the document. */
export type DocumentData = {
  readonly language: WebLanguage
  /** The token that changes need, masked anew in each document, so that its compressed length tells nothing. */
  readonly csrf: string
  readonly user: { readonly id: string; readonly name: string; readonly email: string; readonly superAdmin: boolean }
  readonly permissions: readonly string[]
  readonly company: { readonly id: string; readonly slug: string; readonly name: string }
  readonly companies: readonly CompanyName[]
  /** Those of them that lie below the company that is shown, at any depth. */
  readonly children: readonly CompanyName[]
  readonly sessionEndsAtMs: number
  readonly nowMs: number
  readonly version: string
  readonly worker: string
  /** Where agents report. */
  readonly agentUrl: string
  /** The first data: the view's name with its parameters, and the answer. */
  readonly view: {
    readonly key: string
    readonly version: string
    readonly madeAtMs: number
    readonly value: unknown
  } | null
}

const COMPANIES_SHOWN = 500

/** A token hidden in bytes that differ every time: pad and token combined, both in hex. */
function masked(token: string): string {
  const bytes = Buffer.from(token)
  const pad = randomBytes(bytes.length)
  return pad.toString('hex') + Buffer.from(bytes.map((byte, index) => byte ^ (pad[index] ?? 0))).toString('hex')
}

async function companiesOf(hub: Hub, guest: Guest): Promise<CompanyName[]> {
  const { db } = hub.database
  const shown = { slug: companies.slug, name: companies.name }
  if (guest.caller.user.superAdmin)
    return db
      .select(shown)
      .from(companies)
      .where(isNull(companies.deletedAt))
      .orderBy(sql`lower(${companies.name})`)
      .limit(COMPANIES_SHOWN)
  const ids = (await usableCompanies(db, guest.caller)).map(({ id }) => id)
  if (ids.length === 0) return []
  const rows = await db
    .select({ id: companies.id, ...shown })
    .from(companies)
    .where(and(sql`${companies.id} = any(${`{${ids.join(',')}}`}::uuid[])`, isNull(companies.deletedAt)))
  return rows
    .sort((one, other) => ids.indexOf(one.id) - ids.indexOf(other.id))
    .map(({ slug, name }) => ({ slug, name }))
}

/** The companies below one, of those that the guest may work in. */
async function childrenOf(
  hub: Hub,
  companyId: string,
  usable: Promise<readonly CompanyName[]>,
): Promise<readonly CompanyName[]> {
  const all = await usable
  if (all.length < 2) return []
  const below = await hub.database.db.execute<{ slug: string }>(sql`
    with recursive tree as (
      select id, slug, 0 as depth from companies where parent_id = ${companyId} and deleted_at is null
      union all select c.id, c.slug, t.depth + 1 from companies c join tree t on c.parent_id = t.id
        where c.deleted_at is null and t.depth < 32)
    select slug from tree limit ${COMPANIES_SHOWN}`)
  const slugs = new Set(below.map(({ slug }) => slug))
  return all.filter(({ slug }) => slugs.has(slug))
}

/** Where agents report, as far as the hub was told; else what a collector listens on unless it is told otherwise. */
async function agentUrlOf(hub: Hub): Promise<string> {
  const [row] = await hub.database.db
    .select({ url: collectors.baseUrl })
    .from(collectors)
    .where(isNotNull(collectors.baseUrl))
    .orderBy(sql`${collectors.lastHeartbeatAt} desc nulls last`)
    .limit(1)
  return row?.url ?? 'http://127.0.0.1:8081'
}

async function sessionEndOf(hub: Hub, guest: Guest): Promise<number> {
  const [row] = await hub.database.db
    .select({ createdAt: sessions.createdAt })
    .from(sessions)
    .where(eq(sessions.id, guest.caller.credentialId))
    .orderBy(desc(sessions.createdAt))
  return (row?.createdAt.getTime() ?? hub.now()) + sessionHours * 3_600_000
}

/** The first data of a page; null where it asks for none, and where it is refused: the page then says why. */
async function firstView(
  hub: Hub,
  views: SharedViews,
  guest: Guest,
  company: ShownCompany,
  page: MatchedPage,
  search: URLSearchParams,
): Promise<DocumentData['view']> {
  const { view: name, params } = viewOf(page, search)
  if (name === null) return null
  try {
    const missing = missingKey(page.name, key => guest.caller.permissions.has(key))
    if (missing !== undefined) throw permissionDenied(missing)
    const { companyId } = company
    const { permissions } = guest.caller
    const made = await views.get({ name, companyId, search: params, permissions, wanted: 'at_hand' })
    return { key: `${name}?${params}`, version: made.version, madeAtMs: made.madeAtMs, value: made.value }
  } catch (error) {
    if (!(error instanceof ApiError)) hub.log.error({ err: error, view: name }, 'cannot make the first view of a page')
    return null
  }
}

/** JSON that may stand in a script element: no `<` can end it. */
const inScript = (value: unknown): Html => new Html(JSON.stringify(value).replaceAll('<', '\\u003c'))

function documentText(data: DocumentData): string {
  const { language, company } = data
  const t = textsIn(language, shellWords)
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${company.name} · ${t('product')}</title>
<link rel="icon" type="image/svg+xml" href="${assetPaths.icon}">
<link rel="stylesheet" href="${assetPaths.style}">
<script type="application/json" id="data">${inScript(data)}</script>
<script type="module" src="${assetPaths.script[language]}"></script>
</head>
<body>
<div id="app"><noscript><p class="banner">${say(language, 'needs_script')}</p></noscript></div>
</body>
</html>
`.text
}

/** The document as a response, compressed. */
export async function documentResponse(
  hub: Hub,
  views: SharedViews,
  request: Request,
  guest: Guest,
  company: ShownCompany,
  page: MatchedPage,
  language: WebLanguage,
): Promise<Response> {
  const { user, permissions } = guest.caller
  const companiesRead = companiesOf(hub, guest)
  const [view, usable, children, agentUrl, sessionEndsAtMs] = await Promise.all([
    firstView(hub, views, guest, company, page, new URL(request.url).searchParams),
    companiesRead,
    childrenOf(hub, company.companyId, companiesRead),
    agentUrlOf(hub),
    sessionEndOf(hub, guest),
  ])
  const text = documentText({
    language,
    csrf: masked(guest.csrfToken),
    user: { id: user.id, name: user.name, email: user.email, superAdmin: guest.caller.actsAsSuperAdmin },
    permissions: [...permissions],
    company: { id: company.companyId, slug: company.slug, name: company.name },
    companies: usable,
    children,
    sessionEndsAtMs,
    nowMs: hub.now(),
    version: productVersion,
    worker: assetPaths.worker,
    agentUrl,
    view,
  })
  const encoding = encodingFor(request)
  const body =
    encoding === 'br'
      ? brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } })
      : encoding === 'gzip'
        ? gzipSync(text, { level: 5 })
        : text
  const isRefused = missingKey(page.name, key => permissions.has(key)) !== undefined
  return new Response(typeof body === 'string' ? body : new Uint8Array(body), {
    status: isRefused ? 403 : 200,
    headers: { ...pageHeaders(language), ...(encoding === null ? {} : { 'Content-Encoding': encoding }) },
  })
}

/** GET /web/session: what a page needs to go on after somebody has signed in within it. */
export async function sessionResponse(hub: Hub, request: Request): Promise<Response> {
  const headers = { 'Cache-Control': 'no-store' }
  const guest = await guestOf(hub, request)
  if (guest === null) return Response.json({ reason: 'invalid_token' }, { status: 401, headers })
  const { id } = guest.caller.user
  const session = { userId: id, csrf: masked(guest.csrfToken), sessionEndsAtMs: await sessionEndOf(hub, guest) }
  return Response.json(session, { headers })
}
