// The hub's log (JSON lines, request ids) and self-metrics (names hub_…; decision G-145).
import pino, { type DestinationStream, type Logger, type LoggerOptions } from 'pino'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { errorInfo } from '../../../core/error-info.ts'

export type HubMetrics = ReturnType<typeof createMetrics>

/** The hub's metrics in a registry of their own, so that several hubs can run in one process. */
export function createMetrics(version: string) {
  const registry = new Registry()
  const registers = [registry]
  const counter = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers })
  const info = new Gauge({ name: 'hub_build_info', help: 'Version of the hub.', labelNames: ['version'], registers })
  info.set({ version }, 1)
  return {
    registry,
    requests: counter('hub_http_requests_total', 'Requests by route and status code.', ['route', 'code']),
    requestSeconds: new Histogram({
      name: 'hub_http_request_seconds',
      help: 'Time to answer a request.',
      labelNames: ['route'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
      registers,
    }),
    events: counter('hub_events_total', 'Events of collectors by type and result.', ['type', 'result']),
    securityEvents: counter('hub_security_events_total', 'Events of security matchers by type and result.', [
      'type',
      'result',
    ]),
    notifications: counter('hub_notifications_total', 'Notifications by channel and result.', ['channel', 'result']),
    jobs: counter('hub_jobs_total', 'Jobs by queue and result.', ['job', 'result']),
    queueDepth: new Gauge({ name: 'hub_queue_depth', help: 'Waiting jobs.', labelNames: ['queue'], registers }),
    collectorRequests: counter('hub_collector_requests_total', 'Calls of collectors.', ['call', 'result']),
    matcherRequests: counter('hub_matcher_requests_total', 'Calls of the matcher.', ['call', 'result']),
  }
}

/**
 * Counts events by type and result, each combination once: the library takes longer to find a counter than to add to
 * it.
 */
export function countEvents(
  counter: HubMetrics['events'],
  events: readonly { readonly type: string; readonly result: string }[],
): void {
  for (const [type, ofType] of Map.groupBy(events, event => event.type))
    for (const [result, { length }] of Map.groupBy(ofType, event => event.result)) counter.inc({ type, result }, length)
}

/** JSON lines, on standard output unless it is said where; fields that could hold a secret are masked. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options: LoggerOptions = {
    level,
    base: { service: 'hub' },
    serializers: { err: (error: unknown) => errorInfo(error) },
    redact: { paths: ['*.token', '*.password', '*.secret', '*.authorization', '*.license'], censor: '(hidden)' },
  }
  return destination ? pino(options, destination) : pino(options)
}
