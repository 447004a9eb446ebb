// The cells that samples still come for: packed they are what they were, and memory does not grow with what is packed
// anew.
import { expect, test } from 'bun:test'
import { BITS, splitDecimal } from '../../../core/samples/block/decimal.ts'
import type { WrittenPoints } from '../../../core/samples/block/sample-block.ts'
import { CellRows } from '../../../core/samples/rollup/cell-rows.ts'
import { type CellsOfStart, OpenCells, unpackServer } from '../../../core/samples/rollup/open-cells.ts'
import { packCells, packedBytesMax, unpackCells } from '../../../core/samples/rollup/packed-cells.ts'
import { randomFrom } from '../../support/random.ts'

const MIB = 2 ** 20
const COLUMNS = ['count', 'after', 'decimals', 'last', 'sum', 'min', 'max'] as const
type Cell = Record<(typeof COLUMNS)[number], number>
const cellAt = (rows: CellRows, row: number): Cell => ({
  count: rows.count[row]!,
  after: rows.after[row]!,
  decimals: rows.decimals[row]!,
  last: rows.last[row]!,
  sum: rows.sum[row]!,
  min: rows.min[row]!,
  max: rows.max[row]!,
})

test('cells that are packed and taken apart are the same to the bit, of small and large digits, constant ones and such that are no decimals', () => {
  const random = randomFrom(7)
  const whole = (bound: number): number => Math.floor(random() * bound) * (random() < 0.3 ? -1 : 1) + 0
  const cells = Array.from({ length: 3_000 }, (_, index): Cell => {
    const count = 1 + Math.floor(random() * (index % 3 === 0 ? 20 : 1.2))
    const after = index % 2 === 0 ? 270_000 : Math.floor(random() * 3_600_000)
    if (index % 11 === 0) {
      const value = random() / 3
      return { count: 1, after, decimals: BITS, last: value, sum: value, min: value, max: value }
    }
    const bound = 2 ** Math.floor(random() * 51)
    const values = Array.from({ length: count }, () =>
      index % 5 === 0 ? bound - 1 : Math.trunc(whole(bound) / count) + 0,
    )
    const decimals = [0, 2, 4, 6][index % 4]!
    const sum = index % 5 === 0 ? Math.trunc((bound - 1) / count) * count : values.reduce((all, one) => all + one, 0)
    if (index % 5 !== 0)
      return { count, after, decimals, last: values.at(-1)!, sum, min: Math.min(...values), max: Math.max(...values) }
    const value = sum / count
    return { count, after, decimals, last: value, sum, min: value, max: value }
  })
  const rows = new CellRows(cells.length)
  rows.used = cells.length
  for (const [row, cell] of cells.entries()) for (const column of COLUMNS) rows[column][row] = cell[column]
  const bytes = new Uint8Array(packedBytesMax(cells.length) + 3)
  const length = packCells(rows, bytes)
  expect(length).toBeLessThan(packedBytesMax(cells.length))
  bytes.copyWithin(3, 0, length)
  const ids = {
    lo: Uint32Array.from(cells.keys()),
    hi: Uint32Array.from(cells.keys(), id => 2 ** 32 - 1 - id),
    turn: 0,
  }
  const read = new CellRows(cells.length)
  unpackCells(bytes, 3, ids, read)
  expect(read.used).toBe(cells.length)
  expect(cells.map((_, row) => cellAt(read, row))).toEqual(cells)
  expect([read.idLo[9], read.idHi[9]]).toEqual([9, 2 ** 32 - 10])
})

const CELL_MS = 3_600_000
const SERIES = 150
/** As an agent reports them: percentages of two decimals, and bytes. */
const valueFor = (random: () => number, series: number): number =>
  series % 5 === 0 ? Math.floor(random() * 1e10) : series % 5 === 1 ? 42 : Math.round(random() * 1e4) / 100

/** A sample of each series at one time. */
function samplesAt(tsMs: number, random: () => number): WrittenPoints {
  const digits = new Float64Array(SERIES)
  const value = Float64Array.from({ length: SERIES }, (_, series) => valueFor(random, series))
  return {
    idLo: Uint32Array.from({ length: SERIES }, (_, series) => series * 7),
    idHi: Uint32Array.from({ length: SERIES }, (_, series) => series),
    tsMs: new Float64Array(SERIES).fill(tsMs),
    value,
    decimals: Uint8Array.from(value, (one, row) => splitDecimal(one, row, digits)),
    digits,
  }
}

const bytesOf = ({ pages }: CellsOfStart): number => pages.count * MIB

test('[STO-004] the cells of a fleet take less than half of what they take unpacked, however often samples come for them and though some servers are silent', () => {
  const random = randomFrom(3)
  const open = new OpenCells(CELL_MS)
  open.completeAfter(Number.NEGATIVE_INFINITY)
  const servers = 600
  const turns = 12
  const sums = new Float64Array(servers)
  const counts = new Uint32Array(servers)
  for (let turn = 0; turn < turns; turn++)
    for (let server = 0; server < servers; server++) {
      if (turn > 0 && server % 50 === 0) continue
      const written = samplesAt(1_000 + turn * 300_000, random)
      open.addSamples({ companyId: 'c', serverId: String(server) }, 0, written, 0, SERIES)
      sums[server]! += written.digits[0]!
      counts[server]!++
    }
  const cells = open.take(0)
  expect(cells.servers.size).toBe(servers)
  expect(bytesOf(cells)).toBeLessThan(servers * SERIES * 49 * 0.5 + 3 * MIB)
  const rows = new CellRows()
  let packed = 0
  for (const server of cells.servers.values()) {
    const index = Number(server.serverId)
    packed += server.length
    unpackServer(server, rows)
    expect([rows.used, server.isRaw, rows.count[0], rows.sum[0]]).toEqual([SERIES, false, counts[index], sums[index]])
  }
  expect(packed / (servers * SERIES)).toBeLessThan(49 / 3)
  open.release(cells)
})

test('a server whose series change keeps the cells that it had', () => {
  const random = randomFrom(5)
  const open = new OpenCells(CELL_MS)
  open.completeAfter(Number.NEGATIVE_INFINITY)
  const owner = { companyId: 'c', serverId: 's' }
  const first = samplesAt(1_000, random)
  const second = samplesAt(31_000, random)
  open.addSamples(owner, 0, first, 0, 40)
  open.addSamples(owner, 0, second, 20, 60)
  const cells = open.take(0)
  const rows = new CellRows()
  unpackServer(cells.servers.get('cs')!, rows)
  expect(Array.from(rows.idHi.subarray(0, rows.used))).toEqual(Array.from({ length: 60 }, (_, series) => series))
  expect([10, 30, 50].map(row => [rows.count[row], rows.last[row]])).toEqual([
    [1, first.digits[10]],
    [2, second.digits[30]],
    [1, second.digits[50]],
  ])
})
