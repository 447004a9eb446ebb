// The bus over Redis on a server of the tests' own, and what its tests ask of it.
import { expect } from 'bun:test'
import { busConsumers } from '../../apps/collector/bus/bus.ts'
import { RedisBusWriter } from '../../apps/collector/bus/redis-bus.ts'
import { RedisBusReader } from '../../apps/collector/bus/redis-bus-reader.ts'
import { redisKeys, streamOf } from '../../apps/collector/store/redis/redis-keys.ts'
import { EntryReader } from '../../core/bus/entry.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { entryOf } from '../support/clickhouse.ts'
import { openTestRedis } from '../support/redis.ts'

export const COMPANY = '11111111-1111-4111-8111-111111111111'
export const SERVER = '22222222-2222-4222-8222-222222222222'
export const SHARD = shardOfServer(SERVER)
export const GIB = 1024 ** 3

export const entry = (value: number, serverId = SERVER) =>
  entryOf(COMPANY, serverId, [{ metric: 'cpu_usage_percent', points: [[value, value]] }])

/** A server, and buses on it that know nothing of one another. */
export async function openBuses() {
  const { server, redis, close } = await openTestRedis()
  let prefixes = 0
  return {
    server,
    redis,
    close,
    openBus: (bounds: { bytesMax?: number; ageMaxMs?: number } = {}) => {
      const keys = redisKeys(`t${++prefixes}:`)
      const causes: string[] = []
      const writer = new RedisBusWriter({
        redis,
        keys,
        bytesMax: bounds.bytesMax ?? GIB,
        ageMaxMs: bounds.ageMaxMs ?? 3_600_000,
        onError: cause => causes.push(cause),
      })
      const reader = new RedisBusReader(redis, keys, 5, () => {})
      return { keys, writer, reader, causes }
    },
    /** How often the server ran a command. */
    callsOf: async (command: string): Promise<number> => {
      const stats = await redis.info('commandstats')
      return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0)
    },
  }
}

/** The values of the batches of a group. */
export function valuesOf(bytes: Uint8Array): number[] {
  const entries = new EntryReader()
  const values: number[] = []
  for (entries.open(bytes); entries.next(); ) values.push(entries.f64[entries.valuesAt]!)
  return values
}

/** The values of all batches of a partition after a position. */
export async function valuesAfter(reader: RedisBusReader, partition: number, from: number): Promise<number[]> {
  const values: number[] = []
  let position = from
  for (;;) {
    const groups = await reader.read(partition, position, 1024)
    if (groups.length === 0 && (await reader.lastPosition(partition)) === position) return values
    for (const group of groups) {
      expect(group.firstPosition).toBe(position + 1)
      values.push(...valuesOf(group.bytes))
      position = group.firstPosition + group.count - 1
    }
  }
}

export const passAll = async (reader: RedisBusReader, position: number): Promise<void> => {
  for (const consumer of Object.values(busConsumers)) await reader.pass(consumer, SHARD, position)
}

/** Servers of so many partitions that share a stream with that of SERVER. */
export function serversBeside(count: number): Map<number, string> {
  const found = new Map<number, string>()
  for (let index = 0; found.size < count; index++) {
    const serverId = `22222222-2222-4222-8222-${String(index).padStart(12, '0')}`
    const partition = shardOfServer(serverId)
    if (partition !== SHARD && streamOf(partition) === streamOf(SHARD)) found.set(partition, serverId)
  }
  return found
}
