// The matcher's self-metrics (MAT-235), in a registry of its own, so that a matcher can run in one process with others.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { MatcherState } from './state/state-types.ts'

/** What became of a report: the label of svc_matcher_reports_total. */
const reportResults = [
  'kept',
  'unchanged',
  'repeated',
  'disabled',
  'inactive',
  'need_report',
  'too_soon',
  'replayed',
  'machine_changed',
  'purged',
  'unauthorized',
  'clock_skew',
  'host_revoked',
  'rate_limited',
  'refused',
  'unavailable',
] as const
export type ReportResult = (typeof reportResults)[number]

const MATCH_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 10]
const BYTES_BOUNDS = [1024, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576]

export type MatcherMetrics = ReturnType<typeof createMatcherMetrics>

function makers(registry: Registry) {
  const registers = [registry]
  return {
    counter: <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
      new Counter<L>({ name: `svc_matcher_${name}`, help, labelNames: [...labelNames], registers }),
    gauge: <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
      new Gauge<L>({ name: `svc_matcher_${name}`, help, labelNames: [...labelNames], registers }),
    histogram: (name: string, help: string, buckets: readonly number[]) =>
      new Histogram({ name: `svc_matcher_${name}`, help, buckets: [...buckets], registers }),
  }
}

/** Of the database of vulnerabilities, by source. */
const databaseMetrics = ({ gauge, counter }: ReturnType<typeof makers>) => ({
  dbVersion: gauge('db_version', 'Version of the vulnerability database in use; 0: none.'),
  dbAge: gauge('db_age_seconds', 'Since a source of the database was last fetched; -1: never.', ['source']),
  dbFault: gauge('db_fault', '1 while a source is one that the last update did not take.', ['source']),
  dbImport: gauge('db_import_seconds', 'Time of the last import of a source.', ['source']),
  dbRecords: gauge('db_records', 'Records of a source.', ['source']),
  dbRejected: counter('db_rejected_total', 'Records of a source that could not be read, by its imports.', ['source']),
})

/** Of hosts, findings, and events on their way to the hub. */
const stateMetrics = ({ gauge, counter }: ReturnType<typeof makers>) => ({
  instances: gauge('instances', 'Package instances of the fleet.'),
  hosts: gauge('hosts', 'Hosts with an inventory, by match_status.', ['match_status']),
  findingsOpen: gauge('findings_open', 'Open findings.'),
  events: counter('events_total', 'Events that were made, by type.', ['type']),
  eventsRejected: counter('events_rejected_total', 'Events that the hub rejected, by reason.', ['reason']),
  outboxDepth: gauge('outbox_depth', 'Events that wait for the hub.'),
  outboxAge: gauge('outbox_age_seconds', 'Age of the oldest event that waits for the hub.'),
  deadLetters: gauge('dead_letters', 'Events that the hub will never take.'),
  rematchSeconds: gauge('rematch_seconds', 'Time of the last re-match.'),
  rematchKeys: gauge('rematch_keys', 'Packages of the re-match that is running or was last.'),
})

export function createMatcherMetrics(version: string) {
  const registry = new Registry()
  const make = makers(registry)
  new Gauge({
    name: 'svc_build_info',
    help: 'Version and role of the process.',
    labelNames: ['version', 'role'],
    registers: [registry],
  }).set({ version, role: 'matcher' }, 1)
  const readers: (() => void)[] = []
  const reports = make.counter('reports_total', 'Reports by what became of them.', ['result'])
  for (const result of reportResults) reports.inc({ result }, 0)
  const metrics = {
    registry,
    reports,
    reportBytes: make.histogram('report_bytes', 'Size of reports as they were sent.', BYTES_BOUNDS),
    matchSeconds: make.histogram('match_seconds', 'Time to match a report and to commit it.', MATCH_BOUNDS),
    requests: make.counter('scan_requests_total', 'Requests of the scan API by endpoint and status code.', [
      'endpoint',
      'code',
    ]),
    adminRequests: make.counter('admin_requests_total', 'Requests of the internal API by path and status code.', [
      'path',
      'code',
    ]),
    hubRequests: make.counter('hub_requests_total', 'Requests to the hub by status code; 0: no answer.', ['code']),
    feedAge: make.gauge('feed_age_seconds', 'Since the feed of scan hosts was last read to its end; -1: never.'),
    clockSkew: make.gauge('hub_clock_skew_seconds', "The hub's clock minus this matcher's."),
    ...stateMetrics(make),
    ...databaseMetrics(make),
    /** Adds what is to be read before every scrape. */
    onScrape: (read: () => void) => void readers.push(read),
    scrape: async (): Promise<string> => {
      for (const read of readers) read()
      return registry.metrics()
    },
  }
  return metrics
}

/** Sets the gauges that describe the state before every scrape. */
export function showState(metrics: MatcherMetrics, state: MatcherState, nowMs: () => number): void {
  metrics.onScrape(() => {
    const counters = state.counters()
    metrics.instances.set(counters.instances)
    for (const [status, count] of Object.entries(counters.hosts)) metrics.hosts.set({ match_status: status }, count)
    metrics.findingsOpen.set(counters.findingsOpen)
    metrics.outboxDepth.set(counters.outboxDepth)
    const { outboxOldestMs } = counters
    metrics.outboxAge.set(outboxOldestMs === null ? 0 : Math.max(0, (nowMs() - outboxOldestMs) / 1000))
    metrics.deadLetters.set(counters.deadLetters)
    metrics.events.reset()
    for (const [type, count] of Object.entries(counters.events)) metrics.events.inc({ type }, count)
    const { keys, lastSeconds } = state.rematch()
    metrics.rematchKeys.set(keys)
    metrics.rematchSeconds.set(lastSeconds ?? 0)
    const { syncedAtMs } = state.feed()
    metrics.feedAge.set(syncedAtMs === null ? -1 : Math.max(0, (nowMs() - syncedAtMs) / 1000))
  })
}
