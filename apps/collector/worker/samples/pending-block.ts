// A block of the sample writer with what belongs to it, and how much memory one may take.
import { totalmem } from 'node:os'
import { type BlockScratch, SampleBlock } from '../../../../core/samples/block/sample-block.ts'

/**
 * A block is stored when it was buffered for long enough, or when its points take a 16th of the memory, at some three
 * bytes for nearly each. While it is stored, the next one fills.
 */
export const BLOCK_BYTES = Math.min(4 * 1024 ** 3, Math.max(32 * 1024 ** 2, memoryBytes() / 16))

/** A block and what belongs to it. There are two: one fills while the other is being inserted. */
export type PendingBlock = {
  readonly block: SampleBlock
  /** First and last position of each partition in the block. */
  readonly positions: Map<number, { first: number; last: number }>
  entries: number
  bytes: number
  firstAtMs: number
  /** When the oldest of its entries was received. */
  receivedAtMs: number
}

export const newPendingBlock = (scratch: BlockScratch): PendingBlock => ({
  block: new SampleBlock(scratch),
  positions: new Map(),
  entries: 0,
  bytes: 0,
  firstAtMs: 0,
  receivedAtMs: Number.POSITIVE_INFINITY,
})

/** The memory of the host, or the part of it that this process may use (container limit). */
function memoryBytes(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
}
