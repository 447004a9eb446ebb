// Calls by which the hub makes a collector act: pull a feed, take or revoke an agent, delete data (document 3 "Hub to
// collector admin API"; decisions G-38, G-42, G-140).
import type { AgentState } from '../lifecycle/agent.ts'

/** POST /reload/{feed}: pull it now. 202. */
export const reloadFeeds = ['rules', 'silences', 'checks', 'settings'] as const
export type ReloadFeed = (typeof reloadFeeds)[number]
export const reloadPath = (feed: ReloadFeed): string => `/reload/${feed}`
export type ReloadResponse = { readonly reload: ReloadFeed; readonly accepted: true }

/** PUT and DELETE /agents/{agent_id}. */
export const agentPath = (agentId: string): string => `/agents/${agentId}`

/** The agent record that the hub pushes; an empty text means that the field is not set. */
export type AgentRecordBody = {
  readonly company_id: string
  readonly server_id: string | null
  readonly state: AgentState
  /** SHA-256, lowercase hex. */
  readonly token_hash: string
  readonly prev_token_hash: string
  readonly prev_token_expires_at: string | null
  readonly version: number
  readonly server_status: string
  readonly subnet_id: string
  readonly datacenter: string
  /** 0: not managed. */
  readonly interval_seconds: number
}
/** `applied` is false when the version is not newer than the collector's. */
export type AgentPushResponse = { readonly agent_id: string; readonly version: number; readonly applied: boolean }

/** DELETE of the data of a company or a server. */
export const companyDataPath = (companyId: string): string => `/companies/${companyId}/data`
export const serverDataPath = (companyId: string, serverId: string): string =>
  `/servers/${serverId}/data?company_id=${companyId}`
export type PurgeResponse = {
  readonly scope: 'company' | 'server'
  readonly id: string
  readonly registry_deleted: number
  readonly tombstone_until: string
}
