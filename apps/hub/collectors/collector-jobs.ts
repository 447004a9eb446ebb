// The calls to collectors that follow a commit: reload, push or revocation of agents, purge. Each call to each
// registered collector is a separate job, so that a collector that is down does not delay the others (decisions G-42,
// G-44, G-140).
import { sql } from 'drizzle-orm'
import {
  type AgentRecordBody,
  agentPath,
  companyDataPath,
  type ReloadFeed,
  reloadFeeds,
  reloadPath,
  serverDataPath,
} from '../../../core/admin-api/calls.ts'
import { type AgentState, serverStatusOfRecord } from '../../../core/lifecycle/agent.ts'
import { auditByHub } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { type JobPayload, PermanentJobFailure } from '../platform/jobs/jobs.ts'
import { purgeAtMatcher } from '../purge/matcher-purge.ts'
import type { Unreachable } from './collector-client.ts'

export type ReloadKind = ReloadFeed

const CALL_TIMEOUT_MS = 10_000

type CollectorQueue = 'collector.reload' | 'collector.agent' | 'collector.purge'
type Call = { readonly payload: JobPayload; readonly key: string }

async function callCollectors(hub: Hub, tx: Tx, queue: CollectorQueue, calls: readonly Call[]): Promise<void> {
  const ids = await hub.collectors.ids(tx.db)
  hub.jobs.enqueue(
    tx,
    ids.flatMap(id =>
      calls.map(({ payload, key }) => ({
        queue,
        payload: { ...payload, collector_id: id },
        key: `${key} ${id}`,
        group: id,
      })),
    ),
  )
}

/** After the commit, calls every collector to pull a feed now. */
export const reloadCollectors = (hub: Hub, tx: Tx, kind: ReloadKind): Promise<void> =>
  callCollectors(hub, tx, 'collector.reload', [{ payload: { kind }, key: kind }])

/** The same without a change, on request of an operator. */
export const requestReload = (hub: Hub, kind: ReloadKind): Promise<void> =>
  inTransaction(hub.database.db, tx => reloadCollectors(hub, tx, kind))

/** After the commit, sends every collector the agents' records as they are then; revoked ones as a revocation. */
export const pushAgents = (hub: Hub, tx: Tx, agentIds: readonly string[]): Promise<void> =>
  callCollectors(
    hub,
    tx,
    'collector.agent',
    agentIds.map(agentId => ({ payload: { agent_id: agentId }, key: agentId })),
  )

type PurgeScope = { readonly scope: 'company' | 'server'; readonly company_id: string; readonly id: string }

/** After the commit every collector deletes the data of a company or a server. */
export const purgeAtCollectors = (hub: Hub, tx: Tx, purge: PurgeScope): Promise<void> =>
  callCollectors(hub, tx, 'collector.purge', [{ payload: purge, key: `${purge.scope} ${purge.id}` }])

/**
 * The same, and after it the matcher, for what is deleted for good (decision G-161). Where no collector is registered,
 * the matcher is called at once.
 */
export async function purgeEverywhere(hub: Hub, tx: Tx, purge: PurgeScope): Promise<void> {
  const payload = { ...purge, then_matcher: true }
  await callCollectors(hub, tx, 'collector.purge', [{ payload, key: `${purge.scope} ${purge.id}` }])
  if ((await hub.collectors.ids(tx.db)).length === 0) purgeAtMatcher(hub, tx, purge)
}

const UNREACHABLE = {
  not_registered: 'the collector is no longer registered',
  no_address: 'the collector has no address of its admin API',
  no_token: "the collector's admin token cannot be opened: rotate it",
  refused_address: "the address of the collector's admin API is not allowed",
} as const satisfies Record<Unreachable, string>

