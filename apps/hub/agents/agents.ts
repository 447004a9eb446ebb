// Agents as people see and manage them (decisions G-25, G-31, G-42). Token hashes never leave this file towards people.
import { and, count, desc, eq, ilike, inArray, or, type SQL, sql } from 'drizzle-orm'
import { type AgentState, isOnline } from '../../../core/lifecycle/agent.ts'
import { auditRequest } from '../audit/audit.ts'
import { pushAgents } from '../collectors/collector-jobs.ts'
import type { Hub } from '../hub-context.ts'
import { likePattern } from '../licenses/licenses.ts'
import type { Executor } from '../platform/db/connect.ts'
import { agents, collectors, servers } from '../platform/db/schema.ts'
import { inTransaction, lockCompany, type Tx, uuidList } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import type { Page } from '../platform/http/paging.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'

const HAS_DOWN_ALERT: SQL<boolean> = sql`exists (select 1 from monitoring_alerts x
  where x.company_id = ${agents.companyId} and x.agent_id = ${agents.id} and x.type = 'agent_down'
    and x.state in ('open', 'acknowledged', 'grouped'))`

const selectAgents = (db: Executor) =>
  db
    .select({
      agent: agents,
      server: { id: servers.id, name: servers.name, hostname: servers.hostname },
      collector: { id: collectors.id, name: collectors.name },
      hasDownAlert: HAS_DOWN_ALERT,
    })
    .from(agents)
    .leftJoin(servers, eq(servers.id, agents.serverId))
    .leftJoin(collectors, eq(collectors.id, agents.collectorId))

export type AgentRow = Awaited<ReturnType<typeof selectAgents>>[number]

export function presentAgent(hub: Hub, { agent, server, collector, hasDownAlert }: AgentRow) {
  const lastSeenAtMs = agent.lastSeenAt?.getTime() ?? null
  const thresholdMs = hub.config['agents.online_threshold']
  return {
    id: agent.id,
    company_id: agent.companyId,
    server,
    collector,
    license_id: agent.licenseId,
    machine_id: agent.machineId,
    hostname: agent.hostname,
    os_family: agent.osFamily,
    os_version: agent.osVersion,
    arch: agent.arch,
    agent_version: agent.agentVersion,
    proto_version: agent.protoVersion,
    state: agent.state,
    online: isOnline({ state: agent.state, lastSeenAtMs }, hasDownAlert, hub.now(), thresholdMs),
    last_seen_at: agent.lastSeenAt,
    enrolled_at: agent.enrolledAt,
    revoked_at: agent.revokedAt,
    revoked_reason: agent.revokedReason,
    version: agent.version,
  }
}

export const presentAgents = (hub: Hub, rows: readonly AgentRow[]) => rows.map(row => presentAgent(hub, row))

export type AgentFilter = {
  readonly state?: AgentState | undefined
  readonly serverId?: string | undefined
  readonly collectorId?: string | undefined
  readonly licenseId?: string | undefined
  readonly online?: boolean | undefined
  readonly search?: string | undefined
}

export async function listAgents(hub: Hub, companyId: string, filter: AgentFilter, page: Page) {
  const { db } = hub.database
  const thresholdSeconds = hub.config['agents.online_threshold'] / 1000
  const online = sql`(${agents.state} = 'active' and ${agents.lastSeenAt} is not null
    and ${agents.lastSeenAt} >= now() - make_interval(secs => ${thresholdSeconds}) and not ${HAS_DOWN_ALERT})`
  const like = filter.search ? likePattern(filter.search) : ''
  const where = and(
    eq(agents.companyId, companyId),
    filter.state ? eq(agents.state, filter.state) : undefined,
    filter.serverId ? eq(agents.serverId, filter.serverId) : undefined,
    filter.collectorId ? eq(agents.collectorId, filter.collectorId) : undefined,
    filter.licenseId ? eq(agents.licenseId, filter.licenseId) : undefined,
    filter.online === undefined ? undefined : filter.online ? online : sql`not ${online}`,
    filter.search ? or(ilike(agents.hostname, like), ilike(agents.machineId, like)) : undefined,
  )
  const order = [desc(agents.enrolledAt), desc(agents.id)]
  const ids = db
    .select({ id: agents.id })
    .from(agents)
    .where(where)
    .orderBy(...order)
    .limit(page.limit)
    .offset(page.offset)
  const [rows, totals] = await Promise.all([
    selectAgents(db)
      .where(inArray(agents.id, ids))
      .orderBy(...order),
    db.select({ total: count() }).from(agents).where(where),
  ])
  return { rows, total: totals[0]?.total ?? 0 }
}

