// Encodes cells that were accumulated while their samples were stored as blocks for the store, in the order of the
// tables' key.

import { CellRows } from '../rollup/cell-rows.ts'
import { type CellsOfStart, unpackServer } from '../rollup/open-cells.ts'
import { CellColumns } from './cell-columns.ts'
import { BITS } from './decimal.ts'
import { NativeWriter } from './native-writer.ts'
import { compareServerWords, serverWords, WORDS_PER_SERVER } from './uuid-words.ts'

const BLOCK_ROWS = 400_000

/**
 * Writes the cells of one start as blocks and yields the row count of each. Servers whose cells must be computed from
 * raw samples are left out.
 */
export class CellBlockWriter {
  private readonly writer = new NativeWriter()
  private readonly columns = new CellColumns()
  private readonly rows = new CellRows()

  /** The block of the last step; valid until the next step. */
  block(): Uint8Array {
    return this.writer.finish()
  }

  /** After each step the caller inserts `block()`, then takes the next step. */
  *write({ servers, startMs }: CellsOfStart, version: number): Generator<number> {
    const { columns } = this
    const whole = [...servers.values()].filter(({ isRaw }) => !isRaw)
    const words = serverWords(whole)
    const order = [...whole.keys()].sort((a, b) =>
      compareServerWords(words, a * WORDS_PER_SERVER, b * WORDS_PER_SERVER),
    )
    for (const [at, index] of order.entries()) {
      const server = whole[index]!
      unpackServer(server, this.rows)
      columns.server(words, index * WORDS_PER_SERVER, this.rows.used)
      this.addCells(startMs)
      const isLast = at === order.length - 1
      if (columns.rows === 0 || (columns.rows < BLOCK_ROWS && !isLast)) continue
      columns.write(this.writer, version)
      yield columns.rows
      columns.clear()
    }
  }

  private addCells(startMs: number): void {
    const { columns } = this
    const { idLo, idHi, count, after, decimals, last, min, max, sum, used } = this.rows
    for (let at = 0; at < used; at++) {
      const values = { last: last[at]!, min: min[at]!, max: max[at]!, sum: sum[at]! }
      if (decimals[at] === BITS) columns.addBits(idLo[at]!, idHi[at]!, startMs, count[at]!, after[at]!, values)
      else columns.addDigits(idLo[at]!, idHi[at]!, startMs, count[at]!, after[at]!, decimals[at]!, values)
    }
  }
}
