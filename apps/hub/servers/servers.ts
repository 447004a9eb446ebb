// Servers: the inventory that scopes, enrollment and suppression rest on (decision G-108). A change of status, subnet
// or datacenter raises the version of the server's agents (document 1 "Registry consistency rule").
import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { agentsOfServers, revokeAgents, touchAgents } from '../agents/agents.ts'
import { resolveServerAlerts } from '../alerts/alerts-of-deleted-server.ts'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { purgeEverywhere, pushAgents } from '../collectors/collector-jobs.ts'
import type { Hub } from '../hub-context.ts'
import { checkCompanyLimit } from '../plans/company-limits.ts'
import { violatedUniqueIndex } from '../platform/db/connect.ts'
import { agents, type ServerOrigin, type ServerStatus, servers } from '../platform/db/schema.ts'
import { allowLongStatements, inTransaction, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { deleteConnectionsOf } from '../purge/connection-rows.ts'
import { revokePinnedLicenses } from '../purge/pinned-licenses.ts'
import { deleteServerSecurity } from '../purge/security-rows.ts'
import { optionFaultsOf } from '../resources/strict-options.ts'
import { refreshScopes } from '../scopes/scope.ts'
import { allServers, findServer, presentServer, type Server, type ServerRow } from './server-list.ts'

const PUSHED_AT_ONCE = 500

export type ServerInput = {
  readonly name?: string | undefined
  readonly hostname?: string | null | undefined
  readonly ip_address?: string | null | undefined
  readonly environment?: string | null | undefined
  readonly role?: string | null | undefined
  readonly datacenter?: string | null | undefined
  readonly subnet_id?: string | null | undefined
  readonly tags?: readonly string[] | null | undefined
  readonly operating_system?: string | null | undefined
  readonly cpu_cores?: number | null | undefined
  readonly memory_mb?: number | null | undefined
  readonly disk_gb?: number | null | undefined
  readonly status?: ServerStatus | undefined
  readonly notes?: string | null | undefined
}

/** The columns that an input sets; members that it leaves out are absent. */
export function columnsOf(input: ServerInput): Partial<typeof servers.$inferInsert> {
  const given: Partial<typeof servers.$inferInsert> = {
    ...(input.name === undefined ? {} : { name: input.name }),
    ...(input.hostname === undefined ? {} : { hostname: input.hostname }),
    ...(input.ip_address === undefined ? {} : { ipAddress: input.ip_address }),
    ...(input.environment === undefined ? {} : { environment: input.environment }),
    ...(input.role === undefined ? {} : { role: input.role }),
    ...(input.datacenter === undefined ? {} : { datacenter: input.datacenter }),
    ...(input.subnet_id === undefined ? {} : { subnetId: input.subnet_id }),
    ...(input.tags === undefined ? {} : { tags: [...new Set(input.tags ?? [])].sort() }),
    ...(input.operating_system === undefined ? {} : { operatingSystem: input.operating_system }),
    ...(input.cpu_cores === undefined ? {} : { cpuCores: input.cpu_cores }),
    ...(input.memory_mb === undefined ? {} : { memoryMb: input.memory_mb }),
    ...(input.disk_gb === undefined ? {} : { diskGb: input.disk_gb }),
    ...(input.status === undefined ? {} : { status: input.status }),
    ...(input.notes === undefined ? {} : { notes: input.notes }),
  }
  return given
}

async function refuseTakenName<T>(act: Promise<T>): Promise<T> {
  try {
    return await act
  } catch (error) {
    if (violatedUniqueIndex(error) === 'servers_name') throw invalidField('name', 'taken')
    throw error
  }
}

/** The option lists of a server's fields. */
const OPTION_FIELDS = {
  environment: 'environments',
  role: 'roles',
  datacenter: 'datacenters',
  operating_system: 'operating_systems',
  tags: 'resource_tags',
}

/** A server on its way: as it was, null for a new one, and what is to be written of it. */
type ServerChange = { readonly before: Server | null; readonly input: ServerInput }

/** The faults of values that changed and that a strict option list does not have, of each server. */
export const unlistedOf = (tx: Tx, companyId: string, changes: readonly ServerChange[]) =>
  optionFaultsOf(
    tx,
    companyId,
    OPTION_FIELDS,
    changes.map(({ before, input }) => ({
      before: before && { ...before, operating_system: before.operatingSystem },
      next: input,
    })),
  )

/** Throws 422 for those of one server. */
async function refuseUnlisted(tx: Tx, companyId: string, before: Server | null, input: ServerInput): Promise<void> {
  const [faults] = await unlistedOf(tx, companyId, [{ before, input }])
  if (faults && faults.size > 0) throw faultsError(faults)
}

/** Inserts a server in a transaction that holds the company's lock; scopes that cover it follow. */
export async function insertServer(
  hub: Hub,
  tx: Tx,
  companyId: string,
  input: ServerInput & { readonly name: string },
  origin: ServerOrigin,
): Promise<string> {
  const id = randomUUID()
  await refuseUnlisted(tx, companyId, null, input)
  await refuseTakenName(
    tx.db
      .insert(servers)
      .values({ ...columnsOf(input), name: input.name, id, companyId, origin })
      .execute(),
  )
  await checkCompanyLimit(hub, tx, companyId, 'servers')
  tx.touch('servers', [id])
  await refreshScopes(hub, tx, companyId, [id])
  return id
}

export async function createServer(
  context: RouteContext,
  input: ServerInput & { readonly name: string },
): Promise<ServerRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const id = await insertServer(hub, tx, companyId, input, 'manual')
    await auditRequest(tx, context, 'server.create', { type: 'server', id, name: input.name })
    return findServer(tx.db, companyId, id)
  })
}

