// The entry of a listener thread: it accepts connections on the shared port, decodes and admits the batches that come
// over them, and forwards every other request to the main thread.
import type { EndpointListener, Endpoints } from '../../../http/endpoint-listener.ts'
import { PortBus } from '../../bus/bus-port.ts'
import { createHotCounters, createThreadLogger, Durations, FAST_BOUNDS, REQUEST_BOUNDS } from '../../telemetry.ts'
import { CallClient, CallServer, messageOf } from '../../thread-calls.ts'
import { agentRates } from '../agent-rates.ts'
import { MetricsReceiver } from '../metrics/receive-metrics.ts'
import { ping, startListener } from './agent-api.ts'
import { Directory } from './agent-directory.ts'
import { localEndpoints } from './agent-endpoints.ts'
import { RequestForwarder } from './request-forwarder.ts'
import { ThreadCallers } from './thread-callers.ts'
import type {
  FromListener,
  ListenerCalls,
  ListenerStart,
  MainCalls,
  ThreadCounters,
  ToListener,
} from './thread-messages.ts'

declare const self: Worker

const SWEEP_PERIOD_MS = 60_000
/** How long log lines are collected before they are sent. */
const LOG_WAIT_MS = 20

const tell = (message: FromListener): void => postMessage(message)

/** Collects log lines and sends them to the main thread, which writes the log of the process. */
class Lines {
  private lines: string[] = []
  private timer: ReturnType<typeof setTimeout> | null = null

  readonly add = (line: string): void => {
    this.lines.push(line)
    this.timer ??= setTimeout(() => this.flush(), LOG_WAIT_MS)
  }

  flush(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    if (this.lines.length > 0) tell({ kind: 'log', lines: this.lines })
    this.lines = []
  }
}

class ListenerThread {
  private readonly lines = new Lines()
  private readonly metrics = {
    hot: createHotCounters(),
    requestSeconds: new Durations(REQUEST_BOUNDS),
    decodeSeconds: new Durations(FAST_BOUNDS),
  }
  private readonly main = new CallClient<MainCalls>(self)
  private readonly calls: CallServer<ListenerCalls>
  private readonly callers: ThreadCallers
  private readonly listener: EndpointListener

  constructor(start: ListenerStart) {
    const { config, thread, peers } = start
    const log = createThreadLogger(start.logLevel, start.service, this.lines.add)
    const nowMs = Date.now
    const forwarder = new RequestForwarder(config['ingest.limits.max_body_bytes'], this.main)
    const onArrival = () => {
      this.metrics.hot.handOvers++
    }
    const directory = new Directory(start.directory)
    this.callers = new ThreadCallers({ thread, directory, peers, tell, calls: this.main, nowMs, onArrival })
    const receiver = new MetricsReceiver({
      config,
      log,
      metrics: this.metrics,
      bus: new PortBus(start.bus),
      callers: this.callers,
      rates: agentRates(config),
      nowMs,
    })
    const endpoints: Endpoints = {
      ...localEndpoints({
        ping: request => ping(request, nowMs()),
        metrics: request => receiver.receive(request),
      }),
      ...forwarder.endpoints(),
    }
    this.listener = startListener({
      config,
      log,
      metrics: this.metrics,
      endpoints,
      isPortShared: true,
      ...(start.port === null ? {} : { port: start.port }),
    })
    this.calls = new CallServer<ListenerCalls>(self, {
      count: () => this.takeCounters(),
      reloadCertificate: () => this.done(this.listener.reloadCertificate()),
      stop: () => this.done(this.listener.stop()),
    })
    setInterval(() => this.callers.sweep(nowMs()), SWEEP_PERIOD_MS)
    tell({ kind: 'listening', url: this.listener.url, port: this.listener.port })
  }

  receive(message: Exclude<ToListener, ListenerStart>): void {
    switch (message.kind) {
      case 'update':
        this.callers.read(message)
        return
      case 'call':
        this.calls.receive(message)
        return
      case 'answer':
      case 'failed':
        this.main.receive(message)
    }
  }

  /** Sends what is left of the log, then answers the call. */
  private async done(act: Promise<void>): Promise<null> {
    try {
      await act
    } finally {
      this.lines.flush()
    }
    return null
  }

  private takeCounters(): ThreadCounters {
    const { hot, requestSeconds, decodeSeconds } = this.metrics
    this.lines.flush()
    const counters = {
      hot: { ...hot, dropped: { ...hot.dropped }, requests: new Map(hot.requests) },
      requests: { counts: requestSeconds.counts.slice(), sum: requestSeconds.sum },
      decodes: { counts: decodeSeconds.counts.slice(), sum: decodeSeconds.sum },
    }
    const { dropped, requests, ...zero } = createHotCounters()
    Object.assign(hot, zero)
    Object.assign(hot.dropped, dropped)
    hot.requests.clear()
    requestSeconds.clear()
    decodeSeconds.clear()
    return counters
  }
}

let running: ListenerThread | null = null

function start(message: ListenerStart): void {
  try {
    running = new ListenerThread(message)
  } catch (error) {
    tell({ kind: 'cannot_listen', reason: messageOf(error) })
  }
}

self.onmessage = (event: MessageEvent<ToListener>) => {
  const message = event.data
  if (message.kind === 'start') start(message)
  else running?.receive(message)
}
