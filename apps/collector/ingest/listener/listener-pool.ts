// The listener threads of a process, seen from the main thread: starts them on one port, tells them the news of the
// registry, answers what they ask, adds up what they count. A thread that dies takes the process with it: nothing
// acknowledged is lost by that.
import type { Logger } from 'pino'
import { assert } from '../../../../core/assert.ts'
import type { BusWriter } from '../../bus/bus.ts'
import { connectBus } from '../../bus/thread-bus.ts'
import type { IngestConfig } from '../../config.ts'
import { addHotCounters, type CollectorMetrics, writeLines } from '../../telemetry.ts'
import type { AuthFailure } from '../agents/authenticate.ts'
import { type Endpoints, responseOf } from './agent-api.ts'
import type { Directory } from './agent-directory.ts'
import { answerForwarded } from './request-forwarder.ts'
import type { FromListener, KnownAgent, ListenerStart, ToListener } from './thread-messages.ts'

/** How often counters are fetched besides scrapes. */
const COUNT_PERIOD_MS = 1_000
/** A thread answers its stop within the grace of its listener; the process does not wait for one that hangs. */
const STOP_LIMIT_MS = 8_000

/** What the main thread knows that threads ask for. */
export type AgentQueries = {
  /** Lets the agent of a token in, or says why not. */
  readonly identify: (tokenHash: string | null, answer: (found: KnownAgent | AuthFailure) => void) => Promise<void>
  /** The ETag of an agent's config; null when there is no such agent any more. */
  readonly etagAt: (agentIndex: number) => string | null
  readonly noteVersion: (agentIndex: number, agentVersion: string, protoVersion: number) => void
}

export type ListenerPoolParts = {
  readonly threads: number
  readonly threadUrl: URL | string
  readonly config: IngestConfig
  readonly log: Logger
  readonly metrics: CollectorMetrics
  readonly bus: BusWriter
  readonly directory: Directory
  readonly answers: AgentQueries
  /** What needs registry or hub. */
  readonly endpoints: Endpoints
  readonly onFailure: (error: Error) => void
  /** The address is known. */
  readonly onListening: (url: string) => void
}

type Question = { readonly kind: 'count' | 'reload_certificate' | 'stop' }
type Answer = Extract<FromListener, { kind: 'counted' | 'done' }>

