// When an agent is too fast (document 3 "Limits"; decision G-55): every rate that it is held to, of the configuration.
// Ingest and each listener thread make the same ones; the buckets of an agent stand in its session, how a bucket
// fills is core/wire/rate-bucket.ts, and which of them a batch meets first stands in metrics/receive-metrics.ts.
import { limits } from '../../../core/limits.ts'
import { RateLimit } from '../../../core/wire/rate-bucket.ts'
import type { IngestConfig } from '../config.ts'

export type AgentRates = {
  readonly metrics: RateLimit
  /** Bytes of its batches once they are inflated. */
  readonly activeBytes: RateLimit
  /** The same of an agent that is pending: nothing of it is kept. */
  readonly pendingBytes: RateLimit
  readonly config: RateLimit
  readonly inventory: RateLimit
}

export function agentRates(config: IngestConfig): AgentRates {
  const metricsPerMinute = config['ingest.limits.metrics_per_minute']
  const metricsBurst = config['ingest.limits.metrics_burst']
  const configPerMinute = config['ingest.limits.config_per_minute']
  const bytesRate = (bytes: number) => new RateLimit(metricsPerMinute * bytes, metricsBurst * bytes)
  return {
    metrics: new RateLimit(metricsPerMinute, metricsBurst),
    activeBytes: bytesRate(limits.inflatedBytesPerRequest),
    pendingBytes: bytesRate(limits.inflatedBytesPerRequestPending),
    config: new RateLimit(configPerMinute, configPerMinute),
    inventory: new RateLimit(limits.inventoryPerMinute, limits.inventoryPerMinute),
  }
}
