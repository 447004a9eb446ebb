// Cells of 5 minutes and of 1 hour, a function of the de-duplicated raw samples: whatever was sent again, late or out of order, a
// cell that is computed again is right again (decision G-136). A cell is stored once it has ended; until then queries read its raw
// samples. Where all its samples passed through this process in order it is taken from there (core/samples/open-cells.ts), for a
// tenth of what it costs to read them again; every other is computed from the raw samples. What arrives for a cell that has ended is
// noted in rollup_late and computed again.
import { assert } from '../../../core/assert.ts'
import { cellMs } from '../../../core/query/query-plan.ts'
import { CellBlockWriter } from '../../../core/samples/cell-block.ts'
import type { CellStream } from '../../../core/samples/cell-stream.ts'
import { type LateCell, writeLateBlock } from '../../../core/samples/late-block.ts'
import { NativeWriter } from '../../../core/samples/native-block.ts'
import type { CellsOfStart } from '../../../core/samples/open-cells.ts'
import { RUN_SPAN_MS } from '../../../core/samples/point-run.ts'
import { sha256Hex } from '../../../core/series/hash.ts'
import type { ClickHouse } from './clickhouse.ts'

export type Completeness = { readonly '5m': number; readonly '1h': number }

/** Samples on their way when a cell ends get this long before it is computed; later ones are late. */
const GRACE_MS = 60_000
/** A pass computes at most a UTC day at once, so that a long stop is caught up in bounded steps, and no partition is read twice. */
const DAY_MS = 86_400_000
const LATE_BATCHES_MAX = 500
const DENSE = 3
const BATCH_NAME_LENGTH = 32

const INSTANT = (name: string): string => `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`
const SETTINGS =
  'SETTINGS do_not_merge_across_partitions_select_final = 1, optimize_aggregation_in_order = 1, max_threads = 1, max_insert_threads = 1'

/** What lies in [from, to): cells, points, and the rows that points may be in. */
const CELLS_BETWEEN = `ts >= ${INSTANT('from')} AND ts < ${INSTANT('to')}`
const POINTS_BETWEEN = 'time >= {from:Int64} AND time < {to:Int64}'
const ROWS_BETWEEN = `ts > fromUnixTimestamp64Milli({from:Int64} - ${RUN_SPAN_MS}, 'UTC') AND ts < ${INSTANT('to')}`

const COLUMNS =
  'company_id, server_id, series_id, ts, count, last_after, decimals, last_digits, below, above, beside, version'

/**
 * Cells as they are stored (sql/samples/0002_decimals.sql), from groups that name their values `places`, `samples`, `newest`, `newest_ts`,
 * `low`, `high`, `total`. Decimals are exact up to 2^50; beyond that, and where one value is no decimal, a cell keeps the bits.
 */
const insertCells = (db: string, cell: '5m' | '1h', groups: string): string => `
INSERT INTO ${db}.rollup_${cell} (${COLUMNS})
WITH if(greatest(abs(low), abs(high)) * samples * intExp10(places) <= 1125899906842624, places, 255) AS d,
     ((x, p) -> if(p = 255, reinterpretAsInt64(x), toInt64(round(x * intExp10(p))))) AS digits_of,
     digits_of(newest, d) AS newest_digits
SELECT company_id, server_id, series_id, cell, samples, toUnixTimestamp64Milli(newest_ts) - toUnixTimestamp64Milli(cell), d, newest_digits,
       newest_digits - digits_of(low, d), digits_of(high, d) - newest_digits,
       digits_of(total, d) - newest_digits * samples, {version:UInt64}
FROM (${groups}) ${SETTINGS}`

/** As `splitDecimal` finds them (core/samples/decimal.ts). */
const DECIMALS_OF = `(x -> multiIf(abs(x) <= 9007199254740992 AND round(x) = x, 0, abs(x) <= 90071992547409 AND round(x * 100) / 100 = x, 2,
                abs(x) <= 900719925474 AND round(x * 10000) / 10000 = x, 4, abs(x) <= 9007199254 AND round(x * 1000000) / 1000000 = x, 6, 255))`

