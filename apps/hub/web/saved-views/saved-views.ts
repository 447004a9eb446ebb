// Saved views: pages with a filter, an order and a form under a name, of one person or shared with the company. They
// hold no data, so who opens one sees what they may see.
import { type Static, Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { auditRequest } from '../../audit/audit.ts'
import { changesBetween } from '../../audit/masked-changes.ts'
import { type Executor, violatedUniqueIndex } from '../../platform/db/connect.ts'
import { inTransaction, lockCompany, type Tx } from '../../platform/db/transaction.ts'
import { invalidField, notFound, permissionDenied } from '../../platform/http/api-error.ts'
import { id as idOf, string } from '../../platform/http/response-schema.ts'
import type { RouteContext } from '../../platform/http/route.ts'
import { SHARE_KEY, VIEW_QUERY_CHARS_MAX, viewQuery } from '../address/saved-view.ts'
import { missingKey, type PageName, sitePages } from '../address/site-map.ts'

/** Of one person in one company, and of a company: both are sent whole. */
const OWN_MAX = 100
const SHARED_MAX = 200

export const savedViewResponse = Type.Object({
  id: idOf(),
  page: Type.Unsafe<PageName>(string()),
  name: string(),
  /** The parameters of the address, in one order. */
  query: string(),
  shared: Type.Boolean(),
  /** Whether it is the caller's: nobody else changes it. */
  own: Type.Boolean(),
  /** Whose it is. */
  by: string(),
})
export type SavedView = Static<typeof savedViewResponse>

type SavedViewInput = {
  readonly page: PageName
  readonly name: string
  readonly query: string
  readonly shared: boolean
}

type Row = {
  id: string
  page: PageName
  name: string
  query: string
  is_shared: boolean
  user_id: string
  user_name: string
}

const columns = sql`v.id, v.page, v.name, v.query, v.is_shared, v.user_id, u.name as user_name`

const present = (row: Row, userId: string): SavedView => ({
  id: row.id,
  page: row.page,
  name: row.name,
  query: row.query,
  shared: row.is_shared,
  own: row.user_id === userId,
  by: row.user_name,
})

/** A page that went out of the site map, or that the caller may not see, has no views. */
const isSeen = ({ caller }: RouteContext, page: string): boolean =>
  Object.hasOwn(sitePages, page) && missingKey(page as PageName, key => caller.permissions.has(key)) === undefined

/** The caller's own views and those that others share, of pages that the caller may see; the own ones first. */
export async function savedViewsOf(context: RouteContext): Promise<SavedView[]> {
  const { hub, companyId, caller } = context
  const rows = await hub.database.db.execute<Row>(sql`
    select ${columns} from saved_views v join users u on u.id = v.user_id
    where v.company_id = ${companyId} and (v.user_id = ${caller.user.id} or v.is_shared)
    order by v.user_id <> ${caller.user.id}, lower(v.name), v.id limit ${OWN_MAX + SHARED_MAX}`)
  return rows.filter(row => isSeen(context, row.page)).map(row => present(row, caller.user.id))
}

async function rowOf(db: Executor, companyId: string, id: string): Promise<Row | null> {
  const [row] = await db.execute<Row>(sql`
    select ${columns} from saved_views v join users u on u.id = v.user_id
    where v.company_id = ${companyId} and v.id = ${id}`)
  return row ?? null
}

type Counts = { own: number; shared: number }

/** Throws 422 where one more would be too many. The company is locked. */
async function checkCounts(tx: Tx, { companyId, caller }: RouteContext, before: Row | null, shared: boolean) {
  const [counts] = await tx.db.execute<Counts>(sql`
    select count(*) filter (where user_id = ${caller.user.id})::int as own,
      count(*) filter (where is_shared)::int as shared from saved_views where company_id = ${companyId}`)
  const { own, shared: ofAll } = counts ?? { own: 0, shared: 0 }
  if (before === null && own >= OWN_MAX) throw invalidField('limit', 'limit_saved_views', { max: OWN_MAX })
  if (shared && before?.is_shared !== true && ofAll >= SHARED_MAX)
    throw invalidField('limit', 'limit_shared_views', { max: SHARED_MAX })
}

/** What others see of a view is in the audit log; what one keeps for oneself is nobody's business. */
async function auditShared(tx: Tx, context: RouteContext, before: Row | null, after: Row | null): Promise<void> {
  if (before?.is_shared !== true && after?.is_shared !== true) return
  const subject = after ?? before
  const action = before === null ? 'create' : after === null ? 'delete' : 'update'
  const shown = (row: Row) => ({ page: row.page, name: row.name, query: row.query, shared: row.is_shared })
  await auditRequest(
    tx,
    context,
    `saved_view.${action}`,
    { type: 'saved_view', id: subject?.id ?? null, name: subject?.name ?? null },
    before !== null && after !== null ? changesBetween(shown(before), shown(after)) : {},
  )
}

/**
 * Keeps a view under an id that the caller made, so that sending it again changes nothing. Throws 404 for one of
 * somebody else, 403 without the key of the page or, to share, without that for sharing, 422 for a name that is taken.
 */
export async function putSavedView(context: RouteContext, id: string, input: SavedViewInput): Promise<SavedView> {
  const { hub, companyId, caller } = context
  const missing = missingKey(input.page, key => caller.permissions.has(key))
  if (missing !== undefined) throw permissionDenied(missing)
  if (input.shared && !caller.permissions.has(SHARE_KEY)) throw permissionDenied(SHARE_KEY)
  const query = viewQuery(input.query)
  if (query.length > VIEW_QUERY_CHARS_MAX) throw invalidField('query', 'length_max', { max: VIEW_QUERY_CHARS_MAX })
  const userId = caller.user.id
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await rowOf(tx.db, companyId, id)
    if (before !== null && before.user_id !== userId) throw notFound()
    await checkCounts(tx, context, before, input.shared)
    await refuseTakenName(
      tx.db.execute(sql`
        insert into saved_views (company_id, id, user_id, page, name, query, is_shared)
        values (${companyId}, ${id}, ${userId}, ${input.page}, ${input.name.trim()}, ${query}, ${input.shared})
        on conflict (company_id, id) do update set page = excluded.page, name = excluded.name, query = excluded.query,
          is_shared = excluded.is_shared, updated_at = now()`),
    )
    const after = await rowOf(tx.db, companyId, id)
    if (after === null) throw notFound()
    await auditShared(tx, context, before, after)
    return present(after, userId)
  })
}

async function refuseTakenName(act: PromiseLike<unknown>): Promise<void> {
  try {
    await act
  } catch (error) {
    if (violatedUniqueIndex(error) === 'saved_views_name') throw invalidField('name', 'taken')
    throw error
  }
}

/**
 * Removes a view of the caller, or one that somebody else shares where the caller may share. Throws 404 for what the
 * caller does not see, 403 without the key.
 */
export async function deleteSavedView(context: RouteContext, id: string): Promise<void> {
  const { hub, companyId, caller } = context
  await inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await rowOf(tx.db, companyId, id)
    const isOwn = before?.user_id === caller.user.id
    if (before === null || !(isOwn || (before.is_shared && isSeen(context, before.page)))) throw notFound()
    if (!isOwn && !caller.permissions.has(SHARE_KEY)) throw permissionDenied(SHARE_KEY)
    await tx.db.execute(sql`delete from saved_views where company_id = ${companyId} and id = ${id}`)
    await auditShared(tx, context, before, null)
  })
}
