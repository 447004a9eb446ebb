// The shards of a thread over Redis, on a real server.
import { afterAll, expect, test } from 'bun:test'
import { RedisBusWriter } from '../../apps/collector/bus/redis-bus.ts'
import { plainAddress } from '../../apps/collector/store/redis/redis-address.ts'
import { redisKeys, streamOf } from '../../apps/collector/store/redis/redis-keys.ts'
import { RedisLeases } from '../../apps/collector/store/redis/redis-lease-assignment.ts'
import { ShardHost } from '../../apps/collector/worker/evaluation/shard-host.ts'
import type { FromShardThread } from '../../apps/collector/worker/evaluation/shard-messages.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { limits } from '../../core/limits.ts'
import { entryOf } from '../support/clickhouse.ts'
import { openTestRedis } from '../support/redis.ts'
import { ruleRecord } from '../support/rule-record.ts'
import { until } from '../support/until.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const SERVER = '22222222-2222-4222-8222-222222222222'
const SHARD = shardOfServer(SERVER)
const NEVER_MS = 3_600_000

const { server, redis, close } = await openTestRedis()
afterAll(close)

test('who sends events to the hub is told of them once they are in Redis, and so finds them', async () => {
  const keys = redisKeys('told:')
  const told: FromShardThread[] = []
  const host = new ShardHost(
    {
      kind: 'start',
      config: {
        shards: Array.from({ length: limits.stateShards }, (_, shard) => shard),
        threadIndex: 0,
        settings: { noDataAfterMs: 300_000, flapping: { windowMs: 1, transitions: 0, stableMs: 1 } },
        snapshotIntervalMs: NEVER_MS,
        sweepIntervalMs: NEVER_MS,
        presenceGraceMinMs: NEVER_MS,
        storage: { kind: 'redis', address: plainAddress(server.url), prefix: keys.prefix },
      },
      rules: [ruleRecord({ company_id: COMPANY })],
      rulesSince: 1,
      silences: [],
      attributes: [],
      tombstones: [],
    },
    message => void told.push(message),
  )
  const { held } = await new RedisLeases(redis, keys, 'owner', 60_000).renew(true)
  await host.acquire(SHARD, held.find(({ lease }) => lease === SHARD)!.token)

  // The batch comes in one step with a server that takes no more writes: it is published elsewhere and copied.
  const other = redisKeys('elsewhere:')
  const bounds = { bytesMax: 1024 ** 3, ageMaxMs: NEVER_MS }
  const writer = new RedisBusWriter({ redis, keys: other, ...bounds, onError: cause => expect.unreachable(cause) })
  const nowMs = Date.now()
  const series = [{ metric: 'cpu_usage_percent', points: [[nowMs, 95]] as const }]
  expect(await writer.publish(SERVER, entryOf(COMPANY, SERVER, series, nowMs))).toBeNull()
  const [[id, fields]] = (await redis.xrangeBuffer(other.stream(streamOf(SHARD)), '-', '+')) as [[Buffer, Buffer[]]]
  await redis
    .multi()
    .hset(keys.busState, await redis.hgetall(other.busState))
    .xadd(keys.stream(streamOf(SHARD)), id, ...fields)
    .call('CLIENT', 'PAUSE', NEVER_MS, 'WRITE')
    .exec()
  await until('the batch to be evaluated', () => host.loops.some(loop => loop.position === 1))
  const areTold = (): boolean => told.some(({ kind }) => kind === 'events')
  expect(areTold()).toBe(false)
  await redis.call('CLIENT', 'UNPAUSE')
  await until('the event to be told of', areTold)
  expect(await redis.xlen(keys.outbox(SHARD))).toBe(1)
  await host.handOver(SHARD)
  await host.stop()
})
