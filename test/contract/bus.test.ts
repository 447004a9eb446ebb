// The bus: in files for one worker, in Redis for several.
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import { join } from 'node:path'
import { type BusReader, type BusWriter, busConsumers } from '../../apps/collector/bus/bus.ts'
import { FileBusReader } from '../../apps/collector/bus/file-bus-reader.ts'
import { FileBusWriter } from '../../apps/collector/bus/file-bus-writer.ts'
import { RedisBusWriter } from '../../apps/collector/bus/redis-bus.ts'
import { RedisBusReader } from '../../apps/collector/bus/redis-bus-reader.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { until } from '../support/until.ts'
import { type Case, contract, type Implementation, newDirectory, sharedRedis } from './contract.ts'

setDefaultTimeout(60_000)

const SERVER = '22222222-2222-4222-8222-222222222222'
const CONSUMERS = Object.values(busConsumers)
const ENTRY_BYTES = 96
const MIB = 1024 * 1024

type Bounds = { readonly bytesMax?: number; readonly ageMaxMs?: number }
type Subject = {
  /** Where the entries of SERVER are. */
  readonly partition: number
  readonly openWriter: (bounds?: Bounds) => BusWriter
  readonly openReader: () => BusReader
  /** Lets the writer poll again at what was passed, where it does that now and then. */
  readonly later: () => void
}

const shared = await sharedRedis()
afterAll(() => shared.close())

const fail = (error: unknown): never => {
  throw new Error('the bus has trouble', { cause: error })
}

const implementations: Implementation<Subject>[] = [
  {
    name: 'file',
    open: async closing => {
      const path = join(newDirectory(closing), 'bus.sqlite')
      let aheadMs = 0
      return {
        partition: 0,
        later: () => {
          aheadMs += 1_001
        },
        openWriter: ({ bytesMax = 1024 * MIB, ageMaxMs = 3_600_000 } = {}) => {
          const writer = new FileBusWriter({
            ...{ path, bytesMax, ageMaxMs, groupWaitMs: 1, onPublished: () => {}, onError: fail },
            nowMs: () => Date.now() + aheadMs,
          })
          closing(() => writer.close())
          return writer
        },
        openReader: () => {
          const reader = new FileBusReader(path, CONSUMERS)
          closing(() => reader.close())
          return reader
        },
      }
    },
  },
  {
    name: 'redis',
    open: async closing => {
      const { redis } = shared
      const keys = shared.freshKeys()
      return {
        partition: shardOfServer(SERVER),
        later: () => {},
        openWriter: ({ bytesMax = 1024 * MIB, ageMaxMs = 3_600_000 } = {}) =>
          new RedisBusWriter({ redis, keys, bytesMax, ageMaxMs, onError: fail }),
        openReader: () => {
          const reader = new RedisBusReader(redis, keys, 5, () => {})
          closing(() => reader.close())
          return reader
        },
      }
    },
  },
]

function entry(value: number): Uint8Array {
  const bytes = new Uint8Array(ENTRY_BYTES)
  new DataView(bytes.buffer).setFloat64(0, value)
  return bytes
}

const publish = async (writer: BusWriter, from: number, to: number): Promise<void> => {
  for (let value = from; value <= to; value++) expect(await writer.publish(SERVER, entry(value))).toBeNull()
}

/** The values of all entries after a position, whose groups must follow one another. */
async function valuesAfter(reader: BusReader, partition: number, from: number, bytesMax = 1024): Promise<number[]> {
  const values: number[] = []
  let position = from
  for (;;) {
    const groups = await reader.read(partition, position, bytesMax)
    if (groups.length === 0 && (await reader.lastPosition(partition)) === position) return values
    for (const group of groups) {
      expect(group.firstPosition).toBe(position + 1)
      expect(group.bytes.length).toBe(group.count * ENTRY_BYTES)
      const view = new DataView(group.bytes.buffer, group.bytes.byteOffset, group.bytes.byteLength)
      for (let index = 0; index < group.count; index++) values.push(view.getFloat64(index * ENTRY_BYTES))
      position = group.firstPosition + group.count - 1
    }
  }
}

const passAll = async (reader: BusReader, partition: number, position: number): Promise<void> => {
  for (const consumer of CONSUMERS) await reader.pass(consumer, partition, position)
}

const upTo = (last: number, from = 1): number[] => Array.from({ length: last - from + 1 }, (_, index) => from + index)

