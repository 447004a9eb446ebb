// How batches come in: through one listener in this thread, or through several in threads of their own.
import type { SeenAgent } from '../../hub-link/report-seen.ts'
import { KnownAgents } from '../agents/known-agents.ts'
import { type BatchCallers, type IngestContext, noteAgent } from '../context.ts'
import { MetricsReceiver } from '../metrics/receive-metrics.ts'
import { allEndpoints, servedControlEndpoints, startListener } from './agent-api.ts'
import { Directory, newDirectoryBuffers } from './agent-directory.ts'
import { ListenerPool } from './listener-pool.ts'

/** Listener threads besides the main thread. */
export type ListenerThreads = {
  readonly count: number
  /** The file of a listener thread. */
  readonly url: URL | string
  /** A thread died: the process must end. */
  readonly onFailure: (error: Error) => void
}

export type Intake = {
  readonly url: string
  /** The agents that sent something, to report them to the hub. */
  agents(): Iterable<SeenAgent>
  activeSeries(): number
  /** The set of checks changed: every ETag must be computed again. */
  forgetEtags(): void
  reloadCertificate(): Promise<void>
  /** Stops accepting requests; those under way are answered. */
  stop(): Promise<void>
}

/** The callers when one thread does everything. */
const ownCallers = ({ authenticator, configs }: IngestContext): BatchCallers => ({
  authenticate: (header, nowMs) => authenticator.authenticate(header, nowMs),
  etagOf: session => configs.etagOf(session),
  noteBatch: (session, protocol, atMs) => {
    session.lastSeenAtMs = atMs
    session.isUnreported = true
    noteAgent(session, protocol)
  },
})

/** Starts a listener in this thread. Throws with a message for the operator. */
export function startOwnIntake(context: IngestContext): Intake {
  const { config, log, metrics, sessions } = context
  const receiver = new MetricsReceiver({ ...context, callers: ownCallers(context) })
  const endpoints = allEndpoints(context, receiver)
  const listener = startListener({ config, log, metrics, endpoints, isPortShared: false })
  return {
    url: listener.url,
    agents: () => sessions.values(),
    activeSeries: () => sessions.activeSeries(),
    forgetEtags: () => {},
    reloadCertificate: () => listener.reloadCertificate(),
    stop: () => listener.stop(),
  }
}

/**
 * Starts listeners in threads of their own. `onListening` is called before the first request is answered. Rejects with
 * a message for the operator.
 */
export async function startThreadsIntake(
  context: IngestContext,
  threads: ListenerThreads,
  onListening: (url: string) => void,
): Promise<Intake> {
  const { config, log, metrics, registry, bus, configs, identifier, nowMs } = context
  const directory = new Directory(newDirectoryBuffers())
  const agents: KnownAgents = new KnownAgents({
    registry,
    identifier,
    configs,
    directory,
    nowMs,
    onUpdate: news => pool.broadcast({ agents: news, isEveryEtagStale: false }),
  })
  const pool: ListenerPool = new ListenerPool({
    threads: threads.count,
    threadUrl: threads.url,
    config,
    log,
    metrics,
    bus,
    directory,
    answers: {
      identify: (tokenHash, answer) => agents.identify(tokenHash, answer),
      etagAt: agentIndex => agents.etagAt(agentIndex),
      noteVersion: (agentIndex, agentVersion, protoVersion) =>
        agents.noteVersion(agentIndex, agentVersion, protoVersion),
      noteWarning: (agentIndex, text, atMs) => agents.noteWarning(agentIndex, text, atMs),
    },
    endpoints: servedControlEndpoints(context),
    onFailure: threads.onFailure,
    onListening,
  })
  await pool.start()
  return {
    url: pool.url,
    agents: () => agents.values(),
    activeSeries: () => agents.activeSeries(),
    forgetEtags: () => pool.broadcast({ agents: [], isEveryEtagStale: true }),
    reloadCertificate: () => pool.reloadCertificate(),
    stop: async () => {
      await pool.stop()
      agents.stop()
    },
  }
}
