// Cells of 5 minutes and of 1 hour, a function of the de-duplicated raw samples: whatever was sent again, late or out
// of order, a cell that is computed again is right again (decision G-136). A cell is stored once it has ended; until
// then queries read its raw samples. Where all its samples passed through this process in order it is taken from there
// (core/samples/rollup/open-cells.ts), for a tenth of what it costs to read them again; every other is computed from
// the raw samples. What arrives for a cell that has ended is noted in rollup_late and computed again. Cells of 5
// minutes are computed here (core/samples/rollup/raw-cells.ts), for a fraction of what it costs the engine to take runs
// apart and to group their points; hours are computed from them by the engine.
import { assert } from '../../../../core/assert.ts'
import { CellBlockWriter } from '../../../../core/samples/block/cell-block.ts'
import { CellColumns } from '../../../../core/samples/block/cell-columns.ts'
import { CHUNK_COLUMNS, CHUNK_SPAN_MS } from '../../../../core/samples/block/chunk-codec.ts'
import { type LateCell, writeLateBlock } from '../../../../core/samples/block/late-block.ts'
import { NativeReader } from '../../../../core/samples/block/native-reader.ts'
import { NativeWriter } from '../../../../core/samples/block/native-writer.ts'
import { serverWords } from '../../../../core/samples/block/uuid-words.ts'
import type { CellStream } from '../../../../core/samples/rollup/cell-stream.ts'
import { cellMs } from '../../../../core/samples/rollup/cell-width.ts'
import { computableBeforeMs } from '../../../../core/samples/rollup/computable-before.ts'
import type { CellOwner, CellsOfStart } from '../../../../core/samples/rollup/open-cells.ts'
import { RawCells } from '../../../../core/samples/rollup/raw-cells.ts'
import { sha256Hex } from '../../../../core/series/hash.ts'
import { runYielding } from '../../yield-if-due.ts'
import type { ClickHouse, QueryParams } from './clickhouse.ts'
import { deleteSettings, storedTable } from './cluster.ts'

export type Completeness = { readonly '5m': number; readonly '1h': number }

/**
 * A pass computes at most a UTC day at once, so that a long stop is caught up in bounded steps, and no partition is
 * read twice.
 */
const DAY_MS = 86_400_000
const LATE_BATCHES_MAX = 500
const DENSE = 3
/**
 * The points of a piece, which are in memory together (about 60 bytes each with their columns), and the servers that
 * one statement names.
 */
const PIECE_POINTS = 400_000
const PIECE_SERVERS = 4_000
const BATCH_NAME_LENGTH = 32

const INSTANT = (name: string): string => `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`
const SETTINGS =
  'SETTINGS do_not_merge_across_partitions_select_final = 1, optimize_aggregation_in_order = 1, max_threads = 1, max_insert_threads = 1'

/** Rows that start in [from, to): cells, or chunks that may have points there. */
const CELLS_BETWEEN = `ts >= ${INSTANT('from')} AND ts < ${INSTANT('to')}`
const ROWS_BETWEEN = `ts > fromUnixTimestamp64Milli({from:Int64} - ${CHUNK_SPAN_MS}, 'UTC') AND ts < ${INSTANT('to')}`

const COLUMNS =
  'company_id, server_id, series_id, ts, count, last_after, decimals, last_digits, below, above, beside, version'

/**
 * 5-minute cells of `where` as 1-hour cells, as they are stored (sql/samples/0002_decimals.sql). Decimals are exact up
 * to 2^50; beyond that, and where one value is no decimal, a cell keeps the bits.
 */
