import { expect, test } from 'bun:test'
import { EntryReader, encodeEntry } from '../../../core/bus/entry.ts'
import { shardOfServer } from '../../../core/bus/shard-of-server.ts'
import { limits } from '../../../core/limits.ts'
import { SampleBatch } from '../../../core/series/sample-batch.ts'
import { Random, seedOf } from '../../fuzz/seeded.ts'

const header = {
  companyId: '0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d',
  serverId: 'ffffffff-ffff-4fff-bfff-ffffffffffff',
  agentId: '00000000-0000-4000-8000-000000000001',
  receivedAtMs: 1_795_000_000_123,
  seq: 9_007_199_254_740_991,
  intervalSeconds: 30,
}

type Plain = { id: [number, number]; points: [number, number][]; key?: string }

function fill(batch: SampleBatch, series: readonly Plain[]): void {
  batch.clear()
  for (const { id, points, key } of series) {
    if (batch.seriesCount + 1 >= batch.idLo.length) batch.growSeries()
    if (key !== undefined) batch.definitions.push({ seriesIndex: batch.seriesCount, key })
    batch.idLo[batch.seriesCount] = id[0]
    batch.idHi[batch.seriesCount] = id[1]
    batch.pointStart[batch.seriesCount++] = batch.pointCount
    for (const [tsMs, value] of points) {
      if (batch.pointCount === batch.tsMs.length) batch.growPoints()
      batch.tsMs[batch.pointCount] = tsMs
      batch.value[batch.pointCount++] = value
    }
  }
  batch.pointStart[batch.seriesCount] = batch.pointCount
}

/** The entry where the reader stands, as it went in. */
function plain(reader: EntryReader): Plain[] {
  const series: Plain[] = []
  let point = 0
  for (let index = 0; index < reader.seriesCount; index++) {
    const count = reader.hasCounts ? reader.u32[reader.countsAt + index]! : 1
    const points: [number, number][] = []
    for (let left = count; left > 0; left--, point++)
      points.push([
        reader.hasTimes ? reader.f64[reader.timesAt + point]! : reader.commonTsMs,
        reader.f64[reader.valuesAt + point]!,
      ])
    series.push({ id: [reader.u32[reader.idsAt + index * 2]!, reader.u32[reader.idsAt + index * 2 + 1]!], points })
  }
  reader.eachDefinition((index, key) => {
    series[index]!.key = key
  })
  return series
}

test('an entry comes out as it went in, alone and in a group', () => {
  const random = new Random(seedOf('entry'))
  const batch = new SampleBatch()
  for (let run = 0; run < 300; run++) {
    const batches = Array.from({ length: 1 + random.below(4) }, () => {
      const tsMs = 1_795_000_000_000 + random.below(1000)
      const isPlain = random.chance(0.5)
      return Array.from({ length: random.below(40) }, (): Plain => {
        const points = Array.from({ length: isPlain ? 1 : random.below(4) }, (): [number, number] => [
          isPlain ? tsMs : tsMs + random.below(3),
          random.float() * 100,
        ])
        const id: [number, number] = [Math.floor(random.float() * 2 ** 32), Math.floor(random.float() * 2 ** 32)]
        return random.chance(0.3)
          ? { id, points, key: `m{mount="${'é😀x'.repeat(random.below(20))}"}` }
          : { id, points }
      })
    })
    const entries = batches.map(series => {
      fill(batch, series)
      return encodeEntry(header, batch)
    })
    for (const entry of entries) expect(entry.length % 8).toBe(0)
    const reader = new EntryReader()
    // An odd offset: the reader must do with memory that is not aligned.
    const group = Buffer.concat([new Uint8Array(random.below(8)), ...entries])
    reader.open(
      new Uint8Array(
        group.buffer,
        group.byteOffset + group.length - entries.reduce((sum, e) => sum + e.length, 0),
        entries.reduce((sum, e) => sum + e.length, 0),
      ),
    )
    for (const series of batches) {
      expect(reader.next()).toBe(true)
      expect(plain(reader)).toEqual(series)
      expect([reader.companyId(), reader.serverId(), reader.agentId()]).toEqual([
        header.companyId,
        header.serverId,
        header.agentId,
      ])
      expect([reader.receivedAtMs, reader.seq, reader.intervalSeconds]).toEqual([header.receivedAtMs, header.seq, 30])
      expect(reader.shard).toBe(shardOfServer(header.serverId))
    }
    expect(reader.next()).toBe(false)
  }
})

test('an entry of another version, or with a false length, is refused', () => {
  const batch = new SampleBatch()
  fill(batch, [{ id: [1, 2], points: [[3, 4]] }])
  const f = (change: (bytes: Uint8Array) => void, message: string) => {
    const bytes = encodeEntry(header, batch).slice()
    change(bytes)
    const reader = new EntryReader()
    reader.open(bytes)
    expect(() => reader.next()).toThrow(message)
  }
  f(bytes => bytes.set([9], 4), 'format version 9')
  f(bytes => bytes.set([0, 0, 0, 0], 0), 'length out of range')
  f(bytes => bytes.set([0xff, 0xff, 0, 0], 0), 'length out of range')
})

test('the shard of a server is one of 64, always the same, and servers spread over all', () => {
  const shards = new Set<number>()
  for (let index = 0; index < 2000; index++) {
    const serverId = `aaaaaaaa-0000-4000-8000-${index.toString(16).padStart(12, '0')}`
    const shard = shardOfServer(serverId)
    expect(shard).toBe(shardOfServer(serverId))
    expect(shard).toBeLessThan(limits.stateShards)
    shards.add(shard)
  }
  expect(shards.size).toBe(64)
})
