// Wires ingest: sessions, authentication, the agent API, and the reports to the hub. It gets everything that it needs
// as parameters, so that the executable and the all-in-one wire the same thing.
import pTimeout from 'p-timeout'
import type { Logger } from 'pino'
import { TrustedProxies } from '../../../core/network/trusted-proxies.ts'
import type { CheckSet } from '../../../core/wire/checks-of-server.ts'
import type { BusWriter } from '../bus/bus.ts'
import type { IngestConfig } from '../config.ts'
import { InventoryForwarder } from '../hub-link/forward-inventory.ts'
import type { HubClient } from '../hub-link/hub-client.ts'
import { SeenReporter } from '../hub-link/report-seen.ts'
import type { AgentRegistry } from '../store/registry/registry.ts'
import { UnknownTokenLookup } from '../store/registry/unknown-token-lookup.ts'
import type { CollectorMetrics } from '../telemetry.ts'
import { agentRates } from './agent-rates.ts'
import { AgentConfigs } from './agents/agent-configs.ts'
import { Sessions } from './agents/agent-session.ts'
import { Authenticator, Identifier } from './agents/authenticate.ts'
import { loadManifest, UpdateOffer } from './agents/load-update-manifest.ts'
import { RefusalLog } from './agents/refusal-log.ts'
import type { IngestContext } from './context.ts'
import { type Intake, type ListenerThreads, startOwnIntake, startThreadsIntake } from './listener/intake.ts'

/** How long a stop waits for the hub to take the last reports. */
const LAST_REPORT_MS = 4_000
const SWEEP_PERIOD_MS = 60_000
/** The window over which requests a second are averaged. */
const RATE_WINDOW_MS = 30_000

/** The checks in force. `onChange` is called when the set was replaced. */
export type ChecksSource = {
  current(): CheckSet
  onChange(listener: () => void): () => void
}

type IngestDeps = {
  readonly config: IngestConfig
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly registry: AgentRegistry
  /** null: no hub is configured, and only pushed agents are known. */
  readonly hub: HubClient | null
  readonly bus: BusWriter
  readonly checks: ChecksSource
  readonly nowMs: () => number
  /** null or absent: this thread listens. */
  readonly threads?: ListenerThreads | null
}

export type RunningIngest = {
  /** The base URL for agents, without /agent/v1. */
  readonly url: string
  /** Batches acknowledged a second, over the last 30 s: for the heartbeat. */
  requestsPerSecond(): number
  /** Agents seen by this process within `withinMs`. */
  agentsSeen(withinMs: number): number
  reloadCertificate(): Promise<void>
  /**
   * Reads the update manifest again; throws and keeps the old one when it cannot be used. The emergency stop is applied
   * even then.
   */
  reloadManifest(isStopped: boolean): void
  /** Stops accepting requests, answers those under way, and sends the last reports to the hub. */
  stop(): Promise<void>
}

function createContext(deps: IngestDeps, sessions: Sessions, collectorUrl: () => string): IngestContext {
  const { config, log, metrics, registry, hub, nowMs } = deps
  const lookup = new UnknownTokenLookup({
    registry,
    hub,
    negativeTtlMs: config['registry.negative_ttl'],
    log,
    metrics,
    nowMs,
  })
  const refusals = new RefusalLog(log, nowMs)
  const identifier = new Identifier({ registry, lookup, metrics, refusals, nowMs })
  return {
    ...deps,
    sessions,
    lookup,
    identifier,
    authenticator: new Authenticator(identifier, sessions),
    refusals,
    configs: new AgentConfigs({ config, registry, checks: () => deps.checks.current(), collectorUrl }),
    inventory: new InventoryForwarder({ hub, log, metrics, nowMs }),
    proxies: new TrustedProxies(config.trusted_proxies),
    updates: new UpdateOffer(config['update.stop']),
    rates: agentRates(config),
  }
}

function useManifest({ config, updates }: IngestContext, isStopped: boolean): void {
  const manifestFile = config['update.manifest_file']
  const publicKeyFile = config['update.public_key_file']
  updates.use(manifestFile && publicKeyFile ? loadManifest(manifestFile, publicKeyFile) : null, isStopped)
}

/** Batches a second, from the counter of all of them. */
class RateMeter {
  private readonly marks: { atMs: number; batches: number }[] = []

  constructor(
    private readonly batches: () => number,
    private readonly nowMs: () => number,
  ) {
    this.mark()
  }

  mark(): void {
    const atMs = this.nowMs()
    this.marks.push({ atMs, batches: this.batches() })
    while (this.marks.length > 2 && atMs - this.marks[1]!.atMs >= RATE_WINDOW_MS) this.marks.shift()
  }

  perSecond(): number {
    const first = this.marks[0]
    const elapsedMs = first ? this.nowMs() - first.atMs : 0
    return first && elapsedMs > 0 ? Math.round(((this.batches() - first.batches) * 100_000) / elapsedMs) / 100 : 0
  }
}

function observe({ metrics, registry, bus, log }: IngestContext, intake: Intake): void {
  metrics.onScrape(async () => {
    for (const state of ['pending', 'active', 'revoked'] as const)
      metrics.registryAgents.set({ state }, registry.countOf(state))
    metrics.activeSeries.set(intake.activeSeries())
    try {
      const stats = await bus.stats()
      metrics.busLag.set(stats.lagEntries)
      metrics.busBytes.set(stats.bytes)
    } catch (error) {
      log.warn({ err: error }, 'cannot read the state of the bus')
    }
  })
}

/**
 * Starts ingest. Rejects, in words for the operator, when the address cannot be served or the manifest cannot be used.
 */
export async function startIngest(deps: IngestDeps): Promise<RunningIngest> {
  const { config, log, metrics, nowMs } = deps
  const sessions = new Sessions(deps.registry)
  let url = ''
  const context = createContext(deps, sessions, () => config.collector_url ?? url)
  useManifest(context, config['update.stop'])
  const onListening = (listening: string) => {
    url = listening
  }
  const intake = deps.threads ? await startThreadsIntake(context, deps.threads, onListening) : startOwnIntake(context)
  url = intake.url
  observe(context, intake)
  const stopChecks = deps.checks.onChange(() => {
    sessions.forgetEtags()
    intake.forgetEtags()
  })
  const seen = deps.hub
    ? new SeenReporter({ agents: () => intake.agents(), hub: deps.hub, log, intervalMs: config['seen.interval'] })
    : null
  const meter = new RateMeter(() => metrics.hot.batches, nowMs)
  const meterTimer = setInterval(() => meter.mark(), RATE_WINDOW_MS / 6)
  const sweepTimer = setInterval(() => sessions.sweep(nowMs()), SWEEP_PERIOD_MS)
  return {
    url,
    requestsPerSecond: () => meter.perSecond(),
    agentsSeen: withinMs => {
      const sinceMs = nowMs() - withinMs
      let count = 0
      for (const agent of intake.agents()) if (agent.lastSeenAtMs >= sinceMs) count++
      return count
    },
    reloadCertificate: () => intake.reloadCertificate(),
    reloadManifest: isStopped => {
      // The emergency stop is applied even if the manifest cannot be read.
      if (isStopped) context.updates.stop()
      useManifest(context, isStopped)
    },
    stop: async () => {
      clearInterval(meterTimer)
      clearInterval(sweepTimer)
      stopChecks()
      await intake.stop()
      // A silent hub does not delay the stop, since agents report again.
      await pTimeout(Promise.all([context.inventory.stop(), seen?.stop()]), {
        milliseconds: LAST_REPORT_MS,
        fallback: () => {},
      })
      sessions.stop()
    },
  }
}