const insertHours = (db: string, where: string): string => `
INSERT INTO ${db}.rollup_1h (${COLUMNS})
WITH if(greatest(abs(low), abs(high)) * samples * intExp10(places) <= 1125899906842624, places, 255) AS d,
     ((x, p) -> if(p = 255, reinterpretAsInt64(x), toInt64(round(x * intExp10(p))))) AS digits_of,
     digits_of(newest, d) AS newest_digits
SELECT company_id, server_id, series_id, cell, samples, toUnixTimestamp64Milli(newest_ts) - toUnixTimestamp64Milli(cell), d, newest_digits,
       newest_digits - digits_of(low, d), digits_of(high, d) - newest_digits,
       digits_of(total, d) - newest_digits * samples, {version:UInt64}
FROM (
  SELECT company_id, server_id, series_id, hour AS cell, toUInt32(sum(cell_count)) AS samples, sumKahan(cell_sum) AS total,
    min(cell_min) AS low, max(cell_max) AS high, argMax(cell_last, cell_last_ts) AS newest,
    max(cell_last_ts) AS newest_ts, max(decimals) AS places
  FROM (
    SELECT company_id, server_id, series_id, count AS cell_count, sum AS cell_sum, min AS cell_min, max AS cell_max,
           last AS cell_last, last_ts AS cell_last_ts, decimals,
           fromUnixTimestamp64Milli(intDiv(toUnixTimestamp64Milli(ts), 3600000) * 3600000, 'UTC') AS hour
    FROM ${db}.rollup_5m FINAL PREWHERE ${where}
  )
  GROUP BY company_id, server_id, series_id, cell
) ${SETTINGS}`

/**
 * Notes cells that must be computed again. The same batch a second time changes nothing: the store inserts a block
 * once.
 */
export async function insertLateCells(store: ClickHouse, batch: string, cells: readonly LateCell[]): Promise<void> {
  const writer = new NativeWriter()
  // The token names a range of each partition: a digest of it keeps the statements short that name many batches.
  writeLateBlock(writer, sha256Hex(batch).slice(0, BATCH_NAME_LENGTH), cells)
  await store.insertBlock('rollup_late', writer.finish(), batch)
}

/** The cells that must be computed again: the oldest of each server. */
export async function lateCells(store: ClickHouse): Promise<LateCell[]> {
  const rows = await store.rows(
    `SELECT company_id, server_id, toFloat64(toUnixTimestamp64Milli(min(ts))) FROM ${store.database}.rollup_late
     GROUP BY company_id, server_id`,
  )
  return rows.map(([companyId, serverId, startMs]) => ({
    companyId: String(companyId),
    serverId: String(serverId),
    startMs: Number(startMs),
  }))
}

/** The time of the newest stored sample (minus infinity in a new store), and the highest `seq` of recent blocks. */
export async function newestStored(store: ClickHouse): Promise<{ readonly ms: number; readonly seq: number }> {
  const { database } = store
  const [row] = await store.rows(
    `SELECT count(), toFloat64(toUnixTimestamp64Milli(max(ts))) FROM ${database}.samples_raw`,
  )
  const [count, newestRowMs] = [Number(row?.[0]), Number(row?.[1])]
  if (count === 0) return { ms: Number.NEGATIVE_INFINITY, seq: 0 }
  // The partitions know when the newest row begins.
  const [newest] = await store.rows(
    `SELECT toFloat64(max(times[-1])), toFloat64(max(seq)) FROM ${database}.samples_runs WHERE ts > ${INSTANT('since')}`,
    { since: newestRowMs - CHUNK_SPAN_MS },
  )
  return { ms: Number(newest?.[0]), seq: Number(newest?.[1]) }
}

/** The time up to which the cells of each width are complete. Zero in a new store. */
export async function readCompleteness(store: ClickHouse): Promise<Completeness> {
  const rows = await store.rows(
    `SELECT cell, toFloat64(toUnixTimestamp64Milli(max(complete_before))) FROM ${store.database}.rollup_progress GROUP BY cell`,
  )
  const of = (cell: string): number => Number(rows.find(row => row[0] === cell)?.[1] ?? 0)
  return { '5m': of('5m'), '1h': of('1h') }
}

/**
 * The time up to which a pass has computed 5-minute cells, or is about to. The claim stands beside the progress, so
 * that workers of before go by that alone.
 */