export class ListenerPool {
  private readonly workers: Worker[] = []
  private readonly calls = new Map<number, (answer: Answer) => void>()
  private nextCall = 1
  private isStopping = false
  /** Settles when a thread died: it answers nobody any more. */
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
      this.end()
      throw error
    }
  }

  private async startThreads(): Promise<void> {
    const { threads, threadUrl } = this.parts
    const starting = Array.from({ length: threads }, (_, thread) => this.startThread(thread, new Worker(threadUrl)))
    const peers = portsBetween(threads)
    // The first finds the port, the others share it.
    const first = await starting[0]!(peers[0]!, null)
    await Promise.all(starting.slice(1).map((listen, index) => listen(peers[index + 1]!, first.port)))
  }

  private opened(url: string): void {
    this.url = url
    this.parts.onListening(url)
  }

  /** Attends to a new thread. The result makes it listen. */
  private startThread(thread: number, worker: Worker) {
    this.workers[thread] = worker
    const { promise, resolve, reject } = Promise.withResolvers<{ url: string; port: number }>()
    const fail = (reason: string) => {
      const error = new Error(`listener thread ${thread} failed: ${reason}`)
      reject(error)
      this.failure.resolve()
      if (!this.isStopping) this.parts.onFailure(error)
    }
    worker.onerror = event => fail(event.message)
    worker.addEventListener('close', () => fail('it ended'))
    worker.onmessage = (event: MessageEvent<FromListener>) => {
      const message = event.data
      if (message.kind === 'listening') {
        // Before any question of the thread is answered: answers name the address.
        if (thread === 0) this.opened(message.url)
        resolve(message)
      } else if (message.kind === 'cannot_listen') reject(new Error(message.reason))
      else this.receive(worker, message)
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

  private receive(
    worker: Worker,
    message: Exclude<FromListener, { readonly kind: 'listening' | 'cannot_listen' }>,
  ): void {
    const { answers, endpoints, log } = this.parts
    switch (message.kind) {
      case 'who':
        this.identify(worker, message.call, message.tokenHash)
        return
      case 'which_etag':
        this.tell(worker, { kind: 'etag', call: message.call, etag: answers.etagAt(message.agentIndex) })
        return
      case 'request':
        void answerForwarded(endpoints, message.request, (endpoint, request, peer) =>
          responseOf(log, endpoint, request, peer),
        ).then(response => this.tell(worker, { kind: 'response', call: message.call, response }))
        return
      case 'version':
        answers.noteVersion(message.agentIndex, message.agentVersion, message.protoVersion)
        return
      case 'log':
        writeLines(log, message.lines)
        return
      case 'counted':
      case 'done':
        this.calls.get(message.call)?.(message)
        this.calls.delete(message.call)
    }
  }

  private identify(worker: Worker, call: number, tokenHash: string | null): void {
    const { answers, log } = this.parts
    const answer = (found: KnownAgent | AuthFailure) => this.tell(worker, { kind: 'known', call, found })
    answers.identify(tokenHash, answer).catch(error => {
      log.error({ err: error }, 'cannot tell whose a token is')
      answer('unavailable')
    })
  }

  private tell(worker: Worker, message: ToListener): void {
    worker.postMessage(message)
  }

  /** Tells every thread what changed; none lets anybody in before it has read it. */
  broadcast(news: Omit<Extract<ToListener, { kind: 'update' }>, 'kind' | 'number'>): void {
    const number = this.parts.directory.nextEpoch()
    for (const worker of this.workers) this.tell(worker, { kind: 'update', number, ...news })
  }

  private ask(worker: Worker, question: Question): Promise<Answer> {
    const call = this.nextCall++
    return new Promise(resolve => {
      this.calls.set(call, resolve)
      this.tell(worker, { ...question, call })
    })
  }

  /** Adds what the threads have counted since the last time to the metrics of the process. */
  async count(): Promise<void> {
    if (this.isStopping || this.url === '') return
    await Promise.all(this.workers.map(worker => this.countOf(worker)))
  }

  private async countOf(worker: Worker): Promise<void> {
    const answer = await this.ask(worker, { kind: 'count' })
    assert(answer.kind === 'counted', 'a count is answered with counters')
    const { metrics } = this.parts
    addHotCounters(metrics.hot, answer.counters.hot)
    metrics.requestSeconds.durations.addAll(answer.counters.requests)
    metrics.decodeSeconds.durations.addAll(answer.counters.decodes)
  }

  /** Throws when a thread cannot use the new certificate; it goes on with the old one. */
  async reloadCertificate(): Promise<void> {
    for (const worker of this.workers) {
      const answer = await this.ask(worker, { kind: 'reload_certificate' })
      if (answer.kind === 'done' && answer.fault !== null) throw new Error(answer.fault)
    }
  }

  /** No new requests; those under way are answered. */
  stop(): Promise<void> {
    this.stopping ??= this.stopAll()
    return this.stopping
  }

  private async stopAll(): Promise<void> {
    const limit = new Promise<void>(resolve => setTimeout(resolve, STOP_LIMIT_MS).unref())
    const stopped = Promise.all(
      this.workers.map(async worker => {
        await this.ask(worker, { kind: 'stop' })
        await this.countOf(worker)
      }),
    )
    await Promise.race([stopped, limit, this.failure.promise])
    this.end()
  }

  private end(): void {
    this.isStopping = true
    clearInterval(this.counting)
    for (const worker of this.workers) worker.terminate()
  }
}

/** A channel between each two of `count` threads: by thread, its ports to the others. */
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
