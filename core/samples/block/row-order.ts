// Sorts rows by (owner, series, time), stable. Rows arrive server by server, a few hundred at a time, and servers of
// one kind send the same series in the same order. So rows are first grouped by owner. For each owner an order that was
// right for an earlier owner with similar rows is tried, and used when it is right here too. Otherwise a counting sort
// on the top bits of the series id and a nearly finished insertion sort put them in order. This is cheaper than letting
// the engine compare UUIDs row by row.

/** The columns by which rows are ordered. */
export type OrderColumns = {
  readonly owner: Uint32Array
  readonly idLo: Uint32Array
  readonly idHi: Uint32Array
  readonly tsMs: Float64Array
}

/** `rows` takes the result; `spare` is working memory of the same length. */
export class RowOrder {
  rows = new Uint32Array(0)
  spare = new Uint32Array(0)
  readonly counts: Uint32Array = new Uint32Array(65_536)
  /** Working memory into which two sorted ranges are merged. */
  merged = new Uint32Array(0)
  /** Orders that were right for recent owners, as permutations, by a hash of the first, middle and last row. */
  readonly known: (Uint16Array | undefined)[] = new Array(KNOWN_ORDERS)

  /** Makes room for so many rows. */
  reserve(length: number): void {
    if (this.rows.length >= length) return
    this.rows = new Uint32Array(length)
    this.spare = new Uint32Array(length)
  }
}

/** Ranges up to this length are sorted by insertion; longer ones (one series with many points) are merged. */
const INSERTION_MAX = 32
/**
 * Up to this many rows the top 8 bits of an id separate the series of an owner well enough; above it 16 bits are used.
 */
const FEW_ROWS = 2_048
const FEW_SHIFT = 24
const MANY_SHIFT = 16
const KNOWN_ORDERS = 4_096
const SIGN = 0x8000_0000

/**
 * Orders rows 0 … count - 1 into `order.rows`, owner by owner. Yields the begin and end of each owner's rows once they
 * are in order; the caller may then overwrite everything before them. `ranks` gives the rank of each owner.
 */
export function* orderRows(
  columns: OrderColumns,
  count: number,
  ranks: Uint32Array,
  order: RowOrder,
): Generator<{ readonly begin: number; readonly end: number }, void> {
  const ends = new Uint32Array(ranks.length)
  groupByOwner(columns.owner, count, ranks, order.spare, ends)
  let begin = 0
  for (let rank = 0; rank < ends.length; rank++) {
    const end = ends[rank]!
    if (end > begin) {
      orderOwner(columns, order, begin, end)
      yield { begin, end }
    }
    begin = end
  }
}

function orderOwner(columns: OrderColumns, order: RowOrder, begin: number, end: number): void {
  const { idLo } = columns
  const { spare, known } = order
  const look = idLo[spare[begin]!]! ^ (idLo[spare[(begin + end) >>> 1]!]! << 1) ^ idLo[spare[end - 1]!]! ^ (end - begin)
  const place = look & (KNOWN_ORDERS - 1)
  if (takeKnownOrder(columns, order, begin, end, known[place])) return
  sortOwner(columns, order, begin, end)
  if (end - begin <= FEW_ROWS) known[place] = takenOrder(order, begin, end)
}

/**
 * Puts rows [begin, end) into an order that was right for an earlier owner; false when it is not right for these rows.
 */
function takeKnownOrder(
  { idHi, idLo, tsMs }: OrderColumns,
  { rows, spare }: RowOrder,
  begin: number,
  end: number,
  order: Uint16Array | undefined,
): boolean {
  if (order?.length !== end - begin) return false
  let last = spare[begin + order[0]!]!
  rows[begin] = last
  for (let at = 1; at < order.length; at++) {
    const row = spare[begin + order[at]!]!
    // Compared as signed words, which costs half as much.
    const hi = idHi[row]! ^ SIGN
    const lastHi = idHi[last]! ^ SIGN
    if (hi <= lastHi) {
      if (hi < lastHi) return false
      const lo = idLo[row]! ^ SIGN
      const lastLo = idLo[last]! ^ SIGN
      if (lo < lastLo) return false
      if (lo === lastLo && (tsMs[row]! < tsMs[last]! || (tsMs[row] === tsMs[last] && row < last))) return false
    }
    rows[begin + at] = row
    last = row
  }
  return true
}

/** The order of rows [begin, end) as a permutation of `spare`, which has them in the order of arrival. */
function takenOrder({ rows, spare }: RowOrder, begin: number, end: number): Uint16Array {
  const order = new Uint16Array(end - begin)
  for (let at = 0; at < order.length; at++) {
    const row = rows[begin + at]!
    let low = begin
    for (let high = end; high - low > 1; ) {
      const middle = (low + high) >>> 1
      if (spare[middle]! <= row) low = middle
      else high = middle
    }
    order[at] = low - begin
  }
  return order
}