export async function readClaim(store: ClickHouse): Promise<number> {
  const [row] = await store.rows(
    `SELECT toFloat64(toUnixTimestamp64Milli(max(complete_before))) FROM ${store.database}.rollup_progress WHERE cell IN ('5m', 'claimed')`,
  )
  return Number(row?.[0] ?? 0)
}

/** Written before a pass reads raw samples. */
export const writeClaim = (store: ClickHouse, claimedMs: number): Promise<void> =>
  writeProgress(store, 'claimed', claimedMs)

async function writeProgress(
  store: ClickHouse,
  cell: '5m' | '1h' | 'version' | 'claimed',
  value: number,
): Promise<void> {
  await store.command(`INSERT INTO ${store.database}.rollup_progress SELECT {cell:String}, ${INSTANT('value')}`, {
    cell,
    value,
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

/** The version of every cell that is computed for the first time; the column compresses to almost nothing. */
const FIRST_VERSION = 0

/**
 * A new version is always higher, even when the clock was set back or another worker computes: the last version is
 * stored beside the progress.
 */
async function nextVersion(store: ClickHouse, nowMs: number): Promise<number> {
  const [row] = await store.rows(
    `SELECT toFloat64(toUnixTimestamp64Milli(max(complete_before))) FROM ${store.database}.rollup_progress WHERE cell = 'version'`,
  )
  const version = Math.max(nowMs, Number(row?.[0]) + 1)
  await writeProgress(store, 'version', version)
  return version
}

/**
 * Stores the cells that have ended and those that late samples touched. Returns up to where all is complete. Cells wait
 * while samples that were received before their end still wait on the bus: so a backlog costs what it would have cost
 * in time. Cells of `stream` are those whose samples passed through this process.
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
    await writeProgress(store, cell, next)
    start = next
  }
  if (completeMs === 0 && start === end) await writeProgress(store, cell, end)
  return Math.max(completeMs, end)
}

/** Computes cells that start in [fromMs, toMs) from the raw samples, or hours from their cells. */
async function computeCells(store: ClickHouse, cell: '5m' | '1h', fromMs: number, toMs: number): Promise<void> {
  if (cell === '5m') await computeRaw(store, { fromMs, toMs, version: FIRST_VERSION })
  else
    await store.command(insertHours(store.database, CELLS_BETWEEN), {
      from: fromMs,
      to: toMs,
      version: FIRST_VERSION,
    })
}

/** 5-minute cells that start in [fromMs, toMs); with `late` only those that the late batches touched. */
type RawRange = {
  readonly fromMs: number
  readonly toMs: number
  readonly version: number
  readonly late?: { readonly batches: readonly string[]; readonly isDense: boolean }
}

/** Servers whose points are in memory together, and about how many points they are. */
type RawPiece = { readonly servers: readonly CellOwner[]; readonly points: number }

/** A subquery for the late cells of the batches. */
const touchedBy = (db: string, columns: string): string =>
  `(SELECT ${columns} FROM ${db}.rollup_late WHERE batch IN {batches:Array(String)})`
const OWNER_IS_LATE = (db: string): string => `(company_id, server_id) IN ${touchedBy(db, 'company_id, server_id')}`

/** Rows with points of the range; for single cells only the rows that may have points of those cells. */
function rowsOf(db: string, { late }: RawRange): string {
  if (!late) return ROWS_BETWEEN
  if (late.isDense) return `${ROWS_BETWEEN} AND ${OWNER_IS_LATE(db)}`
  // A run has points of the cell in which it begins and of the next ones.
  const begins = Array.from({ length: CHUNK_SPAN_MS / cellMs['5m'] + 1 }, (_, cell) => cell * cellMs['5m'])
  const cells = `(SELECT company_id, server_id, toUnixTimestamp64Milli(ts) - before FROM ${db}.rollup_late
    ARRAY JOIN [${begins.join(', ')}] AS before WHERE batch IN {batches:Array(String)})`
  const begin = `intDiv(toUnixTimestamp64Milli(ts), ${cellMs['5m']}) * ${cellMs['5m']}`
  return `${ROWS_BETWEEN} AND ${OWNER_IS_LATE(db)} AND (company_id, server_id, ${begin}) IN ${cells}`
}

const paramsOf = ({ fromMs, toMs, late }: RawRange): QueryParams => ({
  from: fromMs,
  to: toMs,
  ...(late && { batches: late.batches }),
})

/** Computes 5-minute cells from the raw samples, a few servers at a time. */
async function computeRaw(store: ClickHouse, range: RawRange): Promise<void> {
  const memory = { cells: new RawCells(), columns: new CellColumns(), writer: new NativeWriter() }
  for (const piece of await piecesOf(store, range)) await computePiece(store, range, piece, memory)
}

/** The buffers that the pieces reuse one after the other. */
type RawMemory = { readonly cells: RawCells; readonly columns: CellColumns; readonly writer: NativeWriter }

async function piecesOf(store: ClickHouse, range: RawRange): Promise<RawPiece[]> {
  const { database } = store
  const rows = await store.rows(
    `SELECT company_id, server_id, sum(1 + if(shape != 0, bitAnd(bitShiftRight(shape, 16), 65535), reinterpretAsUInt16(substring(points, 11, 2))))
     FROM ${database}.samples_raw WHERE ${rowsOf(database, range)}
     GROUP BY company_id, server_id ORDER BY company_id, server_id SETTINGS max_threads = 1`,
    paramsOf(range),
  )
  const pieces: RawPiece[] = []
  let servers: CellOwner[] = []
  let points = 0
  for (const [companyId, serverId, count] of rows) {
    if (servers.length > 0 && (points + Number(count) > PIECE_POINTS || servers.length === PIECE_SERVERS)) {
      pieces.push({ servers, points })
      servers = []
      points = 0
    }
    servers.push({ companyId: String(companyId), serverId: String(serverId) })
    points += Number(count)
  }
  return servers.length > 0 ? [...pieces, { servers, points }] : pieces
}

async function computePiece(
  store: ClickHouse,
  range: RawRange,
  { servers, points }: RawPiece,
  memory: RawMemory,
): Promise<void> {
  const { fromMs, toMs } = range
  const spans = (toMs - fromMs) / cellMs['5m']
  const parts = Math.min(spans, Math.ceil(points / PIECE_POINTS))
  if (parts > 1) {
    // A single server with many points is split by time.
    const spanMs = Math.ceil(spans / parts) * cellMs['5m']
    for (let start = fromMs; start < toMs; start += spanMs)
      await computePiece(
        store,
        { ...range, fromMs: start, toMs: Math.min(toMs, start + spanMs) },
        { servers, points: Math.ceil(points / parts) },
        memory,
      )
    return
  }
  const owners = {
    companies: servers.map(({ companyId }) => companyId),
    servers: servers.map(({ serverId }) => serverId),
  }
  const { database } = store
  const isOwned = '(company_id, server_id) IN arrayZip({companies:Array(UUID)}, {servers:Array(UUID)})'
  const params = { ...paramsOf(range), ...owners }
  const starts = await startsOf(store, range, servers, isOwned, params)
  const bytes = await store.scan(
    `SELECT company_id, server_id, series_id, ts, seq, ${CHUNK_COLUMNS} FROM ${database}.samples_raw
     WHERE ${isOwned} AND ${rowsOf(database, range)} SETTINGS max_threads = 1`,
    params,
  )
  const { cells, columns, writer } = memory
  cells.begin({ fromMs, toMs, words: serverWords(servers), starts })
  columns.clear()
  await runYielding(cells.read(new NativeReader(bytes)))
  await runYielding(cells.addTo(columns))
  if (columns.rows === 0) return
  columns.write(writer, range.version)
  await store.insertBlock('rollup_5m', writer.finish(), `raw-${crypto.randomUUID()}`)
}

/** The cells to compute for each server; null for all of the range. */
async function startsOf(
  store: ClickHouse,
  { late }: RawRange,
  servers: readonly CellOwner[],
  isOwned: string,
  params: QueryParams,
): Promise<(Set<number> | null)[]> {
  if (!late || late.isDense) return servers.map(() => null)
  const rows = await store.rows(
    `SELECT DISTINCT company_id, server_id, toFloat64(toUnixTimestamp64Milli(ts)) FROM ${store.database}.rollup_late
     WHERE batch IN {batches:Array(String)} AND ${isOwned} AND ${CELLS_BETWEEN}`,
    params,
  )
  const starts = new Map(servers.map(({ companyId, serverId }) => [companyId + serverId, new Set<number>()]))
  for (const [companyId, serverId, startMs] of rows)
    starts.get(`${String(companyId)}${String(serverId)}`)?.add(Number(startMs))
  return [...starts.values()]
}

/**
 * Stores the cells of the stream that start at `startMs`. Cells that the stream does not have exactly are noted as
 * late, and this pass computes them.
 */
async function storeCells(store: ClickHouse, cell: '5m' | '1h', startMs: number, stream: CellStream): Promise<void> {
  const cells = stream[cell].take(startMs)
  const endMs = startMs + cellMs[cell]
  try {
    const computed = [...cells.servers.values()].filter(({ isRaw }) => isRaw)
    // Most of the rows must be read anyway, and reading all of them is then cheaper.
    if (computed.length * DENSE > cells.servers.size) await computeCells(store, cell, startMs, endMs)
    else {
      await insertCellBlocks(store, cell, cells)
      const late = computed.map(({ companyId, serverId }) => ({ companyId, serverId, startMs }))
      if (late.length > 0) await insertLateCells(store, `cells-${crypto.randomUUID()}`, late)
    }
  } catch (error) {
    // The cells were taken out of the stream already, so the next pass computes them from the raw samples.
    stream.distrustBefore(endMs)
    throw error
  }
  if (cell === '5m') await runYielding(stream.passingOn(cells))
  stream[cell].release(cells)
}

async function insertCellBlocks(store: ClickHouse, cell: '5m' | '1h', cells: CellsOfStart): Promise<void> {
  const writer = new CellBlockWriter()
  for (const rows of writer.write(cells, FIRST_VERSION))
    await store.insertBlock(`rollup_${cell}`, writer.block(), `cells-${rows}-${crypto.randomUUID()}`)
}

/** The 1-hour cells that contain a late cell; when `isDense`, those of all servers that have one. */
function lateHours(db: string, isDense: boolean): string {
  const hourOf = `intDiv(toUnixTimestamp64Milli(ts), ${cellMs['1h']}) * ${cellMs['1h']}`
  const touched = `(company_id, server_id, ${hourOf}) IN ${touchedBy(db, `company_id, server_id, ${hourOf}`)}`
  return `${CELLS_BETWEEN} AND ${OWNER_IS_LATE(db)}${isDense ? '' : ` AND ${touched}`}`
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
  const [firstMs, lastMs, cellCount, serverCount] = [0, 1, 2, 3].map(column => Number(range?.[column]))
  assert(
    firstMs !== undefined && lastMs !== undefined && cellCount !== undefined && serverCount !== undefined,
    'a row of four',
  )
  // When most of the cells in between were touched, all are computed: that costs less than finding the touched rows.
  const isDense = cellCount * DENSE >= serverCount * ((lastMs - firstMs) / cellMs['5m'] + 1)
  const version = await nextVersion(store, nowMs)
  for (const cell of ['5m', '1h'] as const) {
    const width = cellMs[cell]
    // Cells that the regular pass has yet to reach are left to it.
    const from = Math.floor(firstMs / width) * width
    const to = Math.min(complete[cell], Math.floor(lastMs / width) * width + width)
    if (from >= to) continue
    if (cell === '5m') await computeRaw(store, { fromMs: from, toMs: to, version, late: { batches, isDense } })
    else await store.command(insertHours(db, lateHours(db, isDense)), { batches, from, to, version })
  }
  await store.command(
    `DELETE FROM ${storedTable(store, 'rollup_late')} WHERE batch IN {batches:Array(String)} ${deleteSettings(store)}`,
    { batches },
  )
  return true
}
