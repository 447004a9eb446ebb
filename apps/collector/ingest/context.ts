// What the handlers of the agent API share: one context for each process, and nothing global.
import type { Logger } from 'pino'
import type { TrustedProxies } from '../../../core/network/trusted-proxies.ts'
import type { ApiError } from '../../http/api-error.ts'
import type { BusWriter } from '../bus/bus.ts'
import type { IngestConfig } from '../config.ts'
import type { InventoryForwarder } from '../hub-link/forward-inventory.ts'
import type { HubClient } from '../hub-link/hub-client.ts'
import type { AgentRegistry } from '../store/registry/registry.ts'
import type { UnknownTokenLookup } from '../store/registry/unknown-token-lookup.ts'
import type { BatchMetrics, CollectorMetrics } from '../telemetry.ts'
import type { AgentRates } from './agent-rates.ts'
import type { AgentConfigs } from './agents/agent-configs.ts'
import type { AgentSession, Etag, Sessions } from './agents/agent-session.ts'
import type { Authenticator, Identifier } from './agents/authenticate.ts'
import type { UpdateOffer } from './agents/load-update-manifest.ts'
import type { RefusalLog } from './agents/refusal-log.ts'
import type { AgentProtocol } from './listener/agent-protocol.ts'

/**
 * Authentication as the handling of a batch needs it. One implementation for a single thread, one for listener threads.
 */
export interface BatchCallers {
  /**
   * The session, which this thread then owns. Synchronous for a token that was seen before; else the hub or another
   * thread is asked.
   */
  authenticate(header: string | null, nowMs: number): AgentSession | Promise<AgentSession | ApiError>
  /** The ETag of the config of a session that this thread owns. */
  etagOf(session: AgentSession): Etag
  /** Records that a batch of the session was acknowledged. */
  noteBatch(session: AgentSession, protocol: AgentProtocol, atMs: number): void
}

/** What the handling of batches needs. */
export type MetricsContext = {
  readonly config: IngestConfig
  readonly log: Logger
  readonly metrics: BatchMetrics
  readonly bus: BusWriter
  readonly callers: BatchCallers
  readonly rates: AgentRates
  readonly nowMs: () => number
}

export type IngestContext = {
  readonly config: IngestConfig
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly registry: AgentRegistry
  readonly lookup: UnknownTokenLookup
  readonly hub: HubClient | null
  readonly bus: BusWriter
  readonly sessions: Sessions
  readonly identifier: Identifier
  readonly authenticator: Authenticator
  readonly refusals: RefusalLog
  readonly configs: AgentConfigs
  readonly inventory: InventoryForwarder
  readonly proxies: TrustedProxies
  readonly updates: UpdateOffer
  readonly rates: AgentRates
  readonly nowMs: () => number
}

/** Records the versions of the calling agent, to report them to the hub. */
export function noteAgent(session: AgentSession, { version, agentVersion }: AgentProtocol): void {
  if (agentVersion !== session.agentVersion) session.agentVersion = agentVersion.slice(0, 64)
  session.protoVersion = version
}
