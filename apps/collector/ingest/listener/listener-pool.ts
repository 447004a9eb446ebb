// The main thread's side of the listener threads: starts them on one port, broadcasts registry updates, answers their
// requests, and adds up their counters. When a thread dies the process ends; nothing acknowledged is lost.

import pTimeout from 'p-timeout'
import type { Logger } from 'pino'
import { threadFault } from '../../../../core/error-info.ts'
import { type Endpoints, responseOf } from '../../../http/endpoint-listener.ts'
import { endThread } from '../../../process/end-thread.ts'
import type { BusWriter } from '../../bus/bus.ts'
import { connectBus } from '../../bus/thread-bus.ts'
import type { IngestConfig } from '../../config.ts'
import { addHotCounters, type CollectorMetrics, writeLines } from '../../telemetry.ts'
import { CallClient, CallServer, Direct } from '../../thread-calls.ts'
import type { AuthFailure } from '../agents/authenticate.ts'
import type { Directory } from './agent-directory.ts'
import { answerForwarded } from './request-forwarder.ts'
import type {
  FromListener,
  KnownAgent,
  ListenerCalls,
  ListenerStart,
  MainCalls,
  RegistryUpdate,
  ToListener,
} from './thread-messages.ts'

/** How often counters are fetched, beside each scrape. */
const COUNT_PERIOD_MS = 1_000
/** How long a stop waits for a thread. It answers within the grace of its listener, unless it hangs. */
const STOP_LIMIT_MS = 8_000

/** What listener threads ask the main thread. */
type AgentQueries = {
  /** Authenticates the agent of a token, or gives the reason why not. */
  readonly identify: (tokenHash: string | null, answer: (found: KnownAgent | AuthFailure) => void) => Promise<void>
  /** The ETag of an agent's config; null when the agent no longer exists. */
  readonly etagAt: (agentIndex: number) => string | null
  readonly noteVersion: (agentIndex: number, agentVersion: string, protoVersion: number) => void
  readonly noteWarning: (agentIndex: number, text: string, atMs: number) => void
}

type ListenerPoolParts = {
  readonly threads: number
  readonly threadUrl: URL | string
  readonly config: IngestConfig
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly bus: BusWriter
  readonly directory: Directory
  readonly answers: AgentQueries
  /** The control endpoints, which need the registry or the hub. */
  readonly endpoints: Endpoints
  readonly onFailure: (error: Error) => void
  /** Called once the address is known. */
  readonly onListening: (url: string) => void
}

type Thread = { readonly worker: Worker; readonly calls: CallClient<ListenerCalls> }

export class ListenerPool {
  private readonly threads: Thread[] = []
  private isStopping = false
  /** Resolves when a thread died, so that a stop does not wait for its answers. */
  private readonly failure = Promise.withResolvers<void>()
  private stopping: Promise<void> | null = null
  private readonly counting: ReturnType<typeof setInterval>
  url = ''

  constructor(private readonly parts: ListenerPoolParts) {
    this.counting = setInterval(() => void this.count(), COUNT_PERIOD_MS)
    parts.metrics.onScrape(() => this.count())
  }

  /** Starts the threads. Rejects, in words for the operator, when they cannot serve. */
  async start(): Promise<void> {
    try {
      await this.startThreads()
    } catch (error) {
      await this.end()
      throw error
    }
  }

  private async startThreads(): Promise<void> {
    const { threads, threadUrl } = this.parts
    const starting = Array.from({ length: threads }, (_, thread) => this.startThread(thread, new Worker(threadUrl)))
    const peers = portsBetween(threads)
    // The first thread chooses the port; the others share it.
    const first = await starting[0]!(peers[0]!, null)
    await Promise.all(starting.slice(1).map((listen, index) => listen(peers[index + 1]!, first.port)))
  }

  private opened(url: string): void {
    this.url = url
    this.parts.onListening(url)
  }

  /** Handles the messages of a new thread. The returned function makes it listen. */
  private startThread(thread: number, worker: Worker) {
    const calls = new CallClient<ListenerCalls>(worker)
    const answers = this.answersTo(worker)
    this.threads[thread] = { worker, calls }
    const { promise, resolve, reject } = Promise.withResolvers<{ url: string; port: number }>()
    // Where the first thread cannot listen, the others are ended, and nobody waits for them: its fault is told.
    promise.catch(() => {})
    const fail = (reason: string) => {
      const error = new Error(`listener thread ${thread} failed: ${reason}`)
      reject(error)
      this.failure.resolve()
      if (!this.isStopping) this.parts.onFailure(error)
      calls.failAll(error.message)
    }
    worker.onerror = event => fail(threadFault(event.message))
    worker.addEventListener('close', () => fail('it ended'))
    worker.onmessage = (event: MessageEvent<FromListener>) => {
      const message = event.data
      if (message.kind === 'listening') {
        // Set before the first request of the thread is answered, since responses contain the address.
        if (thread === 0) this.opened(message.url)
        resolve(message)
      } else if (message.kind === 'cannot_listen') reject(new Error(message.reason))
      else if (message.kind === 'call') answers.receive(message)
      else if (message.kind === 'answer' || message.kind === 'failed') calls.receive(message)
      else this.receive(message)
    }
    return (peers: readonly (MessagePort | null)[], port: number | null) => {
      const { config, log, bus, directory } = this.parts
      const busPort = connectBus(bus, error => log.error({ err: error }, 'cannot publish a batch to the bus'))
      const { service } = log.bindings()
      const start: ListenerStart = {
        kind: 'start',
        thread,
        config,
        logLevel: log.level,
        service: typeof service === 'string' ? service : 'collector-ingest',
        bus: busPort,
        peers,
        directory: directory.buffers,
        port,
      }
      worker.postMessage(start, [busPort, ...peers.filter(peer => peer !== null)])
      return promise
    }
  }

