// What the shards know of the servers beside their samples: company, status, subnet and interval, from the registry.
import type { AgentChange, AgentRegistry } from '../store/registry/registry.ts'
import type { ServerAttributesUpdate } from './evaluation/shard-messages.ts'

/** The attributes of a server after a change of its agents; its latest agent that is not revoked defines them. */
function attributesUpdate(
  registry: AgentRegistry,
  companyId: string,
  serverId: string,
  agentIds: readonly string[],
): ServerAttributesUpdate {
  const record = registry.latestOfServer(companyId, serverId)
  if (!record) return { serverId, attributes: null, revokedAgentIds: agentIds }
  const { serverStatus: status, subnetId, datacenter, hostname, intervalSeconds } = record
  return {
    serverId,
    attributes: { companyId, status, subnetId, datacenter, hostname, intervalSeconds },
  }
}

/** Those of the servers whose agents changed, the server that an agent left included. */
export function changedAttributes(registry: AgentRegistry, changes: readonly AgentChange[]): ServerAttributesUpdate[] {
  const servers = new Map<string, { companyId: string; agentIds: string[] }>()
  for (const { agentId, before, record } of changes)
    for (const side of [before, record]) {
      if (!side?.serverId) continue
      const server = servers.get(side.serverId)
      if (server) server.agentIds.push(agentId)
      else servers.set(side.serverId, { companyId: side.companyId, agentIds: [agentId] })
    }
  return [...servers].map(([serverId, { companyId, agentIds }]) =>
    attributesUpdate(registry, companyId, serverId, agentIds),
  )
}

export const allAttributes = (registry: AgentRegistry): ServerAttributesUpdate[] =>
  changedAttributes(
    registry,
    [...registry.all()].map(record => ({ agentId: record.agentId, before: null, record })),
  )
