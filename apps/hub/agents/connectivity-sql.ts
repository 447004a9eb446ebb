// Whether agents, and so their servers, are online, down or unknown, for queries that choose or count: `connectivityOf`
// of core/lifecycle/agent-shown-online.ts as SQL. Lists, counts, health blocks and the live page all say what one of
// these two says.
import { type SQL, sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'

/** Columns of an agent, null where there is none, and whether an agent.down alert of it is active. */
type AgentColumns = { readonly state: SQL; readonly lastSeenAt: SQL; readonly isLost: SQL }

/**
 * An agent.down alert that is not over: a grouped one is told of as part of an incident, and its agent is lost all the
 * same.
 */
export const isActiveDownAlert = (alert: SQL): SQL =>
  sql`${alert}.type = 'agent_down' and ${alert}.state in ('open', 'acknowledged', 'grouped')`

/** 'online', 'down' or 'unknown'. */
export function connectivitySql(
  hub: Hub,
  { state, lastSeenAt, isLost }: AgentColumns,
): SQL<'online' | 'down' | 'unknown'> {
  const oldest = new Date(hub.now() - hub.config['agents.online_threshold']).toISOString()
  return sql`case when ${state} is distinct from 'active' or ${lastSeenAt} is null then 'unknown'
    when ${lastSeenAt} < ${oldest}::timestamptz or ${isLost} then 'down' else 'online' end`
}
