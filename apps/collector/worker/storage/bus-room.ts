// How long a worker may leave batches on the bus that it has taken: samples are held so that a series with one every
// 30 s is stored ten points at a time, and evaluation is safe only with its next snapshot. Both must leave room on the
// bus, within `bus.max_age` and `bus.max_bytes`, for batches that arrive while the store is unreachable.
import type { WorkerConfig } from '../../config.ts'
import type { SampleHold } from '../samples/samples-messages.ts'

const HOLD_MS = 300_000
const HOLD_AGE_SHARE = 1 / 8
const HOLD_BYTES_SHARE = 1 / 2
const SNAPSHOT_AGE_SHARE = 1 / 4

/** For all workers of a collector together. */
export const sampleHold = (config: WorkerConfig): SampleHold => ({
  ms: Math.min(HOLD_MS, config['bus.max_age'] * HOLD_AGE_SHARE),
  bytes: config['bus.max_bytes'] * HOLD_BYTES_SHARE,
})

/** How often the state of each shard is snapshotted: more often than `alerting.rules_state_interval` on a short bus. */
export const snapshotIntervalMs = (config: WorkerConfig): number =>
  Math.min(config['alerting.rules_state_interval'], config['bus.max_age'] * SNAPSHOT_AGE_SHARE)
