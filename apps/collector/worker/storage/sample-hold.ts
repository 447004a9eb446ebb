// How long samples are held before they are stored, so that a series with a sample every 30 s is stored ten points at a
// time. Held samples stay on the bus, and must leave room in it for batches that arrive while the store is
// unreachable.
import type { WorkerConfig } from '../../config.ts'
import type { SampleHold } from '../samples/samples-messages.ts'

const HOLD_MS = 300_000
const HOLD_AGE_SHARE = 1 / 8
const HOLD_BYTES_SHARE = 1 / 2

/** For all workers of a collector together. */
export const sampleHold = (config: WorkerConfig): SampleHold => ({
  ms: Math.min(HOLD_MS, config['bus.max_age'] * HOLD_AGE_SHARE),
  bytes: config['bus.max_bytes'] * HOLD_BYTES_SHARE,
})
