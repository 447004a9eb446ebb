import { describe, expect, test } from 'bun:test'
import { CHUNK_POINTS_MAX, ChunkWriter, eachPoint, lastPoint } from '../../../core/samples/block/chunk-codec.ts'
import { splitDecimal } from '../../../core/samples/block/decimal.ts'
import { randomFrom } from '../../support/random.ts'

type Point = readonly [tsMs: number, value: number]
const START = 1_800_000_000_000

/** The texts of a column of the Native format. */
function textsOf(column: Uint8Array): Uint8Array[] {
  const texts: Uint8Array[] = []
  for (let at = 0; at < column.length; ) {
    let length = 0
    for (let shift = 0; ; shift += 7) {
      const byte = column[at++]!
      length += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) break
    }
    texts.push(column.slice(at, at + length))
    at += length
  }
  return texts
}

function bytesOf(runs: readonly (readonly Point[])[]): Uint8Array[] {
  const writer = new ChunkWriter()
  for (const points of runs) {
    const tsMs = Float64Array.from(points, ([time]) => time)
    const digits = new Float64Array(points.length)
    const decimals = Uint8Array.from(points, ([, value], at) => splitDecimal(value, at, digits))
    writer.add(tsMs, decimals, digits, 0, points.length)
  }
  return textsOf(writer.written())
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

function readBack(bytes: Uint8Array, firstMs: number): Point[] {
  const points: Point[] = []
  eachPoint(viewOf(bytes), 0, bytes.length, firstMs, (tsMs, value) => points.push([tsMs, value]))
  return points
}

const regular = (values: readonly number[], stepMs = 30_000): Point[] =>
  values.map((value, at) => [START + at * stepMs, value])

describe('a run of points', () => {
  test('takes as few bytes as its differences need', () => {
    const lengthOf = (points: readonly Point[]): number => bytesOf([points])[0]!.length
    expect(lengthOf(regular([7.25]))).toBe(9)
    expect(lengthOf(regular([5, 5, 5, 5]))).toBe(16)
    expect(lengthOf(regular([5, 6, 4, -100]))).toBe(16 + 3)
    expect(lengthOf(regular([1.25, 3, 2.5, 200]))).toBe(16 + 3 * 2)
    expect(lengthOf(regular([0, 1e6, 2e6]))).toBe(16 + 2 * 4)
    expect(lengthOf(regular([0, 1e12, 5]))).toBe(16 + 2 * 8)
    expect(lengthOf(regular([0, 1 / 3, 5]))).toBe(16 + 2 * 8)
    // Without a step four bytes a point for its time.
    expect(lengthOf([...regular([5, 5]), [START + 30_001, 5]])).toBe(16 + 2 * 4)
  })

  test('[STO-001] what is read is what was written, to the bit', () => {
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
    const random = randomFrom(seed)
    const below = (bound: number): number => Math.floor(random() * bound)
    const values: readonly (() => number)[] = [
      () => below(100) / 100,
      () => below(20),
      () => -below(70_000) / 10_000,
      () => below(2 ** 31) * 2 ** 22,
      () => (random() < 0.5 ? -1 : 1) * (2 ** 53 - below(3)),
      () => random() * 10 ** (below(600) - 300),
      () => 0.000001 * below(10),
    ]
    const runs = Array.from({ length: 2_000 }, () => {
      const kinds = Array.from({ length: 1 + below(2) }, () => values[below(values.length)]!)
      const stepMs = random() < 0.7 ? 1 + below(60_000) : 0
      let tsMs = START + below(1_000_000)
      return Array.from({ length: 1 + below(random() < 0.01 ? CHUNK_POINTS_MAX : 30) }, () => {
        tsMs += stepMs || 1 + below(90_000)
        return [tsMs, kinds[below(kinds.length)]!()] as const
      })
    })
    for (const [index, bytes] of bytesOf(runs).entries()) {
      const run = runs[index]!
      const back = readBack(bytes, run[0]![0])
      expect([seed, index, back.length]).toEqual([seed, index, run.length])
      const wrong = back.findIndex(([tsMs, value], at) => tsMs !== run[at]![0] || value !== run[at]![1])
      expect([seed, index, wrong]).toEqual([seed, index, -1])
      const [tsMs, value] = back.at(-1)!
      expect(lastPoint(viewOf(bytes), 0, bytes.length, run[0]![0])).toEqual({ tsMs, value })
    }
  })
})