export async function findAgent(db: Executor, companyId: string, id: string): Promise<AgentRow> {
  if (!isUuid(id)) throw notFound()
  const [row] = await selectAgents(db).where(and(eq(agents.companyId, companyId), eq(agents.id, id)))
  if (!row) throw notFound()
  return row
}

/** Raises version and feed number of agents whose record changed through their machine or company, and pushes them. */
export async function touchAgents(hub: Hub, tx: Tx, agentIds: readonly string[]): Promise<void> {
  if (agentIds.length === 0) return
  await tx.db.execute(
    sql`update monitoring_agents set version = version + 1 where id = any(${uuidList(agentIds)}::uuid[])`,
  )
  tx.touch('agents', agentIds)
  await pushAgents(hub, tx, agentIds)
}

/** Revokes agents for good, resolves their agent.down alerts (decision G-48) and tells the collectors. */
export async function revokeAgents(hub: Hub, tx: Tx, ids: readonly string[], reason: string): Promise<string[]> {
  if (ids.length === 0) return []
  const nowIso = new Date(hub.now()).toISOString()
  const rows = await tx.db.execute<{ id: string }>(sql`
    update monitoring_agents set state = 'revoked', revoked_at = ${nowIso}, revoked_reason = ${reason},
      version = version + 1 where id = any(${uuidList(ids)}::uuid[]) and state <> 'revoked' returning id`)
  const revoked = rows.map(row => row.id)
  if (revoked.length === 0) return []
  await tx.db.execute(sql`
    update monitoring_alerts set state = 'resolved', resolved_at = ${nowIso}, resolved_reason = 'agent_revoked', group_id = null
    where agent_id = any(${uuidList(revoked)}::uuid[]) and type = 'agent_down' and state in ('open', 'acknowledged', 'grouped')`)
  tx.touch('agents', revoked)
  await pushAgents(hub, tx, revoked)
  return revoked
}

/** Repeating changes nothing: the first reason and time stay. */
export async function revokeAgent(context: RouteContext, id: string, reason: string): Promise<AgentRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findAgent(tx.db, companyId, id)
    const revoked = await revokeAgents(hub, tx, [id], reason)
    if (revoked.length > 0)
      await auditRequest(
        tx,
        context,
        'agent.revoke',
        { type: 'agent', id, name: before.agent.hostname },
        {
          state: { old: before.agent.state, new: 'revoked' },
        },
      )
    return findAgent(tx.db, companyId, id)
  })
}

/** Moves an agent to another machine of the company; a pending one becomes active when that machine is approved. */
export async function reassignAgent(context: RouteContext, id: string, serverId: string): Promise<AgentRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findAgent(tx.db, companyId, id)
    if (before.agent.state === 'revoked') throw invalidField('state', 'state_refused', { state: 'revoked' })
    const [server] = await tx.db
      .select({ id: servers.id, status: servers.status })
      .from(servers)
      .where(and(eq(servers.companyId, companyId), eq(servers.id, serverId), sql`${servers.deletedAt} is null`))
    if (!server) throw invalidField('server_id', 'unknown_reference')
    const others = await tx.db.execute(sql`select 1 from monitoring_agents
      where company_id = ${companyId} and server_id = ${serverId} and state <> 'revoked' and id <> ${id}`)
    if (others.length > 0) throw invalidField('server_id', 'server_has_agent')
    const state: AgentState = server.status === 'draft' ? before.agent.state : 'active'
    await tx.db.update(agents).set({ serverId, state }).where(eq(agents.id, id))
    await touchAgents(hub, tx, [id])
    await auditRequest(
      tx,
      context,
      'agent.reassign',
      { type: 'agent', id, name: before.agent.hostname },
      {
        server_id: { old: before.agent.serverId, new: serverId },
      },
    )
    return findAgent(tx.db, companyId, id)
  })
}

/** Deletes a revoked agent for good. */
export async function deleteAgent(context: RouteContext, id: string): Promise<void> {
  const { hub, companyId } = context
  await inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findAgent(tx.db, companyId, id)
    if (before.agent.state !== 'revoked') throw invalidField('state', 'agent_not_revoked')
    await tx.db.delete(agents).where(and(eq(agents.companyId, companyId), eq(agents.id, id)))
    await auditRequest(tx, context, 'agent.delete', { type: 'agent', id, name: before.agent.hostname })
  })
}

/** The non-revoked agents of machines. */
export async function agentsOfServers(db: Executor, serverIds: readonly string[]): Promise<string[]> {
  if (serverIds.length === 0) return []
  const rows = await db
    .select({ id: agents.id })
    .from(agents)
    .where(and(inArray(agents.serverId, [...serverIds]), sql`${agents.state} <> 'revoked'`))
  return rows.map(row => row.id)
}
