// The feeds about agents that every process of a collector pulls from the hub: the agents themselves (into the
// registry), and their checks.
import type { Logger } from 'pino'
import type { SyncLoop } from '../../hub-link/sync-loop.ts'
import type { AgentRegistry } from '../store/registry/registry.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import { createAgentsSync } from './agents-sync.ts'
import { ChecksFeed } from './checks-feed.ts'
import type { HubClient } from './hub-client.ts'

type AgentFeedsParts = {
  readonly config: { readonly 'registry.sync_interval': number; readonly 'checks.sync_interval': number }
  /** Where the checks are kept. */
  readonly directory: string
  readonly registry: AgentRegistry
  readonly hub: HubClient | null
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly nowMs: () => number
}

export class AgentFeeds {
  readonly checks: ChecksFeed
  private readonly agents: SyncLoop
  private readonly registry: AgentRegistry

  /** Puts the saved checks in force at once. */
  constructor({ config, directory, ...shared }: AgentFeedsParts) {
    this.registry = shared.registry
    this.agents = createAgentsSync({ ...shared, intervalMs: config['registry.sync_interval'] })
    this.checks = new ChecksFeed({ ...shared, directory, intervalMs: config['checks.sync_interval'] })
  }

  /** Starts both loops; resolves after the first pull of each. */
  async start(): Promise<void> {
    await Promise.all([this.agents.start(), this.checks.start()])
  }

  /** Starts both loops, and waits for the first pulls only while the registry was never filled: it knows no agent. */
  async startWaitingIfEmpty(): Promise<void> {
    const firstPulls = this.start()
    if (!this.registry.isFilled) await firstPulls
  }

  async stop(): Promise<void> {
    await Promise.all([this.agents.stop(), this.checks.stop()])
  }
}