/** Changes a server in a transaction that holds the company's lock, and everything that follows from it. */
export async function changeServer(hub: Hub, tx: Tx, before: Server, input: ServerInput): Promise<void> {
  const columns = columnsOf(input)
  if (Object.keys(columns).length === 0) return
  await refuseUnlisted(tx, before.companyId, before, input)
  await refuseTakenName(
    tx.db
      .update(servers)
      .set({ ...columns, updatedAt: new Date(hub.now()) })
      .where(and(eq(servers.companyId, before.companyId), eq(servers.id, before.id)))
      .execute(),
  )
  tx.touch('servers', [before.id])
  const isChanged = (name: keyof Server) => columns[name] !== undefined && columns[name] !== before[name]
  if (isChanged('environment') || isChanged('role') || isChanged('datacenter') || columns.tags !== undefined)
    await refreshScopes(hub, tx, before.companyId, [before.id])
  if (isChanged('status') || isChanged('subnetId') || isChanged('datacenter')) {
    const all = await tx.db.select({ id: agents.id }).from(agents).where(eq(agents.serverId, before.id))
    await touchAgents(
      hub,
      tx,
      all.map(row => row.id),
    )
  }
}

/** Changes a server under the company's lock. Returns the changed server. Throws 422 for a new status of a draft. */
export async function updateServer(context: RouteContext, id: string, input: ServerInput): Promise<ServerRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findServer(tx.db, companyId, id)
    if (input.status !== undefined && before.server.status === 'draft')
      throw invalidField('status', 'state_refused', { state: 'draft' })
    await changeServer(hub, tx, before.server, input)
    const after = await findServer(tx.db, companyId, id)
    const { updated_at: _before, ...old } = presentServer(before)
    const { updated_at: _after, ...fresh } = presentServer(after)
    const changes = changesBetween(old, fresh)
    if (Object.keys(changes).length > 0)
      await auditRequest(tx, context, 'server.update', { type: 'server', id, name: after.server.name }, changes)
    return after
  })
}

/** Soft delete: active alerts end with server_removed, the agent is revoked, data stay (decision G-107). */
export async function trashServer(hub: Hub, tx: Tx, server: Server): Promise<void> {
  await tx.db
    .update(servers)
    .set({ deletedAt: new Date(hub.now()) })
    .where(eq(servers.id, server.id))
  tx.touch('servers', [server.id])
  // Done before the agent is revoked, since the revocation would resolve the agent's alert with a misleading reason.
  await resolveServerAlerts(tx, server.id, hub.now())
  await revokeAgents(hub, tx, await agentsOfServers(tx.db, [server.id]), 'server removed')
  await refreshScopes(hub, tx, server.companyId, [server.id])
}

export async function deleteServer(context: RouteContext, id: string): Promise<void> {
  const { hub, companyId } = context
  await inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const { server } = await findServer(tx.db, companyId, id)
    await trashServer(hub, tx, server)
    await auditRequest(tx, context, 'server.delete', { type: 'server', id, name: server.name })
  })
}