/**
 * Raw samples as 5-minute cells, of the rows and then the points for which the conditions hold; `time` is the time of a point in ms. A cell's
 * points are gathered in the order of the table, and of those of one time the newest is kept: no more than a few series are in
 * memory at once.
 */
const cellsOfRaw = (db: string, ofRows: string, ofPoints: string): string =>
  insertCells(
    db,
    '5m',
    `WITH ${DECIMALS_OF} AS decimals_of,
          arraySort(found) AS ordered,
          arrayFilter((each, next) -> each.1 != next, ordered, arrayPushBack(arrayPopFront(ordered.1), 0)) AS once
     SELECT company_id, server_id, series_id, fromUnixTimestamp64Milli(cell_ms, 'UTC') AS cell, toUInt32(length(once)) AS samples,
            arrayReduce('sumKahan', once.3) AS total, arrayMin(once.3) AS low, arrayMax(once.3) AS high, once.3[-1] AS newest,
            fromUnixTimestamp64Milli(once.1[-1], 'UTC') AS newest_ts, toUInt8(arrayMax(arrayMap(decimals_of, once.3))) AS places
     FROM (
       SELECT company_id, server_id, series_id, intDiv(time, 300000) * 300000 AS cell_ms, groupArray((time, seq, point)) AS found
       FROM ${db}.samples_runs ARRAY JOIN times AS time, values AS point
       WHERE ${ofRows} AND ${ofPoints}
       GROUP BY company_id, server_id, series_id, cell_ms
     )`,
  )

/** 5-minute cells of `where` as 1-hour cells. */
const hoursOfCells = (db: string, where: string): string =>
  insertCells(
    db,
    '1h',
    `SELECT company_id, server_id, series_id, hour AS cell, toUInt32(sum(cell_count)) AS samples, sumKahan(cell_sum) AS total,
       min(cell_min) AS low, max(cell_max) AS high, argMax(cell_last, cell_last_ts) AS newest,
       max(cell_last_ts) AS newest_ts, max(decimals) AS places
     FROM (
       SELECT company_id, server_id, series_id, count AS cell_count, sum AS cell_sum, min AS cell_min, max AS cell_max,
              last AS cell_last, last_ts AS cell_last_ts, decimals,
              fromUnixTimestamp64Milli(intDiv(toUnixTimestamp64Milli(ts), 3600000) * 3600000, 'UTC') AS hour
       FROM ${db}.rollup_5m FINAL PREWHERE ${where}
     )
     GROUP BY company_id, server_id, series_id, cell`,
  )

/** Notes cells to compute again. The same batch a second time changes nothing: the store takes its block once. */
export async function insertLateCells(store: ClickHouse, batch: string, cells: readonly LateCell[]): Promise<void> {
  const writer = new NativeWriter()
  // The token names a range of each partition: a digest of it keeps the statements short that name many batches.
  writeLateBlock(writer, sha256Hex(batch).slice(0, BATCH_NAME_LENGTH), cells)
  await store.insertBlock('rollup_late', writer.finish(), batch)
}

/** No sample that is stored is newer than this instant; minus infinity in a new store. */
export async function newestSampleMs(store: ClickHouse): Promise<number> {
  const { database } = store
  const [row] = await store.rows(
    `SELECT count(), toFloat64(toUnixTimestamp64Milli(max(ts))) FROM ${database}.samples_raw`,
  )
  const [count, newestRowMs] = [Number(row?.[0]), Number(row?.[1])]
  if (count === 0) return Number.NEGATIVE_INFINITY
  // The partitions know when the newest row begins.
  const [newest] = await store.rows(
    `SELECT toFloat64(max(times[-1])) FROM ${database}.samples_runs
     WHERE ts > ${INSTANT('since')}`,
    { since: newestRowMs - RUN_SPAN_MS },
  )
  return Number(newest?.[0])
}

/** Up to where the cells of each width are complete. Zero in a new store. */
export async function readCompleteness(store: ClickHouse): Promise<Completeness> {
  const rows = await store.rows(
    `SELECT cell, toFloat64(toUnixTimestamp64Milli(max(complete_before))) FROM ${store.database}.rollup_progress GROUP BY cell`,
  )
  const of = (cell: string): number => Number(rows.find(row => row[0] === cell)?.[1] ?? 0)
  return { '5m': of('5m'), '1h': of('1h') }
}