/** Groups the rows into `into` by the rank of their owner; `ends` receives the end of each group. */
function groupByOwner(
  owner: Uint32Array,
  count: number,
  ranks: Uint32Array,
  into: Uint32Array,
  ends: Uint32Array,
): void {
  const runEnd = (from: number): number => {
    let row = from + 1
    while (row < count && owner[row] === owner[from]) row++
    return row
  }
  for (let row = 0, next = 0; row < count; row = next) {
    next = runEnd(row)
    ends[ranks[owner[row]!]!]! += next - row
  }
  startsOf(ends, ends.length, 0)
  for (let row = 0, next = 0; row < count; ) {
    next = runEnd(row)
    const rank = ranks[owner[row]!]!
    let at = ends[rank]!
    while (row < next) into[at++] = row++
    ends[rank] = at
  }
}

/** Replaces the first `length` counts by start offsets, beginning with `first`. */
function startsOf(counts: Uint32Array, length: number, first: number): void {
  let start = first
  for (let digit = 0; digit < length; digit++) {
    const count = counts[digit]!
    counts[digit] = start
    start += count
  }
}

/** Orders rows [begin, end), all of one owner, from `spare` into `rows`. */
function sortOwner(columns: OrderColumns, order: RowOrder, begin: number, end: number): void {
  const { idHi } = columns
  const { rows, spare, counts } = order
  const shift = end - begin <= FEW_ROWS ? FEW_SHIFT : MANY_SHIFT
  const digits = 2 ** (32 - shift)
  for (let digit = 0; digit < digits; digit++) counts[digit] = 0
  for (let at = begin; at < end; at++) counts[idHi[spare[at]!]! >>> shift]!++
  startsOf(counts, digits, begin)
  for (let at = begin; at < end; at++) {
    const row = spare[at]!
    rows[counts[idHi[row]! >>> shift]!++] = row
  }
  // Each range of rows that agree in the top bits of the id is then ordered by the whole id and the time.
  for (let start = begin; start < end; ) {
    const digit = idHi[rows[start]!]! >>> shift
    let next = start + 1
    while (next < end && idHi[rows[next]!]! >>> shift === digit) next++
    if (next - start > 1) orderRun(columns, order, start, next)
    start = next
  }
}

/**
 * Orders rows [start, end), which agree in the top bits of the id. Equal rows keep the order of arrival, so that the
 * last of them can win.
 */
function orderRun(columns: OrderColumns, order: RowOrder, start: number, end: number): void {
  if (end - start > INSERTION_MAX) {
    mergeRuns(columns, order, start, end)
    return
  }
  const { rows } = order
  for (let at = start + 1; at < end; at++) {
    const row = rows[at]!
    let to = at
    while (to > start && isAfter(columns, rows[to - 1]!, row)) {
      rows[to] = rows[to - 1]!
      to--
    }
    rows[to] = row
  }
}

function isAfter({ idHi, idLo, tsMs }: OrderColumns, a: number, b: number): boolean {
  if (idHi[a] !== idHi[b]) return idHi[a]! > idHi[b]!
  if (idLo[a] !== idLo[b]) return idLo[a]! > idLo[b]!
  return tsMs[a]! > tsMs[b]!
}

/**
 * Finds ranges that are already in order and merges them in pairs until one is left: points of a series mostly come in
 * order of time.
 */
function mergeRuns(columns: OrderColumns, order: RowOrder, start: number, end: number): void {
  const { rows } = order
  let begins = [start]
  for (let at = start + 1; at < end; at++) if (isAfter(columns, rows[at - 1]!, rows[at]!)) begins.push(at)
  if (begins.length === 1) return
  if (order.merged.length < end - start) order.merged = new Uint32Array(end - start)
  while (begins.length > 1) {
    const next: number[] = []
    for (let run = 0; run < begins.length; run += 2) {
      next.push(begins[run]!)
      if (run + 1 < begins.length) mergeTwo(columns, order, begins[run]!, begins[run + 1]!, begins[run + 2] ?? end)
    }
    begins = next
  }
}

/** Merges rows [start, middle) and [middle, end). */
function mergeTwo(columns: OrderColumns, { rows, merged }: RowOrder, start: number, middle: number, end: number): void {
  let left = start
  let right = middle
  let count = 0
  while (left < middle && right < end)
    merged[count++] = isAfter(columns, rows[left]!, rows[right]!) ? rows[right++]! : rows[left++]!
  // The rest of the right range is already in its place.
  while (left < middle) merged[count++] = rows[left++]!
  rows.set(merged.subarray(0, count), start)
}
