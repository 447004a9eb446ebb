// The collector's log (JSON lines, request ids) and self-metrics (decision G-145 and the operating page). One registry
// a process; what is counted for every batch is a plain number that is turned into metrics when it is scraped.
import pino, { type Logger } from 'pino'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { type DropReason, dropReasons } from '../../core/wire/admission-report.ts'
import { createServiceLogger, loggerOptions } from '../process/logger.ts'

export type CollectorRole = 'ingest' | 'worker' | 'all'

/** JSON lines on standard output or in a file, written in the background. */
export const createLogger = (level: string, role: CollectorRole, file: string | null = null): Logger =>
  createServiceLogger(level, role === 'all' ? 'collector' : `collector-${role}`, file)

/** The logger of a thread: `write` takes whole lines, which the thread that has the log writes there. */
export const createThreadLogger = (level: string, service: string, write: (line: string) => void): Logger =>
  pino(loggerOptions(level, service), { write })

/** Writes lines of a thread's logger where `log` writes its own. */
export function writeLines(log: Logger, lines: readonly string[]): void {
  const stream: unknown = Reflect.get(log, pino.symbols.streamSym)
  if (typeof stream !== 'object' || stream === null || !('write' in stream) || typeof stream.write !== 'function')
    return
  for (const line of lines) stream.write(line)
}

/** Durations counted by bounds: two additions each. Bounds are upper, in seconds. */
export class Durations {
  readonly counts: Float64Array
  sum = 0

  constructor(readonly bounds: readonly number[]) {
    this.counts = new Float64Array(bounds.length + 1)
  }

  add(seconds: number): void {
    const { bounds } = this
    let index = 0
    while (index < bounds.length && seconds > bounds[index]!) index++
    this.counts[index]!++
    this.sum += seconds
  }

  /** Adds what another thread counted with the same bounds. */
  addAll(other: { readonly counts: Float64Array; readonly sum: number }): void {
    for (const [index, count] of other.counts.entries()) this.counts[index]! += count
    this.sum += other.sum
  }

  clear(): void {
    this.counts.fill(0)
    this.sum = 0
  }
}

/** A histogram whose observations are plain additions until the scrape. */
class FastHistogram extends Histogram<string> {
  private readonly bounds: readonly number[]
  private readonly fullName: string
  private readonly about: string
  readonly durations: Durations

  constructor(name: string, help: string, bounds: readonly number[], registers: Registry[]) {
    super({ name, help, buckets: [...bounds], registers })
    this.bounds = bounds
    this.fullName = name
    this.about = help
    this.durations = new Durations(bounds)
  }

  add(seconds: number): void {
    this.durations.add(seconds)
  }

  /** What the registry reads at a scrape; `get` goes through it too. */
  async getForPromString() {
    const values: { metricName: string; labels: { le?: number | string }; sharedLabels: object; value: number }[] = []
    const add = (suffix: string, value: number, labels: { le?: number | string } = {}): void =>
      void values.push({ metricName: `${this.fullName}_${suffix}`, labels, sharedLabels: {}, value })
    const { counts, sum } = this.durations
    let total = 0
    for (const [index, bound] of this.bounds.entries()) {
      total += counts[index]!
      add('bucket', total, { le: bound })
    }
    total += counts[this.bounds.length]!
    add('bucket', total, { le: '+Inf' })
    add('sum', sum)
    add('count', total)
    return { name: this.fullName, help: this.about, type: 'histogram', aggregator: 'sum', values }
  }
}

/** What ingest drops besides what admission drops. */
const ingestDropReasons = [...dropReasons, 'retention_locked', 'pending_agent', 'purged'] as const
type IngestDropReason = DropReason | 'retention_locked' | 'pending_agent' | 'purged'

