// When a cell is computed: a minute after its end, and not while samples that were received before its end still wait.
// How often that is looked at: apps/collector/worker/samples/rollup-schedule.ts.
import { cellMs } from './cell-width.ts'

/** Samples on their way when a cell ends get this long before it is computed; later ones are late. */
const GRACE_MS = 60_000

/**
 * The time up to which a pass at `nowMs` computes cells for the first time, when everything received before
 * `arrivedBeforeMs` is stored.
 */
export function computableBeforeMs(nowMs: number, arrivedBeforeMs: number): number {
  return Math.max(0, Math.floor((Math.min(nowMs, arrivedBeforeMs) - GRACE_MS) / cellMs['5m']) * cellMs['5m'])
}
