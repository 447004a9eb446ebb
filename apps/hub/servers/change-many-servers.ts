// Changes many servers by one request: one transaction and one statement for each table, whatever their number.
import { and, eq, isNull, sql } from 'drizzle-orm'
import { auditMany } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import type { Hub } from '../hub-context.ts'
import { servers } from '../platform/db/schema.ts'
import { inTransaction, isAnyOf, lockCompany, type Tx, uuidList } from '../platform/db/transaction.ts'
import { ApiError, invalidField, notFound } from '../platform/http/api-error.ts'
import { type Refusal, refusalOf } from '../platform/http/bulk.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { refreshScopes } from '../scopes/scope.ts'
import { type Server, type ServerRow, selectServers } from './server-list.ts'
import { type ServerInput, tellAgents, unlistedOf } from './servers.ts'

/** Returns the new values of one server; an ApiError 422 that it throws refuses only this server. */
export type BulkChange = (server: Server) => Pick<ServerInput, 'status'> & { readonly tags?: readonly string[] }

type Changed = { readonly before: Server; readonly after: Server }

function changedServer(before: Server, change: BulkChange, updatedAt: Date): Server {
  const { status, tags } = change(before)
  if (status !== undefined && before.status === 'draft')
    throw invalidField('status', 'state_refused', { state: 'draft' })
  return {
    ...before,
    status: status ?? before.status,
    tags: tags ? [...new Set(tags)].sort() : before.tags,
    updatedAt,
  }
}

/**
 * Returns the changed servers in the order of the ids, and the refused ones. Throws 404, and changes nothing, when one
 * of the ids does not exist.
 */
export async function changeServers(
  context: RouteContext,
  ids: readonly string[],
  change: BulkChange,
): Promise<{ done: ServerRow[]; refused: Refusal[] }> {
  const { hub, companyId, language } = context
  const unique = [...new Set(ids.map(id => id.toLowerCase()))]
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const rows = await findServers(tx, companyId, unique)
    const updatedAt = new Date(hub.now())
    const done: ServerRow[] = []
    const refused: Refusal[] = []
    const changed: Changed[] = []
    for (const { server: before, ...rest } of rows)
      try {
        const after = changedServer(before, change, updatedAt)
        done.push({ server: after, ...rest })
        if (before.status !== after.status || JSON.stringify(before.tags) !== JSON.stringify(after.tags))
          changed.push({ before, after })
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 422) throw error
        refused.push(refusalOf(before.id, error, language))
      }
    const unlisted = await unlistedOf(
      tx,
      companyId,
      changed.map(({ before, after }) => ({ before, input: { tags: after.tags } })),
    )
    const kept = changed.filter(({ before }, at) => {
      const faults = unlisted[at]
      if (!faults || faults.size === 0) return true
      refused.push(refusalOf(before.id, faultsError(faults), language))
      return false
    })
    const refusedIds = new Set(refused.map(({ id }) => id))
    await storeChanged(hub, tx, companyId, kept)
    await auditMany(tx, context, 'server.update', kept.map(toAudit))
    return { done: done.filter(({ server }) => !refusedIds.has(server.id)), refused }
  })
}

const toAudit = ({ before, after }: Changed) => ({
  subject: { type: 'server', id: after.id, name: after.name },
  changes: changesBetween({ status: before.status, tags: before.tags }, { status: after.status, tags: after.tags }),
})

/** The company's servers in the order of the ids. Throws 404 when one does not exist. */
async function findServers(tx: Tx, companyId: string, ids: readonly string[]): Promise<ServerRow[]> {
  const found = await selectServers(tx.db).where(
    and(eq(servers.companyId, companyId), isAnyOf(servers.id, ids), isNull(servers.deletedAt)),
  )
  const byId = new Map(found.map(row => [row.server.id, row]))
  return ids.map(id => {
    const row = byId.get(id)
    if (!row) throw notFound()
    return row
  })
}

/** Stores new statuses and tags, and updates scopes and the records of agents accordingly. */
async function storeChanged(hub: Hub, tx: Tx, companyId: string, changed: readonly Changed[]): Promise<void> {
  const rows = changed.map(({ after: { id, status, tags } }) => ({ id, status, tags }))
  const moved = changed.filter(({ before, after }) => before.status !== after.status)
  tx.storeTouched('servers', {
    rows,
    columns: sql`status text, tags text[]`,
    // A statement that names the status writes what search shows of each server anew.
    set: sql`${moved.length > 0 ? sql`status = x.status, ` : sql``}tags = x.tags,
      updated_at = ${new Date(hub.now()).toISOString()}`,
  })
  await refreshScopes(hub, tx, companyId, rows)
  await raiseAgentsOf(
    hub,
    tx,
    moved.map(({ after }) => after.id),
  )
}

/**
 * The agents of servers whose status, subnet or datacenter changed get newer records (document 1 "Registry consistency
 * rule").
 */
export async function raiseAgentsOf(hub: Hub, tx: Tx, serverIds: readonly string[]): Promise<void> {
  if (serverIds.length === 0) return
  const told = await tx.db.execute<{ id: string }>(sql`
    update monitoring_agents set version = version + 1 where server_id = any(${uuidList(serverIds)}::uuid[]) returning id`)
  await tellAgents(
    hub,
    tx,
    told.map(row => row.id),
  )
}