/** Counted for every batch: plain numbers. */
export type HotCounters = {
  batches: number
  points: number
  wireBytes: number
  inflatedBytes: number
  /** States of agents that came from another listener thread. */
  handOvers: number
  /** Batches that the bus did not take. */
  refusedByBus: number
  readonly dropped: Record<IngestDropReason, number>
  /** Requests by endpoint and status code: `metrics 200` -> count. */
  readonly requests: Map<string, number>
}

/**
 * What the handling of a batch counts. A listener thread has its own, whose counts are added to those of the process.
 */
export type BatchMetrics = {
  readonly hot: HotCounters
  readonly requestSeconds: { add(seconds: number): void }
  readonly decodeSeconds: { add(seconds: number): void }
}

export const FAST_BOUNDS = [0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.1]
export const REQUEST_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]

export type CollectorMetrics = ReturnType<typeof createCollectorMetrics>

/** Makes metrics that are shown in these registries. */
function metricMakers(registers: Registry[]) {
  return {
    counter: <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
      new Counter<L>({ name, help, labelNames: [...labelNames], registers }),
    gauge: <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
      new Gauge<L>({ name, help, labelNames: [...labelNames], registers }),
    seconds: (name: string, help: string, bounds: readonly number[]) =>
      new FastHistogram(name, help, bounds, registers),
    histogram: <L extends string>(name: string, help: string, labelNames: readonly L[], buckets: readonly number[]) =>
      new Histogram<L>({ name, help, labelNames: [...labelNames], buckets: [...buckets], registers }),
  }
}

type Makers = ReturnType<typeof metricMakers>

/** What the plain numbers of the batches are shown as. */
function createHotMetrics({ counter }: Makers, ofIngest: Makers): HotMetrics {
  return {
    requests: counter('svc_http_requests_total', 'Requests by endpoint and status code.', ['endpoint', 'code']),
    batches: ofIngest.counter('svc_ingest_batches_total', 'Batches that were acknowledged.'),
    points: ofIngest.counter('svc_ingest_points_total', 'Points that were taken.'),
    dropped: counter('svc_ingest_dropped_total', 'Points that were dropped, by reason.', ['reason']),
    wireBytes: ofIngest.counter('svc_ingest_body_bytes_total', 'Bytes of batches as they were sent.'),
    inflatedBytes: ofIngest.counter('svc_ingest_inflated_bytes_total', 'Bytes of batches once inflated.'),
    handOvers: ofIngest.counter(
      'svc_ingest_hand_overs_total',
      'Agents that went from one listener thread to another with their connection.',
    ),
    refusedByBus: ofIngest.counter(
      'svc_bus_dropped_total',
      'Batches that the bus did not take; the agent was told to keep them.',
    ),
  }
}

/** Of ingest: batches and the agents that send them. */
function batchMetrics({ gauge, counter, seconds }: Makers) {
  return {
    requestSeconds: seconds('svc_ingest_request_seconds', 'Time to answer a batch, the bus included.', REQUEST_BOUNDS),
    decodeSeconds: seconds('svc_ingest_decode_seconds', 'Time to inflate, decode and admit a batch.', FAST_BOUNDS),
    busLost: counter('svc_bus_lost_batches_total', 'Batches that this process acknowledged and that Redis lost.'),
    activeSeries: gauge('svc_ingest_active_series', 'Series that agents sent within the last hour.'),
    inventoryQueued: gauge('svc_inventory_queue_depth', 'Inventory reports that wait for the hub.'),
    inventorySent: counter('svc_inventory_items_total', 'Inventory reports by result.', ['result']),
  }
}