const cases: Case<Subject>[] = [
  {
    name: '[BUS-005] entries of one server come off in the order in which they were published, from any position',
    run: async ({ partition, openWriter, openReader }) => {
      const [writer, reader] = [openWriter(), openReader()]
      const together = await Promise.all(upTo(5).map(value => writer.publish(SERVER, entry(value))))
      expect(together).toEqual([null, null, null, null, null])
      await publish(writer, 6, 9)
      expect(await valuesAfter(reader, partition, 0)).toEqual(upTo(9))
      expect(await valuesAfter(reader, partition, 5)).toEqual(upTo(9, 6))
      expect(await valuesAfter(reader, partition, 0, 1)).toEqual(upTo(9))
      expect(await valuesAfter(reader, partition, 9)).toEqual([])
    },
  },
  {
    name: '[BUS-005] what two ingest nodes had acknowledged one after the other comes off in that order',
    leftOut: { file: 'one process at a time has the writing side of a bus in files; a second is refused' },
    run: async ({ partition, openWriter, openReader }) => {
      const [one, other] = [openWriter(), openWriter()]
      await publish(one, 1, 2)
      await publish(other, 3, 4)
      await publish(one, 5, 5)
      expect(await valuesAfter(openReader(), partition, 0)).toEqual(upTo(5))
    },
  },
  {
    name: '[BUS-005] a writer and several readers at once: every reader sees every entry once, in order',
    run: async ({ partition, openWriter, openReader }) => {
      const total = 2_000
      const writer = openWriter()
      const readers = CONSUMERS.map(async consumer => {
        const reader = openReader()
        const seen: number[] = []
        while (seen.length < total) {
          seen.push(...(await valuesAfter(reader, partition, seen.length, 64 * 1024)))
          if (seen.length > 0) await reader.pass(consumer, partition, seen.length)
          await new Promise(resolve => setImmediate(resolve))
        }
        return seen
      })
      const publishing: Promise<unknown>[] = []
      for (const value of upTo(total)) {
        publishing.push(writer.publish(SERVER, entry(value)))
        if (value % 50 === 0) await new Promise(resolve => setImmediate(resolve))
      }
      expect(new Set(await Promise.all(publishing))).toEqual(new Set([null]))
      for (const seen of await Promise.all(readers)) expect(seen).toEqual(upTo(total))
      expect(await writer.stats()).toEqual({ lagEntries: 0, bytes: 0, oldestAtMs: null, isFull: false })
    },
  },
  {
    name: '[BUS-004] what was acknowledged and what was passed is there for whoever opens the bus next',
    run: async ({ partition, openWriter, openReader }) => {
      const [writer, reader] = [openWriter(), openReader()]
      await publish(writer, 1, 10)
      await reader.pass('evaluation', partition, 10)
      await reader.pass('samples', partition, 4)
      await writer.close()
      const next = openReader()
      expect(await next.passed('samples', partition)).toBe(4)
      expect(await next.passed('evaluation', partition)).toBe(10)
      expect(await valuesAfter(next, partition, 4)).toEqual(upTo(10, 5))
      await publish(openWriter(), 11, 11)
      expect(await valuesAfter(next, partition, 10)).toEqual([11])
    },
  },
  {
    name: 'an entry counts as waiting until both consumers have passed it; a position that is lower changes nothing',
    run: async ({ partition, openWriter, openReader }) => {
      const [writer, reader] = [openWriter(), openReader()]
      await publish(writer, 1, 4)
      const full = await writer.stats()
      expect(full.lagEntries).toBe(4)
      expect(Math.abs(Date.now() - full.oldestAtMs!)).toBeLessThan(10_000)
      expect(await valuesAfter(reader, partition, 0)).toEqual(upTo(4))
      await reader.pass('evaluation', partition, 3)
      expect(await valuesAfter(reader, partition, 0)).toEqual(upTo(4))
      expect((await writer.stats()).bytes).toBe(full.bytes)
      await reader.pass('samples', partition, 2)
      expect(await valuesAfter(reader, partition, 2)).toEqual([3, 4])
      expect(await writer.stats()).toMatchObject({ lagEntries: 2, bytes: full.bytes / 2 })
      await reader.pass('samples', partition, 1)
      expect(await reader.passed('samples', partition)).toBe(2)
      await passAll(reader, partition, 4)
      expect(await writer.stats()).toEqual({ lagEntries: 0, bytes: 0, oldestAtMs: null, isFull: false })
    },
  },
  {
    name: '[BUS-005] a bus goes on counting after everything was passed and removed',
    run: async ({ partition, openWriter, openReader }) => {
      const [writer, reader] = [openWriter(), openReader()]
      await publish(writer, 1, 5)
      await passAll(reader, partition, 5)
      expect(await reader.read(partition, 5, MIB)).toEqual([])
      expect(await reader.lastPosition(partition)).toBe(5)
      await writer.close()
      await publish(openWriter(), 6, 6)
      expect(await reader.lastPosition(partition)).toBe(6)
      expect(await valuesAfter(reader, partition, 5)).toEqual([6])
    },
  },
  {
    name: 'at the bound of bytes an entry is refused, what was acknowledged is kept, and it is taken again once consumers went on',
    run: async ({ partition, openWriter, openReader, later }) => {
      const reader = openReader()
      const writer = openWriter({ bytesMax: 3 * ENTRY_BYTES })
      await publish(writer, 1, 2)
      expect((await writer.stats()).isFull).toBe(false)
      await publish(writer, 3, 3)
      expect((await writer.stats()).isFull).toBe(true)
      expect(await writer.publish(SERVER, entry(4))).toBe('full')
      await reader.pass('evaluation', partition, 3)
      later()
      expect(await writer.publish(SERVER, entry(4))).toBe('full')
      expect(await valuesAfter(reader, partition, 0)).toEqual(upTo(3))
      await reader.pass('samples', partition, 1)
      later()
      await publish(writer, 4, 4)
      expect(await valuesAfter(reader, partition, 1)).toEqual([2, 3, 4])
    },
  },
  {
    name: 'at the bound of age an entry is refused, and taken again once the old ones are passed',
    run: async ({ partition, openWriter, openReader, later }) => {
      const reader = openReader()
      const writer = openWriter({ ageMaxMs: 50 })
      await publish(writer, 1, 1)
      await until('the entry to be too old', async () => (await writer.publish(SERVER, entry(2))) === 'full')
      expect((await writer.stats()).isFull).toBe(true)
      await passAll(reader, partition, await reader.lastPosition(partition))
      later()
      expect((await writer.stats()).isFull).toBe(false)
      expect(await writer.publish(SERVER, entry(3))).toBeNull()
    },
  },
]

contract('bus', implementations, cases)