/**
 * Tells the matcher anew of the scan hosts of a server that came back: what they reported meanwhile was rejected, and
 * is told again with a new version of the host (MAT-164).
 */
async function touchHostsOf(tx: Tx, serverId: string): Promise<void> {
  const hosts = await tx.db.execute<{ host_id: string }>(
    sql`select host_id from scan_hosts where server_id = ${serverId} and state = 'active'`,
  )
  tx.touch(
    'scan_hosts',
    hosts.map(row => row.host_id),
  )
}

export async function restoreServer(context: RouteContext, id: string): Promise<ServerRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await allServers.find(tx.db, companyId, id)
    if (before.server.deletedAt === null) return before
    await refuseTakenName(tx.db.update(servers).set({ deletedAt: null }).where(eq(servers.id, id)).execute())
    await checkCompanyLimit(hub, tx, companyId, 'servers')
    tx.touch('servers', [id])
    await touchHostsOf(tx, id)
    await refreshScopes(hub, tx, companyId, [id])
    await auditRequest(tx, context, 'server.restore', { type: 'server', id, name: before.server.name })
    return findServer(tx.db, companyId, id)
  })
}

/** Deletes a server for good, with its alerts and events, and queues the purge of its data at the collectors. */
export async function destroyServer(hub: Hub, tx: Tx, server: Server): Promise<void> {
  await allowLongStatements(tx)
  await resolveServerAlerts(tx, server.id, hub.now())
  await revokeAgents(hub, tx, await agentsOfServers(tx.db, [server.id]), 'server removed')
  await tx.db.execute(sql`update servers set deleted_at = coalesce(deleted_at, now()) where id = ${server.id}`)
  await refreshScopes(hub, tx, server.companyId, [server.id])
  await revokePinnedLicenses(hub, tx, 'serverId', server.id)
  await deleteServerSecurity(tx, server.companyId, server.id)
  await deleteConnectionsOf(tx, server.companyId, 'server', [server.id])
  tx.leaveTombstones('servers', server.companyId, [server.id])
  await tx.db.delete(servers).where(and(eq(servers.companyId, server.companyId), eq(servers.id, server.id)))
  await purgeEverywhere(hub, tx, { scope: 'server', company_id: server.companyId, id: server.id })
}

export async function deleteServerForGood(context: RouteContext, id: string): Promise<void> {
  const { hub, companyId } = context
  await inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const { server } = await allServers.find(tx.db, companyId, id)
    await destroyServer(hub, tx, server)
    const subject = { type: 'server', id, name: server.name }
    await auditRequest(tx, context, 'server.delete_permanent', subject)
    await auditRequest(tx, context, 'purge.requested', subject)
  })
}

/** A draft becomes an active server, and its pending agent an active agent. */
export async function approveServer(context: RouteContext, id: string): Promise<ServerRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findServer(tx.db, companyId, id)
    if (before.server.status !== 'draft') throw invalidField('status', 'not_draft')
    await tx.db
      .update(servers)
      .set({ status: 'active', updatedAt: new Date(hub.now()) })
      .where(eq(servers.id, id))
    tx.touch('servers', [id])
    const pending = await tx.db
      .update(agents)
      .set({ state: 'active' })
      .where(and(eq(agents.serverId, id), eq(agents.state, 'pending')))
      .returning({ id: agents.id })
    await touchAgents(
      hub,
      tx,
      pending.map(row => row.id),
    )
    await auditRequest(tx, context, 'server.approve', { type: 'server', id, name: before.server.name })
    return findServer(tx.db, companyId, id)
  })
}

/** Pushes the records of all agents of a company, after a change that affects all of them. */
export async function touchCompanyAgents(hub: Hub, tx: Tx, companyId: string): Promise<void> {
  const rows = await tx.db.execute<{ id: string }>(sql`
    update monitoring_agents set version = version + 1 where company_id = ${companyId} and state <> 'revoked' returning id`)
  await tellAgents(
    hub,
    tx,
    rows.map(row => row.id),
  )
}

/** Sends records of agents whose version was raised: by the feed, and a small number of them also by a push. */
export async function tellAgents(hub: Hub, tx: Tx, ids: readonly string[]): Promise<void> {
  tx.touch('agents', ids)
  // For a large number the feed is enough: a push of each would only be faster.
  if (ids.length <= PUSHED_AT_ONCE) await pushAgents(hub, tx, ids)
}