/** Of both roles: authentication, the registry, the bus, and what is pulled from the hub. */
function sharedMetrics({ gauge, counter }: Makers) {
  return {
    authFailures: counter('svc_auth_failures_total', 'Requests refused at authentication.', ['reason']),
    registryAgents: gauge('svc_registry_agents', 'Agents of the registry.', ['state']),
    registryLookups: counter('svc_registry_lookups_total', 'Look-ups of tokens at the hub.', ['result']),
    busLag: gauge('svc_bus_lag', 'Batches that wait on the bus.'),
    busBytes: gauge('svc_bus_bytes', 'Bytes that wait on the bus.'),
    syncLastSuccess: gauge('svc_sync_last_success_seconds', 'When a feed was last read to its end, epoch.', ['feed']),
    syncErrors: counter('svc_sync_errors_total', 'Pulls of a feed that failed.', ['feed']),
    syncSkipped: counter('svc_sync_skipped_total', 'Records of a feed that were skipped, by reason.', [
      'feed',
      'reason',
    ]),
    checksLoaded: gauge('svc_checks_loaded', 'Checks in force.'),
    checksTruncated: gauge('svc_checks_truncated', 'Servers to which more than 50 checks apply.'),
    clockSkew: gauge('svc_hub_clock_skew_seconds', "The hub's clock minus this collector's."),
  }
}

/** Of the worker: the samples store, and who reads and deletes in it. */
function storeMetrics({ gauge, counter, seconds, histogram }: Makers) {
  return {
    storeRows: counter('svc_store_rows_total', 'Rows written to the samples store.'),
    storeErrors: counter('svc_store_errors_total', 'Failed writes to the samples store.'),
    storeBufferRows: gauge('svc_store_buffer_rows', 'Rows that wait for the samples store.'),
    storeInsertSeconds: seconds(
      'svc_store_insert_seconds',
      'Time of an insert into the samples store.',
      REQUEST_BOUNDS,
    ),
    purges: counter('svc_purges_total', 'Purges, by result.', ['result']),
    retentionDaysDeleted: counter('svc_janitor_days_deleted_total', 'Days that the janitor deleted.'),
    retentionSweepErrors: counter('svc_janitor_errors_total', 'Sweeps of the janitor that failed.'),
    querySeconds: histogram('svc_query_seconds', 'Time of a series query, by source.', ['source'], REQUEST_BOUNDS),
  }
}

/** Of the worker: rules, states, events on their way to the hub, and snapshots. */
function evaluationMetrics({ gauge, counter, seconds }: Makers) {
  return {
    busWentBack: counter('svc_bus_went_back_total', 'Partitions of the bus that ended before what was read of them.'),
    recommitted: counter('svc_recommitted_events_total', 'Events that Redis had lost and that were committed again.'),
    evaluations: counter('svc_evaluations_total', 'Samples that were evaluated against a rule.'),
    sampleToEventSeconds: seconds(
      'svc_sample_to_event_seconds',
      'From the time of the sample that opens an alert to its event.',
      [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60],
    ),
    rulesLoaded: gauge('svc_rules_loaded', 'Rules in force.'),
    rulesInvalid: gauge('svc_rules_invalid', 'Rules of the hub that are not valid.'),
    rulesRejected: counter('svc_rules_rejected_total', 'Rules that were rejected, by reason.', ['reason']),
    ruleStates: gauge('svc_rule_states', 'Series by state of a rule.', ['state']),
    events: counter('svc_events_total', 'Events by type.', ['type']),
    outboxDepth: gauge('svc_outbox_depth', 'Events that wait for the hub.'),
    outboxAge: gauge('svc_outbox_oldest_seconds', 'Age of the oldest event that waits for the hub.'),
    outboxSetAside: gauge(
      'svc_outbox_set_aside',
      'Alert keys, and whole companies, whose events the hub answers with a server error; they are tried apart.',
    ),
    outboxSent: counter('svc_outbox_sent_total', 'Events sent to the hub, by result.', ['result']),
    silencesActive: gauge('svc_silences_active', 'Silences that hold now.'),
    agentsOnline: gauge('svc_agents_online', 'Agents that are online.'),
    groupsOpen: gauge('svc_groups_open', 'Open wide-area incidents.'),
    snapshotSeconds: seconds('svc_snapshot_seconds', 'Time to write a snapshot.', REQUEST_BOUNDS),
    snapshotBytes: gauge('svc_snapshot_bytes', 'Size of the last snapshots together.'),
    snapshotErrors: counter('svc_snapshot_errors_total', 'Snapshots that could not be written or read.'),
  }
}

