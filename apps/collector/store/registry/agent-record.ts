// A record of the agents registry (document 1 "Registry record"; document 3 "AgentRecord"; decisions G-34, G-38), and
// which tokens it lets in. What is wrong with one that comes: agent-record-faults.ts; which of two counts:
// which-record-holds.ts.
import type { AgentState } from '../../../../core/lifecycle/agent.ts'
import type { ScanInvitation } from '../../../../core/wire/agent-config.ts'

type ServerStatus = '' | 'maintenance' | 'decommissioned'

export type AgentRecord = {
  readonly agentId: string
  readonly companyId: string
  /** Empty while the hub has the agent on no server. */
  readonly serverId: string
  readonly state: AgentState
  /** SHA-256, lowercase hex; empty for an agent that was revoked before it was known. */
  readonly tokenHash: string
  readonly prevTokenHash: string
  /** 0 without a previous token. */
  readonly prevTokenExpiresAtMs: number
  readonly version: number
  /** Cursor of the feed; 0 in a record that the hub pushed. */
  readonly syncVersion: number
  readonly serverStatus: ServerStatus
  readonly subnetId: string
  readonly datacenter: string
  /** The server's hostname, for labels of events; empty where the hub does not send it. */
  readonly hostname: string
  /** 0 = not managed. */
  readonly intervalSeconds: number
  /** 0 when the hub does not send it. */
  readonly enrolledAtMs: number
  /** Absent for an agent that is not to become a scan host. */
  readonly scan?: ScanInvitation | undefined
}

/** A revoked record of an agent of which nothing but its id is known yet. */
export const emptyRecord = (agentId: string): AgentRecord => ({
  agentId,
  companyId: '',
  serverId: '',
  state: 'revoked',
  tokenHash: '',
  prevTokenHash: '',
  prevTokenExpiresAtMs: 0,
  version: 0,
  syncVersion: 0,
  serverStatus: '',
  subnetId: '',
  datacenter: '',
  hostname: '',
  intervalSeconds: 0,
  enrolledAtMs: 0,
})

/**
 * Whether a token holds at an instant: the current one does, and the one before a renewal until the end of its overlap,
 * which the hub sets (core/lifecycle/token-rotation.ts). A revoked agent is refused whatever its token.
 */
export const isTokenOf = (record: AgentRecord, tokenHash: string, nowMs: number): boolean =>
  record.tokenHash === tokenHash || (record.prevTokenHash === tokenHash && nowMs < record.prevTokenExpiresAtMs)

export type JsonObject = Readonly<Record<string, unknown>>
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