async function writeCompleteness(store: ClickHouse, cell: '5m' | '1h', completeMs: number): Promise<void> {
  await store.command(`INSERT INTO ${store.database}.rollup_progress SELECT {cell:String}, ${INSTANT('complete')}`, {
    cell,
    complete: completeMs,
  })
}

/** The start of the oldest raw sample's cell, where a store without progress begins. */
async function oldestSampleMs(store: ClickHouse): Promise<number | null> {
  const rows = await store.rows(
    `SELECT count(), toFloat64(toUnixTimestamp64Milli(min(ts))) FROM ${store.database}.samples_raw`,
  )
  const [count, oldestMs] = rows[0] ?? []
  return Number(count) === 0 ? null : Number(oldestMs)
}

/** Of a cell that is computed for the first time. The same for all, so that it takes no room. */
const FIRST_VERSION = 0

/** Versions grow, also when the clock is set back between two passes of one process. */
let lastVersion = 0
const nextVersion = (nowMs: number): number => {
  lastVersion = Math.max(nowMs, lastVersion + 1)
  return lastVersion
}

/** Up to where a pass at `nowMs` computes cells for the first time, when everything received before `arrivedBeforeMs` is stored. */
export function computableBeforeMs(nowMs: number, arrivedBeforeMs: number): number {
  return Math.max(0, Math.floor((Math.min(nowMs, arrivedBeforeMs) - GRACE_MS) / cellMs['5m']) * cellMs['5m'])
}

/**
 * Stores the cells that have ended and those that late samples touched. Returns up to where all is complete. Cells wait while samples
 * that were received before their end still wait on the bus: so a backlog costs what it would have cost in time. Cells of `stream` are
 * those whose samples passed through this process.
 */
export async function runRollups(
  store: ClickHouse,
  nowMs: number,
  arrivedBeforeMs = nowMs,
  stream: CellStream | null = null,
): Promise<Completeness> {
  const known = await readCompleteness(store)
  const fine = await completeCells(store, '5m', known['5m'], computableBeforeMs(nowMs, arrivedBeforeMs), stream)
  const coarse = await completeCells(store, '1h', known['1h'], fine, stream)
  const complete = { '5m': fine, '1h': coarse }
  while (await computeLate(store, complete, nowMs));
  return complete
}

/** Stores the cells of one width that end by `untilMs`: those of the stream start by start, others in spans. */
async function completeCells(
  store: ClickHouse,
  cell: '5m' | '1h',
  completeMs: number,
  untilMs: number,
  stream: CellStream | null,
): Promise<number> {
  const width = cellMs[cell]
  const end = Math.floor(untilMs / width) * width
  if (end === 0) return completeMs
  let start = completeMs
  if (start === 0) {
    const oldestMs = await oldestSampleMs(store)
    start = oldestMs === null ? end : Math.min(end, Math.floor(oldestMs / width) * width)
  }
  while (start < end) {
    let next = start + width
    if (stream?.[cell].isWhole(start)) await storeCells(store, cell, start, stream)
    else {
      next = Math.min(end, (Math.floor(start / DAY_MS) + 1) * DAY_MS, stream?.[cell].fromMs ?? end)
      await computeCells(store, cell, start, next)
      stream?.distrustBefore(next)
    }
    await writeCompleteness(store, cell, next)
    start = next
  }
  if (completeMs === 0 && start === end) await writeCompleteness(store, cell, end)
  return Math.max(completeMs, end)
}

/** Computes cells that start in [fromMs, toMs) from the raw samples, or hours from their cells. */
async function computeCells(store: ClickHouse, cell: '5m' | '1h', fromMs: number, toMs: number): Promise<void> {
  const db = store.database
  const sql = cell === '5m' ? cellsOfRaw(db, ROWS_BETWEEN, POINTS_BETWEEN) : hoursOfCells(db, CELLS_BETWEEN)
  await store.command(sql, { from: fromMs, to: toMs, version: FIRST_VERSION })
}