/** Throws PermanentJobFailure for a collector that this hub cannot call. */
async function call(
  hub: Hub,
  payload: JobPayload,
  name: string,
  method: string,
  path: string,
  body: unknown,
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<number> {
  const target = await hub.collectors.reach(String(payload.collector_id))
  if (typeof target === 'string') throw new PermanentJobFailure(UNREACHABLE[target])
  try {
    const { status } = await hub.collectors.call(target, method, path, body, timeoutMs)
    hub.metrics.collectorRequests.inc({ call: name, result: status < 300 ? 'ok' : String(status) })
    return status
  } catch (error) {
    hub.metrics.collectorRequests.inc({ call: name, result: 'unavailable' })
    throw error
  }
}

/** A collector without an address pulls the feeds by itself: there is nothing to call, and that is no fault. */
const isSilent = async (hub: Hub, payload: JobPayload): Promise<boolean> =>
  (await hub.collectors.reach(String(payload.collector_id))) === 'no_address'

async function reload(hub: Hub, payload: JobPayload): Promise<void> {
  if (await isSilent(hub, payload)) return
  const feed = reloadFeeds.find(known => known === payload.kind)
  if (!feed) throw new PermanentJobFailure('the job names no feed of a collector')
  const status = await call(hub, payload, 'reload', 'POST', reloadPath(feed), undefined)
  if (status >= 300) throw new Error(`the collector answered ${status}`)
}

type AgentRecordRow = {
  id: string
  company_id: string
  server_id: string | null
  state: AgentState
  token_hash: string
  prev_token_hash: string | null
  prev_token_expires_at: string | null
  version: string
  status: string | null
  subnet_id: string | null
  datacenter: string | null
  default_interval: number | null
}

async function pushAgent(hub: Hub, payload: JobPayload): Promise<void> {
  if (await isSilent(hub, payload)) return
  const agentId = String(payload.agent_id)
  const [row] = await hub.database.db.execute<AgentRecordRow>(sql`
    select a.id, a.company_id, a.server_id, a.state, a.token_hash, a.prev_token_hash, a.prev_token_expires_at, a.version,
      s.status, s.subnet_id, s.datacenter, m.default_interval
    from monitoring_agents a left join servers s on s.id = a.server_id
    left join monitoring_settings m on m.company_id = a.company_id where a.id = ${agentId}`)
  if (!row || row.state === 'revoked') {
    const status = await call(hub, payload, 'revoke', 'DELETE', agentPath(agentId), undefined)
    if (status >= 300) throw new Error(`the collector answered ${status}`)
    return
  }
  const record: AgentRecordBody = {
    company_id: row.company_id,
    server_id: row.server_id,
    state: row.state,
    token_hash: row.token_hash,
    prev_token_hash: row.prev_token_hash ?? '',
    prev_token_expires_at: row.prev_token_expires_at ? new Date(row.prev_token_expires_at).toISOString() : null,
    version: Number(row.version),
    server_status: serverStatusOfRecord(row.status),
    subnet_id: row.subnet_id ?? '',
    datacenter: row.datacenter ?? '',
    interval_seconds: row.default_interval ?? 0,
  }
  const status = await call(hub, payload, 'push', 'PUT', agentPath(agentId), record)
  if (status === 400) throw new PermanentJobFailure('the collector refuses the agent record')
  if (status >= 300) throw new Error(`the collector answered ${status}`)
}

async function purge(hub: Hub, payload: JobPayload): Promise<void> {
  const id = String(payload.id)
  const path = payload.scope === 'company' ? companyDataPath(id) : serverDataPath(String(payload.company_id), id)
  const status = await call(hub, payload, 'purge', 'DELETE', path, undefined, hub.config['collector.purge_timeout'])
  if (status === 400 || status === 404 || status === 405)
    throw new PermanentJobFailure(`the collector answered ${status} to a purge`)
  if (status !== 200) throw new Error(`the collector answered ${status} to a purge`)
  await recordPurge(hub, payload, 'purge.done')
}

const recordPurge = (hub: Hub, payload: JobPayload, action: 'purge.done' | 'purge.failed'): Promise<void> =>
  inTransaction(hub.database.db, async tx => {
    const [scope, companyId, id] = [String(payload.scope), String(payload.company_id), String(payload.id)]
    await auditByHub(tx, companyId, action, { type: scope, id, name: null })
    // Whether the collector could do it or not: the matcher is asked with tries of its own.
    if (payload.then_matcher === true)
      purgeAtMatcher(hub, tx, { scope: scope === 'company' ? scope : 'server', company_id: companyId, id })
  })

export function registerCollectorJobs(hub: Hub): void {
  hub.jobs.register('collector.reload', { handle: payload => reload(hub, payload) })
  hub.jobs.register('collector.agent', { handle: payload => pushAgent(hub, payload) })
  hub.jobs.register('collector.purge', {
    handle: payload => purge(hub, payload),
    onFailed: payload => recordPurge(hub, payload, 'purge.failed'),
  })
}
