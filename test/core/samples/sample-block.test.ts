import { describe, expect, test } from 'bun:test'
import { EntryReader, encodeEntry } from '../../../core/bus/entry.ts'
import { NativeWriter } from '../../../core/samples/block/native-writer.ts'
import { type OrderColumns, orderRows, RowOrder } from '../../../core/samples/block/row-order.ts'
import { SampleBlock } from '../../../core/samples/block/sample-block.ts'
import { SampleBatch } from '../../../core/series/sample-batch.ts'

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
let state = seed
const below = (bound: number): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((state / 4_294_967_296) * bound)
}

/** The order of the rows by comparing all of them. */
const orderByComparison = ({ owner, idHi, idLo, tsMs }: OrderColumns, count: number, ranks: Uint32Array): number[] =>
  Array.from({ length: count }, (_, row) => row).sort(
    (a, b) =>
      ranks[owner[a]!]! - ranks[owner[b]!]! ||
      idHi[a]! - idHi[b]! ||
      idLo[a]! - idLo[b]! ||
      tsMs[a]! - tsMs[b]! ||
      a - b,
  )

describe(`blocks of samples (SEED=${seed})`, () => {
  test('rows are ordered by owner, series and time, and equal ones stay in the order in which they came', () => {
    const order = new RowOrder()
    for (const [count, owners, ids, times] of [
      [0, 1, 1, 1],
      [1, 1, 1, 1],
      [500, 7, 40, 3],
      [5000, 1, 1, 5000],
      [5000, 300, 2, 2],
      [5000, 3, 5000, 1],
    ] as const) {
      const idOf = Array.from(
        { length: ids },
        () => [below(2 ** 32), below(3) === 0 ? 0xffff_0000 : below(2 ** 32)] as const,
      )
      const columns = {
        owner: new Uint32Array(count),
        idLo: new Uint32Array(count),
        idHi: new Uint32Array(count),
        tsMs: new Float64Array(count),
      }
      for (let row = 0; row < count; row++) {
        const [lo, hi] = idOf[below(ids)]!
        columns.owner[row] = below(owners)
        columns.idLo[row] = lo
        columns.idHi[row] = hi
        columns.tsMs[row] = 1_700_000_000_000 + below(times)
      }
      const ranks = Uint32Array.from({ length: owners }, (_, owner) => owners - 1 - owner)
      order.reserve(count)
      let ordered = 0
      for (const { begin, end } of orderRows(columns, count, ranks, order)) {
        expect(begin).toBe(ordered)
        ordered = end
      }
      expect(ordered).toBe(count)
      expect([...order.rows.subarray(0, count)]).toEqual(orderByComparison(columns, count, ranks))
    }
  })

  test('an order that was right for rows that looked alike is taken only where it is right', () => {
    const [owners, ids] = [400, 30]
    const count = owners * ids
    const columns = {
      owner: new Uint32Array(count),
      idLo: new Uint32Array(count),
      idHi: new Uint32Array(count),
      tsMs: new Float64Array(count),
    }
    const order = new RowOrder()
    order.reserve(count)
    const idOf = Array.from({ length: ids }, () => [below(2 ** 32), below(2 ** 32)] as const)
    for (let turn = 0; turn < 20; turn++) {
      for (let row = 0; row < count; row++) {
        columns.owner[row] = Math.floor(row / ids)
        const [lo, hi] = idOf[row % ids]!
        columns.idLo[row] = lo
        columns.idHi[row] = hi
        columns.tsMs[row] = 1_700_000_000_000 + below(3)
      }
      // What the look of an owner's rows does not tell: in the middle another series, the same twice, or another half
      // of the id.
      for (let change = 0; change < owners; change++) {
        const row = below(owners) * ids + 1 + below(ids - 2)
        const what = below(3)
        if (what === 0) columns.idHi[row] = below(2 ** 32)
        else {
          columns.idHi[row] = columns.idHi[row - 1]!
          if (what === 1) columns.idLo[row] = columns.idLo[row - 1]!
        }
      }
      const ranks = Uint32Array.from({ length: owners }, (_, owner) => owners - 1 - owner)
      for (const _ of orderRows(columns, count, ranks, order));
      expect([...order.rows]).toEqual(orderByComparison(columns, count, ranks))
    }
  })

  test('the bytes of a block are those of the Native format, with the last value of a point that came twice', () => {
    const batch = new SampleBatch()
    batch.seriesCount = 1
    batch.idLo[0] = 0x0403_0201
    batch.idHi[0] = 0x0807_0605
    batch.pointStart[1] = 2
    batch.pointCount = 2
    batch.tsMs[0] = 0x1_0000_0002
    batch.tsMs[1] = 0x1_0000_0002
    batch.value[0] = 7
    batch.value[1] = -1.25
    const entry = encodeEntry(
      {
        companyId: '00112233-4455-6677-8899-aabbccddeeff',
        serverId: '0f0e0d0c-0b0a-0908-0706-050403020100',
        agentId: '00000000-0000-0000-0000-000000000000',
        receivedAtMs: 1,
        seq: 1,
        intervalSeconds: 30,
      },
      batch,
    )
    const block = new SampleBlock()
    const reader = new EntryReader()
    reader.open(entry)
    while (reader.next()) block.add(reader, () => ({ purged: false, lockedBeforeMs: Number.NEGATIVE_INFINITY }))
    const writer = new NativeWriter()
    expect(block.write(writer, 0x2_0000_0009)).toBe(1)
    const text = (value: string): number[] => [value.length, ...new TextEncoder().encode(value)]
    expect([...writer.finish()]).toEqual([
      8,
      1,
      ...text('company_id'),
      ...text('UUID'),
      ...[0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88],
      ...text('server_id'),
      ...text('UUID'),
      ...[8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7],
      ...text('series_id'),
      ...text('UInt64'),
      ...[1, 2, 3, 4, 5, 6, 7, 8],
      ...text('ts'),
      ...text("DateTime64(3, 'UTC')"),
      ...[2, 0, 0, 0, 1, 0, 0, 0],
      ...text('seq'),
      ...text('UInt64'),
      ...[9, 0, 0, 0, 2, 0, 0, 0],
      ...text('shape'),
      ...text('UInt64'),
      ...[2, 1, 0, 0, 0, 0, 0, 0],
      ...text('first'),
      ...text('Int64'),
      ...[0x83, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
      ...text('points'),
      ...text('String'),
      0,
    ])
  })
})
