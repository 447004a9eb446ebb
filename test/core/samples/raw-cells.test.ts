import { describe, expect, test } from 'bun:test'
import { CellColumns } from '../../../core/samples/block/cell-columns.ts'
import { CHUNK_COLUMN_COUNT, ChunkWriter } from '../../../core/samples/block/chunk-codec.ts'
import { BITS, splitDecimal } from '../../../core/samples/block/decimal.ts'
import { NativeReader } from '../../../core/samples/block/native-reader.ts'
import { NativeWriter } from '../../../core/samples/block/native-writer.ts'
import { serverWords, writeUuidColumn } from '../../../core/samples/block/uuid-words.ts'
import { RawCells } from '../../../core/samples/rollup/raw-cells.ts'
import { randomFrom } from '../../support/random.ts'

const CELL_MS = 300_000
const START = 1_800_000_000_000 - (1_800_000_000_000 % CELL_MS)
const servers = ['00000000-0000-0000-0000-000000000000', 'ffffffff-0000-4000-8000-000000000001'].map(serverId => ({
  companyId: '11111111-1111-4111-8111-111111111111',
  serverId,
}))

/** A row of samples_raw: its points are in the order of time. */
type Row = {
  readonly server: number
  readonly series: number
  readonly seq: number
  readonly points: readonly (readonly [tsMs: number, value: number])[]
}

/** The rows as a statement answers them, in blocks of a few, a block without rows before them. */
function answered(rows: readonly Row[]): Uint8Array {
  const blocks: Uint8Array[] = []
  for (let at = -1; at < rows.length; at += at < 0 ? 1 : 7) {
    const own = at < 0 ? [] : rows.slice(at, at + 7)
    const writer = new NativeWriter()
    const runs = new ChunkWriter()
    writer.begin(5 + CHUNK_COLUMN_COUNT, own.length)
    const ids = (name: 'companyId' | 'serverId') => own.map(({ server }) => servers[server]![name])
    writeUuidColumn(writer, 'company_id', ids('companyId'))
    writeUuidColumn(writer, 'server_id', ids('serverId'))
    const whole = (name: string, type: string, values: readonly number[]): void => {
      const offset = writer.column({ name, type, bytesPerRow: 8 }, values.length)
      for (const [row, value] of values.entries()) writer.memory().setBigInt64(offset + row * 8, BigInt(value), true)
    }
    whole(
      'series_id',
      'UInt64',
      own.map(({ series }) => series),
    )
    whole(
      'ts',
      'DateTime64(3)',
      own.map(({ points }) => points[0]![0]),
    )
    whole(
      'seq',
      'UInt64',
      own.map(({ seq }) => seq),
    )
    for (const { points } of own) {
      const digits = new Float64Array(points.length)
      const decimals = Uint8Array.from(points, ([, value], place) => splitDecimal(value, place, digits))
      const tsMs = Float64Array.from(points, ([time]) => time)
      runs.add(tsMs, decimals, digits, 0, points.length)
    }
    runs.write(writer)
    blocks.push(writer.finish().slice())
  }
  return Buffer.concat(blocks)
}

/**
 * The cells of a block, each by server, series and start: count, time of the last sample, decimals, last, min, max,
 * sum.
 */
function cellsOf(block: Uint8Array): [string, number[]][] {
  const reader = new NativeReader(block)
  const { view } = reader
  const rows = reader.begin()
  if (rows === 0) return []
  reader.column(rows * 16)
  const serverColumn = reader.column(rows * 16)
  const [ids, starts] = [reader.column(rows * 8), reader.column(rows * 8)]
  const [counts, afters, decimals] = [reader.column(rows * 4), reader.column(rows * 4), reader.column(rows)]
  const [last, below, above, beside] = [0, 1, 2, 3].map(() => reader.column(rows * 8))
  const words = serverWords(servers)
  return Array.from({ length: rows }, (_, row) => {
    const server = servers.findIndex((_, index) =>
      [4, 5, 6, 7].every(
        word => words[index * 8 + word] === view.getUint32(serverColumn + row * 16 + (word - 4) * 4, true),
      ),
    )
    const int = (column: number | undefined): bigint => view.getBigInt64(column! + row * 8, true)
    const count = view.getUint32(counts + row * 4, true)
    const places = view.getUint8(decimals + row)
    // As the columns of the table have it (sql/samples/0002_decimals.sql).
    const value = (whole: bigint): number => {
      if (places !== BITS) return Number(whole) / 10 ** places
      view.setBigInt64(0, BigInt.asIntN(64, whole), true)
      return view.getFloat64(0, true)
    }
    const name = `${server} ${int(ids)} ${int(starts)}`
    const values = [
      int(last),
      int(last) - int(below),
      int(last) + int(above),
      int(last) * BigInt(count) + int(beside),
    ].map(value)
    return [name, [count, view.getUint32(afters + row * 4, true), places, ...values]] as [string, number[]]
  })
}

function computed(rows: readonly Row[], work: Partial<Parameters<RawCells['begin']>[0]> = {}): [string, number[]][] {
  const cells = new RawCells()
  const columns = new CellColumns()
  const writer = new NativeWriter()
  let found: [string, number[]][] = []
  // The second time in the memory of the first.
  for (let turn = 0; turn < 2; turn++) {
    cells.begin({
      fromMs: START,
      toMs: START + 4 * CELL_MS,
      words: serverWords(servers),
      starts: servers.map(() => null),
      ...work,
    })
    columns.clear()
    for (const _ of cells.read(new NativeReader(answered(rows))));
    for (const _ of cells.addTo(columns));
    columns.write(writer, 7)
    const again = cellsOf(writer.finish())
    if (turn === 1) expect(again).toEqual(found)
    found = again
  }
  return found
}

