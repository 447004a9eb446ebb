// Cells of series as columns, with no object for each series: count, sum, minimum, maximum and last of the samples so
// far. Values are digits with the cell's decimals (block/decimal.ts). What a sample makes of a cell: add-to-cell.ts;
// how cells lie in memory between two blocks: packed-cells.ts.

/** The most series of a server in one cell. */
export const ROWS_MAX = 16_384
/** Rows of 49 bytes: id 8, four values 32, time of the last sample, count, decimals. In the order of the ids. */
export class CellRows {
  /** The number of rows in use. */
  used = 0
  readonly idLo: Uint32Array<ArrayBuffer>
  readonly idHi: Uint32Array<ArrayBuffer>
  /** Samples of each cell; zero when there is none yet. */
  readonly count: Uint32Array<ArrayBuffer>
  /** Time from the start of the cell to its newest sample, ms. */
  readonly after: Uint32Array<ArrayBuffer>
  readonly decimals: Uint8Array<ArrayBuffer>
  readonly last: Float64Array<ArrayBuffer>
  readonly sum: Float64Array<ArrayBuffer>
  readonly min: Float64Array<ArrayBuffer>
  readonly max: Float64Array<ArrayBuffer>

  constructor(rows: number = ROWS_MAX) {
    this.idLo = new Uint32Array(rows)
    this.idHi = new Uint32Array(rows)
    this.count = new Uint32Array(rows)
    this.after = new Uint32Array(rows)
    this.decimals = new Uint8Array(rows)
    this.last = new Float64Array(rows)
    this.sum = new Float64Array(rows)
    this.min = new Float64Array(rows)
    this.max = new Float64Array(rows)
  }
}
