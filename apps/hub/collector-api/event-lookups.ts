// What a batch of events refers to: servers, rules and agents, looked up with one statement each.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { AlertEvent } from '../../../core/alerting/evaluate/event.ts'
import type { Severity } from '../../../core/alerting/rules/rule.ts'
import type { EventContext } from '../../../core/lifecycle/alert.ts'
import { lossesThatWait } from '../notifications/losses-that-wait.ts'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
import { type Tx, together, uuidList } from '../platform/db/transaction.ts'
import { isUuid } from '../platform/http/request-schema.ts'

type Agent = { readonly id: string; readonly companyId: string }

type DownRule = {
  id: string
  company_id: string
  severity: Severity
  enabled: boolean
  all: boolean
  /** Of the batch's servers, those that the scope resolves to. */
  covered: string[]
}

/** The servers, rules and agents that the batch refers to. */
type Lookups = {
  /** The company of each server. */
  readonly servers: ReadonlyMap<string, string>
  /** Lost servers that a wide-area incident may claim: people are told of them a little later. */
  readonly waitingServerIds: ReadonlySet<string>
  readonly rules: ReadonlyMap<string, { id: string; kind: string; company_id: string }>
  readonly downRules: ReadonlyMap<string, DownRule>
  /** The newest agent of each server that is not revoked. */
  readonly agentByServer: ReadonlyMap<string, Agent>
  readonly agents: ReadonlyMap<string, Agent>
}

/** The agent that an agent event is about: its label, else its series_key. */
function namedAgent(event: AlertEvent): string | null {
  const id = event.labels.agent_id ?? event.series_key.replace(/^agent:/, '')
  return isUuid(id) ? id.toLowerCase() : null
}

/** Events that never open an alert: the fields of the existing alert stay. */
const CLOSING: ReadonlySet<string> = new Set(['alert.resolved', 'agent.up', 'group_update', 'group_resolved'])

const lossesOf = (events: readonly AlertEvent[]) => events.filter(event => event.type === 'agent.down')

/** The agent_down rules of the companies with `agent.down` events; no other event needs them. */
async function loadDownRules(tx: Tx, events: readonly AlertEvent[]): Promise<DownRule[]> {
  const losses = lossesOf(events)
  if (losses.length === 0) return []
  const companyIds = uuidList(new Set(losses.map(event => event.company_id)))
  const serverIds = uuidList(new Set(losses.map(event => event.server_id)))
  return tx.db.execute<DownRule>(sql`
    select id, company_id, severity, enabled, (scope->>'all')::boolean as all,
      array(select unnest(resolved_server_ids) intersect select unnest(${serverIds}::uuid[]))::text[] as covered
    from monitoring_rules where company_id = any(${companyIds}::uuid[]) and kind = 'agent_down' and deleted_at is null`)
}

// What belongs to a company comes as lists in one row: for the driver a value of a row is dear, an element of a list is
// not.
const SERVERS = fixedStatement<'ids'>(
  value => sql`
    select company_id, json_agg(id) as ids from servers where id = any(${value('ids')}::uuid[]) and deleted_at is null
    group by company_id`,
)
const RULES = fixedStatement<'ids'>(
  value => sql`
    select company_id, kind, json_agg(id) as ids from monitoring_rules where id = any(${value('ids')}::uuid[])
    group by company_id, kind`,
)
const AGENTS = fixedStatement<'ids' | 'servers'>(
  value => sql`
    select company_id, json_agg(id order by enrolled_at) as ids,
      json_agg(case when state <> 'revoked' then server_id end order by enrolled_at) as server_ids
    from monitoring_agents
    where id = any(${value('ids')}::uuid[]) or (server_id = any(${value('servers')}::uuid[]) and state <> 'revoked')
    group by company_id`,
)

async function loadServers(tx: Tx, events: readonly AlertEvent[]): Promise<Lookups['servers']> {
  const ids = uuidList(new Set(events.map(event => event.server_id)))
  const rows = await tx.db.execute<{ company_id: string; ids: string[] }>(SERVERS({ ids }))
  return new Map(rows.flatMap(row => row.ids.map(id => [id, row.company_id] as const)))
}

async function loadRules(tx: Tx, opening: readonly AlertEvent[]): Promise<Lookups['rules']> {
  const ids = new Set(opening.map(event => event.rule_id).filter(isUuid))
  if (ids.size === 0) return new Map()
  const rows = await tx.db.execute<{ company_id: string; kind: string; ids: string[] }>(RULES({ ids: uuidList(ids) }))
  return new Map(rows.flatMap(({ ids: found, ...rest }) => found.map(id => [id, { id, ...rest }] as const)))
}

async function loadAgents(tx: Tx, opening: readonly AlertEvent[]): Promise<Pick<Lookups, 'agents' | 'agentByServer'>> {
  const agents = new Map<string, Agent>()
  const agentByServer = new Map<string, Agent>()
  if (opening.length === 0) return { agents, agentByServer }
  const named = opening.filter(event => event.type.startsWith('agent.')).map(namedAgent)
  const ids = uuidList(new Set(named.filter(id => id !== null)))
  const servers = uuidList(new Set(opening.map(event => event.server_id)))
  const rows = await tx.db.execute<{ company_id: string; ids: string[]; server_ids: (string | null)[] }>(
    AGENTS({ ids, servers }),
  )
  for (const { company_id: companyId, ids: found, server_ids: serverIds } of rows)
    for (const [at, id] of found.entries()) {
      const agent = { id, companyId }
      const serverId = serverIds[at] ?? null
      agents.set(id, agent)
      if (serverId !== null) agentByServer.set(serverId, agent)
    }
  return { agents, agentByServer }
}

export async function loadLookups(tx: Tx, events: readonly AlertEvent[]): Promise<Lookups> {
  const opening = events.filter(event => !CLOSING.has(event.type))
  const [servers, rules, downRules, agents, waiting] = await together([
    loadServers(tx, events),
    loadRules(tx, opening),
    loadDownRules(tx, events),
    loadAgents(tx, opening),
    lossesThatWait(tx, new Set(lossesOf(events).map(event => event.server_id))),
  ])
  return {
    servers,
    waitingServerIds: new Set(waiting.map(row => row.id)),
    rules,
    downRules: new Map(downRules.map(row => [row.company_id, row])),
    ...agents,
  }
}

/** The id of an agent; null for none, and for one of another company. */
const idWithin = (companyId: string, agent: Agent | undefined): string | null =>
  agent?.companyId === companyId ? agent.id : null

/** What the hub looked up for one of the events. */
export function contextOf(event: AlertEvent, around: Lookups, nowMs: number): EventContext {
  const known = around.rules.get(event.rule_id.toLowerCase())
  const down = around.downRules.get(event.company_id)
  const named = event.type.startsWith('agent.') ? namedAgent(event) : null
  return {
    newId: randomUUID(),
    nowMs,
    rule: known && known.company_id === event.company_id ? known : null,
    agentDownRule: down
      ? {
          id: down.id,
          severity: down.severity,
          applies: down.enabled && (down.all || down.covered.includes(event.server_id)),
        }
      : null,
    agentId:
      (named === null ? null : idWithin(event.company_id, around.agents.get(named))) ??
      idWithin(event.company_id, around.agentByServer.get(event.server_id)),
  }
}
