// What the handlers of the agent API share: one of these for every listener, nothing global.
import type { Logger } from 'pino'
import type { RateLimit } from '../../../core/wire/rate-bucket.ts'
import type { BusWriter } from '../bus/bus.ts'
import type { IngestConfig } from '../config.ts'
import type { InventoryForwarder } from '../hub-link/forward-inventory.ts'
import type { HubClient } from '../hub-link/hub-client.ts'
import type { AgentRegistry } from '../store/registry.ts'
import type { RegistryLookup } from '../store/registry-lookup.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import type { AgentConfigs } from './agent-configs.ts'
import type { Authenticator } from './authenticate.ts'
import type { TrustedProxies } from './client-address.ts'
import type { AgentSession, Sessions } from './session.ts'
import type { UpdateOffer } from './update-manifest.ts'

export type IngestContext = {
  readonly config: IngestConfig
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly registry: AgentRegistry
  readonly lookup: RegistryLookup
  readonly hub: HubClient | null
  readonly bus: BusWriter
  readonly sessions: Sessions
  readonly authenticator: Authenticator
  readonly configs: AgentConfigs
  readonly inventory: InventoryForwarder
  readonly proxies: TrustedProxies
  readonly updates: UpdateOffer
  readonly rates: { readonly metrics: RateLimit; readonly config: RateLimit; readonly inventory: RateLimit }
  readonly nowMs: () => number
}

/** Notes who calls and with what: for the hub's records. */
export function noteAgent(session: AgentSession, headers: Headers): void {
  const version = headers.get('x-svc-agent-version')
  if (version !== null && version !== session.agentVersion) session.agentVersion = version.slice(0, 64)
  const proto = headers.get('x-svc-proto')
  session.protoVersion = proto === '1' ? 1 : Number(proto ?? 0)
}
