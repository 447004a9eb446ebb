// The entry of a listener thread: it has connections of its own on the shared port, decodes and admits the batches that
// come over them, and carries every other request to the main thread.
import { RateLimit } from '../../../../core/wire/rate-bucket.ts'
import { PortBus } from '../../bus/bus-port.ts'
import { createHotCounters, createThreadLogger, Durations, FAST_BOUNDS, REQUEST_BOUNDS } from '../../telemetry.ts'
import { MetricsReceiver } from '../metrics/receive-metrics.ts'
import { type AgentListener, type Endpoints, ping, startListener } from './agent-api.ts'
import { Directory } from './agent-directory.ts'
import { RequestForwarder } from './request-forwarder.ts'
import { ThreadCallers } from './thread-callers.ts'
import type { FromListener, ListenerStart, ThreadCounters, ToListener } from './thread-messages.ts'

declare const self: Worker

const SWEEP_PERIOD_MS = 60_000
/** How long lines of the log wait for others. */
const LOG_WAIT_MS = 20

const tell = (message: FromListener, transfer: ArrayBuffer[] = []): void => postMessage(message, transfer)

/** Lines for the log of the process. */
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
  private readonly carrier: RequestForwarder
  private readonly callers: ThreadCallers
  private readonly listener: AgentListener

  constructor(start: ListenerStart) {
    const { config, thread, peers } = start
    const log = createThreadLogger(start.logLevel, start.service, this.lines.add)
    const nowMs = Date.now
    this.carrier = new RequestForwarder(config['ingest.limits.max_body_bytes'], tell)
    const onArrival = () => {
      this.metrics.hot.handOvers++
    }
    const directory = new Directory(start.directory)
    this.callers = new ThreadCallers({ thread, directory, peers, tell, nowMs, onArrival })
    const receiver = new MetricsReceiver({
      config,
      log,
      metrics: this.metrics,
      bus: new PortBus(start.bus),
      callers: this.callers,
      rates: {
        metrics: new RateLimit(config['ingest.limits.metrics_per_minute'], config['ingest.limits.metrics_burst']),
      },
      nowMs,
    })
    const endpoints: Endpoints = {
      '/agent/v1/ping': { name: 'ping', method: 'GET', handle: request => ping(request, nowMs()) },
      '/agent/v1/metrics': { name: 'metrics', method: 'POST', handle: request => receiver.receive(request) },
      ...this.carrier.endpoints(),
    }
    this.listener = startListener({
      config,
      log,
      metrics: this.metrics,
      endpoints,
      isPortShared: true,
      ...(start.port === null ? {} : { port: start.port }),
    })
    setInterval(() => this.callers.sweep(nowMs()), SWEEP_PERIOD_MS)
    tell({ kind: 'listening', url: this.listener.url, port: this.listener.port })
  }

  async receive(message: Exclude<ToListener, ListenerStart>): Promise<void> {
    switch (message.kind) {
      case 'known':
      case 'etag':
      case 'update':
        this.callers.receive(message)
        return
      case 'response':
        this.carrier.receive(message.call, message.response)
        return
      case 'count':
        tell({ kind: 'counted', call: message.call, counters: this.takeCounters() })
        return
      case 'reload_certificate':
        await this.done(message.call, () => this.listener.reloadCertificate())
        return
      case 'stop':
        await this.done(message.call, () => this.listener.stop())
    }
  }

  private async done(call: number, act: () => Promise<void>): Promise<void> {
    let fault: string | null = null
    try {
      await act()
    } catch (error) {
      fault = error instanceof Error ? error.message : String(error)
    }
    this.lines.flush()
    tell({ kind: 'done', call, fault })
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
    tell({ kind: 'cannot_listen', reason: error instanceof Error ? error.message : String(error) })
  }
}

self.onmessage = (event: MessageEvent<ToListener>) => {
  const message = event.data
  if (message.kind === 'start') start(message)
  else
    running?.receive(message).catch(error => {
      // Out of any promise: nobody is there to catch it, and the thread ends.
      setTimeout(() => {
        throw error
      })
    })
}