  /** Takes what is not answered. */
  private receive(message: Extract<FromListener, { kind: 'version' | 'warning' | 'log' }>): void {
    const { answers, log } = this.parts
    if (message.kind === 'log') writeLines(log, message.lines)
    else if (message.kind === 'warning') answers.noteWarning(message.agentIndex, message.text, message.atMs)
    else answers.noteVersion(message.agentIndex, message.agentVersion, message.protoVersion)
  }

  private answersTo(worker: Worker): CallServer<MainCalls> {
    const { answers, endpoints, log } = this.parts
    const server = new CallServer<MainCalls>(worker, {
      // In the step of the look-up: an update that is broadcast after it must not overtake the answer.
      identify: new Direct((call, tokenHash) => {
        answers
          .identify(tokenHash, found => server.answer(call, found))
          .catch(error => {
            log.error({ err: error }, 'cannot tell whose a token is')
            server.answer(call, 'unavailable')
          })
      }),
      etagAt: agentIndex => answers.etagAt(agentIndex),
      forward: request =>
        answerForwarded(endpoints, request, (endpoint, forwarded, peer) =>
          responseOf({ log }, endpoint, forwarded, peer),
        ),
    })
    return server
  }

  private tell(worker: Worker, message: ToListener): void {
    worker.postMessage(message)
  }

  /** Broadcasts a registry update to every thread. No thread authenticates anybody before it has read the update. */
  broadcast(news: Omit<RegistryUpdate, 'kind' | 'number'>): void {
    const number = this.parts.directory.nextEpoch()
    for (const { worker } of this.threads) this.tell(worker, { kind: 'update', number, ...news })
  }

  /** Adds what the threads counted since the last call to the metrics of the process. */
  async count(): Promise<void> {
    if (this.isStopping || this.url === '') return
    await Promise.all(this.threads.map(thread => this.countOf(thread)))
  }

  private async countOf({ calls }: Thread): Promise<void> {
    const counters = await calls.call('count').catch(error => {
      if (!this.isStopping) this.parts.log.error({ err: error }, 'cannot fetch what a listener thread has counted')
    })
    if (!counters) return
    const { metrics } = this.parts
    addHotCounters(metrics.hot, counters.hot)
    metrics.requestSeconds.durations.addAll(counters.requests)
    metrics.decodeSeconds.durations.addAll(counters.decodes)
  }

  /** Throws when a thread cannot use the new certificate; that thread keeps the old one. */
  async reloadCertificate(): Promise<void> {
    for (const { calls } of this.threads) await calls.call('reloadCertificate')
  }

  /** Stops accepting requests; those under way are answered. */
  stop(): Promise<void> {
    this.stopping ??= this.stopAll()
    return this.stopping
  }

  private async stopAll(): Promise<void> {
    const stopped = Promise.all(
      this.threads.map(async thread => {
        // One that cannot stop in order is ended like the others.
        await thread.calls.call('stop').catch(() => {})
        await this.countOf(thread)
      }),
    )
    await pTimeout(Promise.race([stopped, this.failure.promise]), {
      milliseconds: STOP_LIMIT_MS,
      fallback: () => {},
    })
    await this.end()
  }

  private async end(): Promise<void> {
    this.isStopping = true
    clearInterval(this.counting)
    for (const { calls } of this.threads) calls.failAll('the listener threads have ended')
    await Promise.all(this.threads.map(({ worker }) => endThread(worker)))
  }
}

/** Opens a channel between each two of `count` threads; returns for each thread its ports to the others. */
function portsBetween(count: number): (MessagePort | null)[][] {
  const ports = Array.from({ length: count }, () => Array.from({ length: count }, (): MessagePort | null => null))
  for (let one = 0; one < count; one++)
    for (let other = one + 1; other < count; other++) {
      const { port1, port2 } = new MessageChannel()
      ports[one]![other] = port1
      ports[other]![one] = port2
    }
  return ports
}
