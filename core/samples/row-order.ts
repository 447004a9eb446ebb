// The order of rows by (owner, series, time), stable: two passes of counting sort on the top of the series id and the owner,
// then a pass of insertion that has little left to do. Cheaper than to let the engine compare UUIDs row by row.

/** The columns that the order looks at. */
export type OrderColumns = {
  readonly owner: Uint32Array
  readonly idLo: Uint32Array
  readonly idHi: Uint32Array
  readonly tsMs: Float64Array
}

/** `rows` takes the result; `spare` and `counts` (65,536) are working memory. */
export type RowOrder = { rows: Uint32Array; spare: Uint32Array; readonly counts: Uint32Array }

/** Insertion is for runs this long at most; a longer one (one series with many points) is sorted by comparison. */
const INSERTION_MAX = 32
const DIGIT_VALUES = 65_536

/** Orders rows 0 … count - 1 into `order.rows`. `ranks` is the rank of each owner. */
export function orderRows(columns: OrderColumns, count: number, ranks: Uint32Array, order: RowOrder): void {
  const { owner, idHi } = columns
  const { rows, spare, counts } = order
  counts.fill(0)
  for (let row = 0; row < count; row++) counts[idHi[row]! >>> 16]!++
  startsOf(counts)
  for (let row = 0; row < count; row++) spare[counts[idHi[row]! >>> 16]!++] = row

  const rankCounts = ranks.length <= DIGIT_VALUES ? counts : new Uint32Array(ranks.length)
  rankCounts.fill(0)
  for (let row = 0; row < count; row++) rankCounts[ranks[owner[row]!]!]!++
  startsOf(rankCounts)
  for (let at = 0; at < count; at++) {
    const row = spare[at]!
    rows[rankCounts[ranks[owner[row]!]!]!++] = row
  }
  finishRuns(columns, count, rows)
}

function startsOf(counts: Uint32Array): void {
  let start = 0
  for (let digit = 0; digit < counts.length; digit++) {
    const count = counts[digit]!
    counts[digit] = start
    start += count
  }
}

/** Orders each run of rows that agree in owner and top of the id by the whole id and the time. */
function finishRuns(columns: OrderColumns, count: number, rows: Uint32Array): void {
  const { owner, idHi } = columns
  let start = 0
  while (start < count) {
    const first = rows[start]!
    let end = start + 1
    while (end < count && owner[rows[end]!] === owner[first] && idHi[rows[end]!]! >>> 16 === idHi[first]! >>> 16) end++
    if (end - start > 1) orderRun(columns, rows, start, end)
    start = end
  }
}

function orderRun(columns: OrderColumns, rows: Uint32Array, start: number, end: number): void {
  const { idHi, idLo, tsMs } = columns
  const isAfter = (a: number, b: number): boolean => {
    if (idHi[a] !== idHi[b]) return idHi[a]! > idHi[b]!
    if (idLo[a] !== idLo[b]) return idLo[a]! > idLo[b]!
    return tsMs[a]! > tsMs[b]!
  }
  if (end - start > INSERTION_MAX) {
    // Equal rows keep the order in which they came, so that the last of them can win.
    rows.subarray(start, end).sort((a, b) => (isAfter(a, b) ? 1 : isAfter(b, a) ? -1 : a - b))
    return
  }
  for (let at = start + 1; at < end; at++) {
    const row = rows[at]!
    let to = at
    while (to > start && isAfter(rows[to - 1]!, row)) {
      rows[to] = rows[to - 1]!
      to--
    }
    rows[to] = row
  }
}
