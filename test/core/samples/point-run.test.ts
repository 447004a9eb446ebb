import { describe, expect, test } from 'bun:test'
import {
  CHUNK_COLUMN_COUNT,
  CHUNK_POINTS_MAX,
  ChunkReader,
  ChunkWriter,
} from '../../../core/samples/block/chunk-codec.ts'
import { splitDecimal } from '../../../core/samples/block/decimal.ts'
import { NativeReader } from '../../../core/samples/block/native-reader.ts'
import { NativeWriter } from '../../../core/samples/block/native-writer.ts'
import { olderPoints, type Point, randomRuns } from '../../support/chunks.ts'
import { randomFrom } from '../../support/random.ts'

const START = 1_800_000_000_000

/** The runs as columns of a block. */
function blockOf(runs: readonly (readonly Point[])[]): Uint8Array {
  const chunks = new ChunkWriter()
  for (const points of runs) {
    const tsMs = Float64Array.from(points, ([time]) => time)
    const digits = new Float64Array(points.length)
    const decimals = Uint8Array.from(points, ([, value], at) => splitDecimal(value, at, digits))
    chunks.add(tsMs, decimals, digits, 0, points.length)
  }
  const writer = new NativeWriter()
  writer.begin(CHUNK_COLUMN_COUNT, runs.length)
  chunks.write(writer)
  return writer.finish()
}

/** The same in the form of before 0006_shapes.sql. */
function olderBlockOf(runs: readonly (readonly Point[])[]): Uint8Array {
  const writer = new NativeWriter()
  writer.begin(CHUNK_COLUMN_COUNT, runs.length)
  for (const [name, type] of [
    ['shape', 'UInt64'],
    ['first', 'Int64'],
  ] as const)
    writer.put(
      writer.column({ name, type, bytesPerRow: 8 }, runs.length),
      new Uint8Array(runs.length * 8),
      runs.length * 8,
    )
  const texts = runs.map(run => {
    const bytes = olderPoints(run)
    const length: number[] = []
    let rest = bytes.length
    for (; rest >= 0x80; rest >>>= 7) length.push((rest & 0x7f) | 0x80)
    return Buffer.concat([Uint8Array.from([...length, rest]), bytes])
  })
  const all = new Uint8Array(Buffer.concat(texts))
  writer.put(writer.column({ name: 'points', type: 'String', bytesPerRow: 1 }, all.length), all, all.length)
  return writer.finish()
}

/** What is read of a block of the runs, each with its last point as it is read alone. */
function readBack(block: Uint8Array, runs: readonly (readonly Point[])[]): { points: Point[]; last: Point }[] {
  const reader = new NativeReader(block)
  const chunks = new ChunkReader(reader)
  chunks.open(reader.begin())
  return runs.map(([first]) => {
    const points: Point[] = []
    chunks.next()
    chunks.eachPoint(first![0], (tsMs, value) => points.push([tsMs, value]))
    const { tsMs, value } = chunks.last(first![0])
    return { points, last: [tsMs, value] }
  })
}

const regular = (values: readonly number[], stepMs = 30_000): Point[] =>
  values.map((value, at) => [START + at * stepMs, value])

describe('a run of points', () => {
  test('takes as few bytes as its points need beside shape and first digits', () => {
    const lengthOf = (points: readonly Point[]): number => {
      const reader = new NativeReader(blockOf([points]))
      const rows = reader.begin()
      reader.column(rows * 8)
      reader.column(rows * 8)
      reader.column(0)
      return reader.text()
    }
    expect(lengthOf(regular([7.25]))).toBe(0)
    expect(lengthOf(regular([5, 5, 5, 5]))).toBe(0)
    expect(lengthOf(regular([500, 501, 499, 400]))).toBe(3)
    expect(lengthOf(regular([1.25, 3, 2.5, 200]))).toBe(3 * 2)
    expect(lengthOf(regular([0, 1e6, 2e6]))).toBe(2 * 3)
    expect(lengthOf(regular([1e12, 1e12 + 200, 1e12]))).toBe(2 * 2)
    expect(lengthOf(regular([0, 2 ** 32 - 1, 0]))).toBe(2 * 4)
    expect(lengthOf(regular([0, 1e12, 5]))).toBe(2 * 8)
    expect(lengthOf(regular([0, 1 / 3, 5]))).toBe(3 * 8)
    // Without a step four bytes a point for its time.
    expect(lengthOf([...regular([5, 5]), [START + 30_001, 5]])).toBe(2 * 4)
  })

  test.each([
    ['', blockOf],
    [', in the form of before', olderBlockOf],
  ])('[STO-001] what is read is what was written, to the bit%s', (_, blockOf) => {
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
    const runs = randomRuns(randomFrom(seed), START, 2_000, CHUNK_POINTS_MAX)
    for (const [index, { points, last }] of readBack(blockOf(runs), runs).entries()) {
      const run = runs[index]!
      expect([seed, index, points.length]).toEqual([seed, index, run.length])
      const wrong = points.findIndex(([tsMs, value], at) => tsMs !== run[at]![0] || value !== run[at]![1])
      expect([seed, index, wrong]).toEqual([seed, index, -1])
      expect([seed, index, last]).toEqual([seed, index, run.at(-1)!])
    }
  })
})