/**
 * Every metric of the collector, in a registry of its own, so that several collectors can run in one process. What only
 * the other role counts is not shown: a zero that means "not here" looks like "none".
 */
export function createCollectorMetrics(version: string, role: CollectorRole) {
  const registry = new Registry()
  const ofBoth = metricMakers([registry])
  const ofIngest = metricMakers(role === 'worker' ? [] : [registry])
  const ofWorker = metricMakers(role === 'ingest' ? [] : [registry])
  ofBoth.gauge('svc_build_info', 'Version and role of the process.', ['version', 'role']).set({ version, role }, 1)

  /** Called before every scrape: sets gauges from what they describe. */
  const readers: (() => void | Promise<void>)[] = []
  const hot = createHotCounters()
  const hotMetrics = createHotMetrics(ofBoth, ofIngest)
  return {
    registry,
    hot,
    /** Adds what is to be read before every scrape. */
    onScrape: (read: () => void | Promise<void>) => void readers.push(read),
    /** The text of GET /metrics. */
    scrape: async (): Promise<string> => {
      for (const read of readers) await read()
      // Last: a reader may have added what threads counted.
      copyHotCounters(hot, hotMetrics)
      return registry.metrics()
    },
    ...batchMetrics(ofIngest),
    ...sharedMetrics(ofBoth),
    ...storeMetrics(ofWorker),
    ...evaluationMetrics(ofWorker),
  }
}

export function createHotCounters(): HotCounters {
  return {
    batches: 0,
    points: 0,
    wireBytes: 0,
    inflatedBytes: 0,
    handOvers: 0,
    refusedByBus: 0,
    dropped: {
      series_limit_dropped: 0,
      company_series_limit: 0,
      invalid_name: 0,
      invalid_label: 0,
      not_finite: 0,
      too_old: 0,
      too_new: 0,
      retention_locked: 0,
      pending_agent: 0,
      purged: 0,
    },
    requests: new Map(),
  }
}

type HotMetrics = {
  readonly requests: Counter<'endpoint' | 'code'>
  readonly batches: Counter
  readonly points: Counter
  readonly dropped: Counter<'reason'>
  readonly wireBytes: Counter
  readonly inflatedBytes: Counter
  readonly handOvers: Counter
  readonly refusedByBus: Counter
}

/** Adds what a thread counted. */
export function addHotCounters(to: HotCounters, from: HotCounters): void {
  to.batches += from.batches
  to.points += from.points
  to.wireBytes += from.wireBytes
  to.inflatedBytes += from.inflatedBytes
  to.handOvers += from.handOvers
  to.refusedByBus += from.refusedByBus
  for (const reason of ingestDropReasons) to.dropped[reason] += from.dropped[reason]
  for (const [key, count] of from.requests) to.requests.set(key, (to.requests.get(key) ?? 0) + count)
}

function copyHotCounters(hot: HotCounters, to: HotMetrics): void {
  const set = (counter: Counter, value: number) => {
    counter.reset()
    counter.inc(value)
  }
  set(to.batches, hot.batches)
  set(to.points, hot.points)
  set(to.wireBytes, hot.wireBytes)
  set(to.inflatedBytes, hot.inflatedBytes)
  set(to.handOvers, hot.handOvers)
  set(to.refusedByBus, hot.refusedByBus)
  to.dropped.reset()
  for (const reason of ingestDropReasons) to.dropped.inc({ reason }, hot.dropped[reason])
  to.requests.reset()
  for (const [key, count] of hot.requests) {
    const [endpoint = '', code = ''] = key.split(' ')
    to.requests.inc({ endpoint, code }, count)
  }
}
