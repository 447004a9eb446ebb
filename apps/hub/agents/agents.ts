// Agents as people manage them: revoked, moved, deleted (decisions G-25, G-31, G-42).
import { and, eq, inArray, sql } from 'drizzle-orm'
import type { AgentState } from '../../../core/lifecycle/agent.ts'
import { auditRequest } from '../audit/audit.ts'
import { pushAgents } from '../collectors/collector-jobs.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { agents, servers } from '../platform/db/schema.ts'
import { inTransaction, lockCompany, type Tx, uuidList } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { type AgentRow, findAgent } from './agent-list.ts'

/** Raises version and feed number of agents whose record changed through their server or company, and pushes them. */
export async function touchAgents(hub: Hub, tx: Tx, agentIds: readonly string[]): Promise<void> {
  if (agentIds.length === 0) return
  await tx.db.execute(
    sql`update monitoring_agents set version = version + 1 where id = any(${uuidList(agentIds)}::uuid[])`,
  )
  tx.touch('agents', agentIds)
  await pushAgents(hub, tx, agentIds)
}

/**
 * Ends the agent.down alerts of agents on servers for which they report no more; `newServerId`: where they report from
 * now on. Nobody is told: no server has come back.
 */
async function endLosses(
  tx: Tx,
  agentIds: readonly string[],
  newServerId: string | null,
  reason: 'agent_revoked' | 'out_of_scope',
  nowIso: string,
): Promise<void> {
  await tx.db.execute(sql`
    update monitoring_alerts set state = 'resolved', resolved_at = greatest(opened_at, ${nowIso}::timestamptz),
      resolved_reason = ${reason}, group_id = null
    where agent_id = any(${uuidList(agentIds)}::uuid[]) and type = 'agent_down' and state in ('open', 'acknowledged', 'grouped')
      and server_id is distinct from ${newServerId}::uuid`)
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
  await endLosses(tx, revoked, null, 'agent_revoked', nowIso)
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

/**
 * Moves an agent to another server of the company; a pending one becomes active when that server is approved. The loss
 * of its former server, if it is down, ends with the reason for which the collector ends that server's other alerts
 * (decision G-48): nothing is expected of it any more.
 */
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
    await endLosses(tx, [id], serverId, 'out_of_scope', new Date(hub.now()).toISOString())
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

/** The non-revoked agents of servers. */
export async function agentsOfServers(db: Executor, serverIds: readonly string[]): Promise<string[]> {
  if (serverIds.length === 0) return []
  const rows = await db
    .select({ id: agents.id })
    .from(agents)
    .where(and(inArray(agents.serverId, [...serverIds]), sql`${agents.state} <> 'revoked'`))
  return rows.map(row => row.id)
}
