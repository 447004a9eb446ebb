// When buffered samples are stored: after so long or so many, sooner for cells that are computed already and
// after a start that finds something on the bus, at once when somebody waits for them.
import { CELL_5M_MS } from '../../../../core/samples/rollup/cell-width.ts'
import { BLOCK_BYTES, type PendingBlock } from './pending-block.ts'

const BLOCK_WAIT_MS = 1_000
const LATE_WAIT_MS = 60_000

/**
 * How long samples are buffered at most, and how many bytes of the bus they may take, since buffered entries stay on
 * the bus and count against its bound.
 */
export type Hold = { readonly ms: number; readonly bytes: number }

type AroundBlock = {
  readonly nowMs: number
  /** Since when the writer runs; -Infinity where it found nothing that an earlier one had held. */
  readonly startedAtMs: number
  /** Cells that end by this instant may be computed already. */
  readonly computedBeforeMs: () => number
  readonly hold: Hold | undefined
  /** Somebody waits for what is buffered, or the bus is full. */
  readonly isUrgent: boolean
}

/** Whether the samples of a block are to be stored now. */
export function areSamplesStored(
  { positions, block, bytes, firstAtMs }: PendingBlock,
  { nowMs, startedAtMs, computedBeforeMs, hold, isUrgent }: AroundBlock,
): boolean {
  if (positions.size === 0 && block.rows === 0) return false
  const waitedMs = nowMs - firstAtMs
  if (block.bytes >= BLOCK_BYTES || bytes >= (hold?.bytes ?? Number.POSITIVE_INFINITY)) return true
  // Samples for cells that are computed already are stored soon, so that the pass after the next computes these cells
  // again.
  const isLate = block.oldestCellMs + CELL_5M_MS <= computedBeforeMs()
  // What an earlier writer held until it died is stored soon, else one that dies again and again would store nothing: a
  // block is buffered for no longer than the writer has run, and each one twice as long as the one before.
  const ageMs = Math.max(BLOCK_WAIT_MS, firstAtMs - startedAtMs)
  const waitMs = Math.min(hold?.ms ?? BLOCK_WAIT_MS, ageMs, isLate ? LATE_WAIT_MS : Number.POSITIVE_INFINITY)
  return waitedMs >= waitMs || waitedMs < 0 || isUrgent
}