/** Stores the cells of the stream that start at `startMs`. Those that it has not exactly are noted as late: this pass computes them. */
async function storeCells(store: ClickHouse, cell: '5m' | '1h', startMs: number, stream: CellStream): Promise<void> {
  const cells = stream[cell].take(startMs)
  const endMs = startMs + cellMs[cell]
  try {
    const computed = [...cells.machines.values()].filter(({ isRaw }) => isRaw)
    // Most of the rows must be read: then it costs less to read them all.
    if (computed.length * DENSE > cells.machines.size) await computeCells(store, cell, startMs, endMs)
    else {
      await insertCellBlocks(store, cell, cells)
      const late = computed.map(({ companyId, serverId }) => ({ companyId, serverId, startMs }))
      if (late.length > 0) await insertLateCells(store, `cells-${crypto.randomUUID()}`, late)
    }
  } catch (error) {
    // They are out of the stream now: the next pass computes them.
    stream.distrustBefore(endMs)
    throw error
  }
  if (cell === '5m') stream.passOn(cells)
  stream[cell].release(cells)
}

async function insertCellBlocks(store: ClickHouse, cell: '5m' | '1h', cells: CellsOfStart): Promise<void> {
  const writer = new CellBlockWriter()
  for (const rows of writer.write(cells, FIRST_VERSION))
    await store.insertBlock(`rollup_${cell}`, writer.block(), `cells-${rows}-${crypto.randomUUID()}`)
}

/** Computes cells that were touched after they ended, and their hours. Returns false when there are none left. */
async function computeLate(store: ClickHouse, complete: Completeness, nowMs: number): Promise<boolean> {
  const db = store.database
  const found = await store.rows(`SELECT DISTINCT batch FROM ${db}.rollup_late LIMIT ${LATE_BATCHES_MAX}`)
  if (found.length === 0) return false
  const batches = found.map(row => String(row[0]))
  const [range] = await store.rows(
    `SELECT toFloat64(toUnixTimestamp64Milli(min(ts))), toFloat64(toUnixTimestamp64Milli(max(ts))),
            toFloat64(uniqExact(company_id, server_id, ts)), toFloat64(uniqExact(company_id, server_id)) FROM ${db}.rollup_late WHERE batch IN {batches:Array(String)}`,
    { batches },
  )
  const [firstMs, lastMs, cellCount, machineCount] = [0, 1, 2, 3].map(column => Number(range?.[column]))
  assert(
    firstMs !== undefined && lastMs !== undefined && cellCount !== undefined && machineCount !== undefined,
    'a row of four',
  )
  // Where most of what lies between was touched, all of it is computed: to find the rest of the rows costs more than to do so.
  const isDense = cellCount * DENSE >= machineCount * ((lastMs - firstMs) / cellMs['5m'] + 1)
  const touched = (columns: string): string =>
    `(SELECT ${columns} FROM ${db}.rollup_late WHERE batch IN {batches:Array(String)})`
  const owner = `(company_id, server_id) IN ${touched('company_id, server_id')}`
  const cellStart = (width: number, time: string): string => `intDiv(${time}, ${width}) * ${width}`
  const TS = 'toUnixTimestamp64Milli(ts)'
  // Cells that the regular pass has yet to reach are left to it.
  const touchedCells = (width: number, time: string): string =>
    isDense
      ? ''
      : ` AND (company_id, server_id, ${cellStart(width, time)}) IN ${touched(`company_id, server_id, ${cellStart(width, TS)}`)}`
  for (const cell of ['5m', '1h'] as const) {
    const width = cellMs[cell]
    const from = Math.floor(firstMs / width) * width
    const to = Math.min(complete[cell], Math.floor(lastMs / width) * width + width)
    if (from >= to) continue
    const sql =
      cell === '5m'
        ? cellsOfRaw(db, `${ROWS_BETWEEN} AND ${owner}`, `${POINTS_BETWEEN}${touchedCells(width, 'time')}`)
        : hoursOfCells(db, `${CELLS_BETWEEN} AND ${owner}${touchedCells(width, TS)}`)
    await store.command(sql, { batches, from, to, version: nextVersion(nowMs) })
  }
  await store.command(
    `DELETE FROM ${db}.rollup_late WHERE batch IN {batches:Array(String)} SETTINGS lightweight_deletes_sync = 2`,
    { batches },
  )
  return true
}