const one = (points: Row['points'], seq = 1): Row => ({ server: 0, series: 5, seq, points })
const nameOf = (cell: number): string => `0 5 ${START + cell * CELL_MS}`

describe('cells of raw samples', () => {
  test('[STO-004] hold count, newest, lowest, highest and sum at the decimals that all samples need', () => {
    expect(
      computed([
        one([
          [START, 2.5],
          [START + 30_000, -1],
        ]),
        one([[START + CELL_MS - 1, 0.125]]),
        one([[START + CELL_MS, 9]]),
      ]),
    ).toEqual([
      [nameOf(0), [3, CELL_MS - 1, 4, 0.125, -1, 2.5, 1.625]],
      [nameOf(1), [1, 0, 0, 9, 9, 9, 9]],
    ])
  })

  test('[STO-004] of points of one time the one of the highest seq counts, in whatever order they are read', () => {
    const rows = [one([[START, 1]], 4), one([[START, 2]], 9), one([[START, 3]], 5)]
    for (const order of [rows, [...rows].reverse()])
      expect(computed(order)).toEqual([[nameOf(0), [1, 0, 0, 2, 2, 2, 2]]])
  })

  test('keep the bits of what is no decimal, or too large for digits', () => {
    const third = 1 / 3
    expect(
      computed([
        one([
          [START, third],
          [START + 1, 2],
        ]),
        one([
          [START + CELL_MS, 1e300],
          [START + CELL_MS + 1, -1e300],
        ]),
        one([
          [START + 2 * CELL_MS, 2 ** 50],
          [START + 2 * CELL_MS + 1, 2 ** 50],
        ]),
        one([[START + 3 * CELL_MS, third]]),
      ]),
    ).toEqual([
      [nameOf(0), [2, 1, BITS, 2, third, 2, third + 2]],
      [nameOf(1), [2, 1, BITS, -1e300, -1e300, 1e300, 0]],
      [nameOf(2), [2, 1, BITS, 2 ** 50, 2 ** 50, 2 ** 50, 2 ** 51]],
      [nameOf(3), [1, 0, BITS, third, third, third, third]],
    ])
  })

  test('of some servers and starts only are computed where only those are wanted', () => {
    const rows = servers.flatMap((_, server) =>
      [0, 1, 2, 3].map(cell => ({ server, series: 5, seq: 1, points: [[START + cell * CELL_MS + 7, cell]] as const })),
    )
    const starts = [new Set([START + CELL_MS]), null]
    expect(
      computed(rows, { starts, fromMs: START + CELL_MS, toMs: START + 3 * CELL_MS }).map(([name]) => name),
    ).toEqual([`0 5 ${START + CELL_MS}`, `1 5 ${START + CELL_MS}`, `1 5 ${START + 2 * CELL_MS}`])
  })

  test('[STO-004] [STO-009] equal a computation over the last value of every point, whatever was sent again', () => {
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
    const random = randomFrom(seed)
    const below = (bound: number): number => Math.floor(random() * bound)
    const kinds = [
      () => below(100),
      () => below(10_000) / 100 - 50,
      () => below(1_000_000) / 10_000,
      () => random(),
      () => (random() - 0.5) * 2 ** 54,
      () => -0,
    ]
    for (let turn = 0; turn < 40; turn++) {
      const rows = Array.from({ length: 1 + below(60) }, (_, at): Row => {
        const times = Array.from({ length: 1 + below(40) }, () => START - 60_000 + below(1200) * 1_000)
        const firstMs = Math.min(...times)
        const kind = kinds[below(kinds.length)]!
        const wanted = [...new Set(times)].sort((a, b) => a - b).filter(time => time < firstMs + 600_000)
        return {
          server: below(2),
          series: below(4),
          seq: at,
          points: wanted.map(time => [time, random() < 0.8 ? kind() : kinds[below(kinds.length)]!()] as const),
        }
      })
      const points = new Map<string, Map<number, number>>()
      for (const { server, series, points: own } of rows)
        for (const [time, value] of own) {
          if (time < START || time >= START + 4 * CELL_MS) continue
          const name = `${server} ${series} ${time - (time % CELL_MS)}`
          points.set(name, (points.get(name) ?? new Map()).set(time, value + 0))
        }
      const shuffled = rows.map(row => ({ row, at: random() })).sort((a, b) => a.at - b.at)
      const found = computed(shuffled.map(({ row }) => row))
      expect([seed, turn, found.length]).toEqual([seed, turn, points.size])
      for (const [name, [count, after, , last, min, max, sum]] of found) {
        const own = [...(points.get(name) ?? [])].sort(([a], [b]) => a - b)
        const values = own.map(([, value]) => value)
        const total = values.reduce((all, value) => all + value, 0)
        const startMs = Number(name.split(' ')[2])
        expect([seed, turn, name, count, after, last, min, max]).toEqual([
          seed,
          turn,
          name,
          own.length,
          own.at(-1)![0] - startMs,
          values.at(-1)!,
          Math.min(...values),
          Math.max(...values),
        ])
        const most = Math.max(...values.map(Math.abs))
        expect(Math.abs(sum! - total)).toBeLessThanOrEqual(most * own.length * 1e-14)
      }
    }
  })
})
