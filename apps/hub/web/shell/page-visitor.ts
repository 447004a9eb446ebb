// The visitor of a page: its session, company and permissions, by the same rules as in the API.

import { sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'
import { authenticate } from '../../identity/authenticate.ts'
import { companyOf } from '../../identity/company-of-caller.ts'
import { ApiError, notFound, permissionDenied, tooManyRequests } from '../../platform/http/api-error.ts'
import { words } from '../../platform/http/api-texts.ts'
import { type Caller, sessionCookie } from '../../platform/http/caller.ts'
import { clientAddress } from '../../platform/http/client-address.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import type { Visitor } from './sessions.ts'

/** A person with a session; a bearer token opens the API, not the pages. */
export type Guest = { readonly caller: Caller; readonly csrfToken: string }

export function visitorOf(hub: Hub, request: Request, requestMeta: RequestMeta): Visitor {
  const ip = clientAddress(requestMeta.peer, request.headers.get('x-forwarded-for'), hub.config.trusted_proxies)
  return { ip, userAgent: request.headers.get('user-agent')?.slice(0, 512) ?? null }
}

/** The guest of a request that only reads; null without a session that still counts. */
export async function guestOf(hub: Hub, request: Request): Promise<Guest | null> {
  const cookie = request.headers.get('cookie')
  if (cookie === null || !cookie.includes(`${sessionCookie}=`)) return null
  try {
    // Authenticated by the cookie alone and as a read: handlers that change something check the token of the form
    // themselves.
    const caller = await authenticate(hub.database.db, new Request(request.url, { headers: { cookie } }))
    return caller.csrfToken === null ? null : { caller, csrfToken: caller.csrfToken }
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return null
    throw error
  }
}

/** The guest of a request. Throws ApiError 401 without a session. */
export async function signedIn(hub: Hub, request: Request): Promise<Guest> {
  const guest = await guestOf(hub, request)
  if (guest === null) throw new ApiError(401, 'unauthorized', words('unauthenticated'), { reason: 'invalid_token' })
  return guest
}

/** Counts a request of the pages against the session's own limit, which the API does not share. Throws ApiError 429. */
export function checkWebRate(hub: Hub, { caller }: Guest): void {
  const taken = hub.requestWindows.take(`web ${caller.credentialId}`, hub.config['rate.web_per_minute'])
  if (!taken.allowed) throw tooManyRequests(taken.retryAfterSeconds)
}

/** Throws ApiError 403 with the first key that the guest lacks. */
export function needKeys({ caller }: Guest, keys: readonly string[]): void {
  const missing = keys.find(key => !caller.permissions.has(key))
  if (missing !== undefined) throw permissionDenied(missing)
}

export type ShownCompany = { readonly companyId: string; readonly slug: string; readonly name: string }

type CompanyRow = { id: string; slug: string; name: string }

/**
 * The company of an address. Throws ApiError 404 for one that is not there and for one that the guest may not see: the
 * answers do not differ.
 */
export async function companyOfSlug(hub: Hub, { caller }: Guest, slug: string): Promise<ShownCompany> {
  const { db } = hub.database
  const [row] = await db.execute<CompanyRow>(
    sql`select id, slug, name from companies where slug = ${slug.replaceAll('\0', '')} and deleted_at is null`,
  )
  if (!row) throw notFound()
  try {
    await companyOf(db, caller, row.id)
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) throw notFound()
    throw error
  }
  return { companyId: row.id, slug: row.slug, name: row.name }
}

/** The company that an id of another than the guest's own names, else the guest's own. Throws ApiError 403 and 404. */
export async function companyAsked(hub: Hub, { caller }: Guest, asked: string | null): Promise<ShownCompany> {
  const { db } = hub.database
  const id = await companyOf(db, caller, asked)
  const [row] = await db.execute<CompanyRow>(sql`select id, slug, name from companies where id = ${id}`)
  if (!row) throw notFound()
  return { companyId: row.id, slug: row.slug, name: row.name }
}

/**
 * Who reads data of the company that `?company=` names. Throws ApiError 401 without a session, 429 over the limit of
 * the pages, 404 for a company that is not theirs, 403 without one of the keys.
 */
export async function readerOf(
  hub: Hub,
  request: Request,
  keys: () => readonly string[],
): Promise<{ readonly guest: Guest; readonly companyId: string; readonly search: URLSearchParams }> {
  const { searchParams } = new URL(request.url)
  const guest = await signedIn(hub, request)
  checkWebRate(hub, guest)
  const { companyId } = await companyOfSlug(hub, guest, searchParams.get('company') ?? '')
  needKeys(guest, keys())
  return { guest, companyId, search: searchParams }
}
