import { describe, expect, test } from 'bun:test'
import { EntryReader, encodeEntry } from '../../../core/bus/entry.ts'
import { ChunkReader } from '../../../core/samples/block/chunk-codec.ts'
import { NativeReader } from '../../../core/samples/block/native-reader.ts'
import { NativeWriter } from '../../../core/samples/block/native-writer.ts'
import { BlockScratch, SampleBlock } from '../../../core/samples/block/sample-block.ts'
import { SampleBatch } from '../../../core/series/sample-batch.ts'

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
let state = seed
const below = (bound: number): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((state / 4_294_967_296) * bound)
}

type Point = { lo: number; hi: number; tsMs: number; value: number }
type Series = { readonly lo: number; readonly hi: number; readonly points: { tsMs: number; value: number }[] }

const COMPANY = '11111111-1111-4111-8111-111111111111'
const serverOf = (index: number): string => `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`
const START = 1_700_000_000_000
const LOCKED_BEFORE = START + 2_000

function entryOf(serverId: string, series: readonly Series[]): Uint8Array {
  const batch = new SampleBatch()
  for (const { lo, hi, points } of series) {
    batch.idLo[batch.seriesCount] = lo
    batch.idHi[batch.seriesCount++] = hi
    for (const { tsMs, value } of points) {
      batch.tsMs[batch.pointCount] = tsMs
      batch.value[batch.pointCount++] = value
    }
    batch.pointStart[batch.seriesCount] = batch.pointCount
  }
  const header = { companyId: COMPANY, serverId, agentId: serverId, receivedAtMs: 1, seq: 1, intervalSeconds: 30 }
  return encodeEntry(header, batch)
}

/** The points of the blocks that were written, server by server, as a reader of the store decodes them. */
function storedPoints(bytes: Uint8Array): Map<string, Point[]> {
  const reader = new NativeReader(bytes)
  const { view } = reader
  const rows = reader.begin()
  reader.column(rows * 16)
  const servers = reader.column(rows * 16)
  const ids = reader.column(rows * 8)
  const times = reader.column(rows * 8)
  reader.column(rows * 8)
  const chunks = new ChunkReader(reader)
  chunks.open(rows)
  const found = new Map<string, Point[]>()
  for (let row = 0; row < rows; row++) {
    const server = serverOf(view.getUint32(servers + row * 16 + 8, true))
    const of = found.get(server) ?? []
    found.set(server, of)
    const [lo, hi] = [view.getUint32(ids + row * 8, true), view.getUint32(ids + row * 8 + 4, true)]
    chunks.next()
    chunks.eachPoint(reader.int64(times + row * 8), (tsMs, value) => of.push({ lo, hi, tsMs, value }))
  }
  return found
}

/** What the store is to have of points in their order of arrival. */
function expectedPoints(points: readonly Point[]): Point[] {
  const kept = new Map<string, Point>()
  const inTime = points.filter(({ tsMs }) => tsMs >= LOCKED_BEFORE).map((point, order) => ({ ...point, order }))
  inTime.sort((a, b) => a.hi - b.hi || a.lo - b.lo || a.tsMs - b.tsMs || a.order - b.order)
  for (const { lo, hi, tsMs, value } of inTime) {
    const wholeMs = Math.floor(tsMs)
    kept.set(`${hi}/${lo}/${wholeMs}`, { lo, hi, tsMs: wholeMs, value: value + 0 })
  }
  return [...kept.values()]
}

const someValue = (): number => [below(1_000), below(100_000) / 100, -below(9) / 3, Math.PI * below(9), -0][below(5)]!

/** A batch as agents send it (form 2), or in another: points of several cycles (0), times that differ (1). */
function someBatch(lists: readonly (readonly { lo: number; hi: number }[])[], form: number): Series[] {
  const ids = lists[below(lists.length)]!
  const tsMs = START + below(5) * 1_000 + (below(4) === 0 ? below(1_000) / 7 : 0)
  return ids.map(({ lo, hi }) => ({
    lo,
    hi,
    points: Array.from({ length: form === 0 ? below(3) : 1 }, (_, point) => ({
      tsMs: form === 0 ? tsMs + 1_000 * point : form === 1 ? tsMs + below(3_000) : tsMs,
      value: someValue(),
    })),
  }))
}

describe(`batches that a block holds (SEED=${seed})`, () => {
  test('come out as a store is to have them, whatever their form, in however many parts, and read before', () => {
    const scratch = new BlockScratch()
    const blocks = [new SampleBlock(scratch, 100), new SampleBlock(scratch, 1)]
    const ids = Array.from({ length: 40 }, () => ({ lo: below(2 ** 32), hi: below(2 ** 32) }))
    const uniform = [ids.slice(0, 20)]
    const mixed = [ids.slice(0, 20), ids.slice(5, 30).reverse(), [...ids.slice(0, 3), ids[1]!], []]
    const reader = new EntryReader()
    for (let turn = 0; turn < 60; turn++) {
      const block = blocks[turn % 2]!
      const arrived = new Map<string, Point[]>()
      for (let count = below(60); count > 0; count--) {
        const server = serverOf(below(6))
        const isUniform = server < serverOf(3)
        const batch = isUniform ? someBatch(uniform, server < serverOf(2) ? 2 : below(3)) : someBatch(mixed, below(4))
        reader.open(entryOf(server, batch))
        reader.next()
        block.add(reader, () => ({ purged: false, lockedBeforeMs: LOCKED_BEFORE }))
        const points = batch.flatMap(({ lo, hi, points }) => points.map(point => ({ lo, hi, ...point })))
        arrived.set(server, [...(arrived.get(server) ?? []), ...points])
      }
      const purged = turn % 3 === 0 ? block.owners[0] : undefined
      if (purged) block.purge(purged)
      for (const [server, points] of arrived) {
        const buffered = points.filter(({ tsMs }) => tsMs >= LOCKED_BEFORE)
        const wanted = buffered.map(point => ({ ...point, tsMs: Math.floor(point.tsMs), value: point.value + 0 }))
        expect(block.bufferedOf(COMPANY, server)).toEqual(server === purged?.serverId ? [] : wanted)
      }
      const writer = new NativeWriter()
      const stored = new Map<string, Point[]>()
      while (block.write(writer, 1) > 0) {
        const part = storedPoints(writer.finish())
        for (const { owner, written, begin, end } of block.servers()) {
          const handed = Array.from({ length: end - begin }, (_, index) => ({
            lo: written.idLo[begin + index]!,
            hi: written.idHi[begin + index]!,
            tsMs: written.tsMs[begin + index]!,
            value: written.value[begin + index]! + 0,
          }))
          expect(handed).toEqual(part.get(owner.serverId)!)
          expect(stored.has(owner.serverId)).toBe(false)
          stored.set(owner.serverId, handed)
        }
      }
      for (const [server, points] of arrived)
        expect(stored.get(server) ?? []).toEqual(server === purged?.serverId ? [] : expectedPoints(points))
      expect([...stored.keys()].every(server => arrived.has(server))).toBe(true)
      block.clear()
      expect([block.rows, block.bytes, block.owners.length]).toEqual([0, 0, 0])
    }
  })
})
