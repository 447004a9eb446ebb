// The open cells of a server as bytes: most values of a cell differ little from its last one, and the cells of a server
// mostly have as many samples, up to the same time. So a cell takes some eight bytes instead of 49. Only cells that are
// exact (add-to-cell.ts) are packed: their digits are whole numbers below 2^51.
import { assert } from '../../assert.ts'
import { BITS } from '../block/decimal.ts'
import { folded, NumberReader, putDouble, putNumber, unfolded } from '../block/packed-numbers.ts'
import type { CellRows } from './cell-rows.ts'
import type { IdList } from './id-lists.ts'

/** First byte of a cell: its decimals in pairs, and what it has in common with others. */
const DECIMALS_MASK = 7
const CODE_OF_BITS = 4
/** As many samples as the cell before it, up to the same time. */
const IS_LIKE_BEFORE = 8
/** All its samples have one value. */
const IS_CONSTANT = 16

/** A byte, two numbers of 32 bits, four of 53: in pieces of seven bits. */
const CELL_BYTES_MAX = 1 + 2 * 5 + 4 * 8

/** How many bytes so many cells may take. */
export const packedBytesMax = (cells: number): number => cells * CELL_BYTES_MAX

/** Writes the cells of `rows`, without their ids, and returns how many bytes they take. */
export function packCells(rows: CellRows, bytes: Uint8Array): number {
  const { used, count, after, decimals, last, sum, min, max } = rows
  let at = 0
  let countBefore = 0
  let afterBefore = 0
  for (let row = 0; row < used; row++) {
    const samples = count[row]!
    const time = after[row]!
    const value = last[row]!
    const isBits = decimals[row] === BITS
    const isLike = samples === countBefore && time === afterBefore
    const isConstant = isBits || (min[row] === value && max[row] === value)
    bytes[at++] =
      (isBits ? CODE_OF_BITS : decimals[row]! >>> 1) | (isLike ? IS_LIKE_BEFORE : 0) | (isConstant ? IS_CONSTANT : 0)
    if (!isLike) {
      at = putNumber(bytes, at, samples)
      at = putNumber(bytes, at, time)
      countBefore = samples
      afterBefore = time
    }
    if (isBits) {
      assert(samples === 1, 'a cell of a value that is no decimal has one sample')
      at = putDouble(bytes, at, value)
      continue
    }
    at = putNumber(bytes, at, folded(value))
    if (isConstant) continue
    at = putNumber(bytes, at, value - min[row]!)
    at = putNumber(bytes, at, max[row]! - value)
    at = putNumber(bytes, at, folded(sum[row]! - value * samples))
  }
  return at
}

const reader = new NumberReader()

/** Fills `rows` with the cells that lie packed at `at`; their ids are those of `list`. */
export function unpackCells(bytes: Uint8Array, at: number, list: IdList, rows: CellRows): void {
  const { count, after, decimals, last, sum, min, max } = rows
  const { length } = list.lo
  rows.idLo.set(list.lo)
  rows.idHi.set(list.hi)
  rows.used = length
  reader.open(bytes, at)
  let samples = 0
  let time = 0
  for (let row = 0; row < length; row++) {
    const head = reader.byte()
    if ((head & IS_LIKE_BEFORE) === 0) {
      samples = reader.number()
      time = reader.number()
    }
    count[row] = samples
    after[row] = time
    const code = head & DECIMALS_MASK
    decimals[row] = code === CODE_OF_BITS ? BITS : code << 1
    const value = code === CODE_OF_BITS ? reader.double() : unfolded(reader.number())
    last[row] = value
    if ((head & IS_CONSTANT) !== 0) {
      min[row] = value
      max[row] = value
      sum[row] = value * samples
      continue
    }
    min[row] = value - reader.number()
    max[row] = value + reader.number()
    sum[row] = unfolded(reader.number()) + value * samples
  }
}
