// Agents as people see them (decision G-25). Token hashes never leave this file towards people.
import { desc, eq, type SQL, sql } from 'drizzle-orm'
import { agentStates } from '../../../core/lifecycle/agent.ts'
import { connectivityOf } from '../../../core/lifecycle/agent-shown-online.ts'
import { agents, collectors, servers } from '../platform/db/schema.ts'
import { collection, equals, filter, ofCompany, search } from '../platform/http/collection.ts'
import { flag, flagOf, oneOf, uuid } from '../platform/http/request-schema.ts'
import { agentResponse } from './agent-response.ts'
import { connectivitySql, isActiveDownAlert } from './connectivity-sql.ts'

const HAS_DOWN_ALERT: SQL<boolean> = sql`exists (select 1 from monitoring_alerts x
  where x.company_id = ${agents.companyId} and x.agent_id = ${agents.id} and ${isActiveDownAlert(sql`x`)})`

const COLUMNS = { state: sql`${agents.state}`, lastSeenAt: sql`${agents.lastSeenAt}`, isLost: HAS_DOWN_ALERT }

export const agentCollection = collection({
  table: agents,
  scope: ofCompany(agents.companyId),
  filters: {
    state: equals(agents.state, oneOf(agentStates)),
    server_id: equals(agents.serverId, uuid()),
    collector_id: equals(agents.collectorId, uuid()),
    online: filter(flag(), (value, { hub }) => {
      const online = sql`(${connectivitySql(hub, COLUMNS)} = 'online')`
      return flagOf(value) ? online : sql`not ${online}`
    }),
    search: search(agents.hostname, agents.machineId),
  },
  within: { license_id: equals(agents.licenseId, uuid()) },
  select: db =>
    db
      .select({
        agent: agents,
        server: { id: servers.id, name: servers.name, hostname: servers.hostname },
        collector: { id: collectors.id, name: collectors.name },
        hasDownAlert: HAS_DOWN_ALERT,
      })
      .from(agents)
      .leftJoin(servers, eq(servers.id, agents.serverId))
      .leftJoin(collectors, eq(collectors.id, agents.collectorId)),
  order: [desc(agents.enrolledAt), desc(agents.id)],
  pageBy: 'ids',
  response: agentResponse,
  present({ agent, server, collector, hasDownAlert }, { hub }) {
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
      online: connectivityOf({ state: agent.state, lastSeenAtMs }, hasDownAlert, hub.now(), thresholdMs) === 'online',
      last_seen_at: agent.lastSeenAt,
      enrolled_at: agent.enrolledAt,
      revoked_at: agent.revokedAt,
      revoked_reason: agent.revokedReason,
      buffer_bytes: agent.bufferBytes,
      buffer_batches: agent.bufferBatches,
      last_warning: agent.lastWarning,
      last_warning_at: agent.lastWarningAt,
      version: agent.version,
    }
  },
})

export const findAgent = agentCollection.find
export type AgentRow = Awaited<ReturnType<typeof findAgent>>
