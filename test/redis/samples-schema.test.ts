// Several workers over Redis and one samples store, which each of them may be the first to meet.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { busConsumers } from '../../apps/collector/bus/bus.ts'
import { openClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { migrateSamples, SAMPLES_SCHEMA_VERSION } from '../../apps/collector/store/clickhouse/samples-schema.ts'
import { plainAddress } from '../../apps/collector/store/redis/redis-address.ts'
import { redisKeys } from '../../apps/collector/store/redis/redis-keys.ts'
import { openSamplesBus } from '../../apps/collector/worker/samples/samples-bus.ts'
import { engineUrl, freshDatabase } from '../support/clickhouse.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

let server: TestRedis
beforeAll(async () => {
  server = await startTestRedis()
})
afterAll(() => server.close())

const prefix = 'schema:'

/**
 * What the samples thread of a worker has. `onStatement` is told of each statement that is to change the store, before
 * it does.
 */
function openWorker(database: string, onStatement: () => void = () => {}) {
  const store = openClickHouse({ url: engineUrl, database })
  const options = { consumers: Object.values(busConsumers), clickhouse: engineUrl, database }
  const bus = openSamplesBus(
    {
      ...options,
      bus: { kind: 'redis', address: plainAddress(server.url), prefix, hold: { ms: 1_000, bytes: 1024 ** 3 } },
    },
    { onNews: () => {}, onTrouble: () => {}, onRecovered: () => {} },
  )
  const told = {
    ...store,
    command: (sql: string) => {
      onStatement()
      return store.command(sql)
    },
  }
  return {
    store,
    /** As the thread does: until it succeeds. */
    migrate: () =>
      until(
        'the schema',
        () =>
          migrateSamples(told, bus.exclusively).then(
            () => true,
            () => false,
          ),
        5_000,
      ),
    close: async () => {
      await bus.close()
      await store.close()
    },
  }
}

/** Two workers, of which the second meets the store when the first is about to make its statement of that number. */
async function bothMigrate(statement: number): Promise<void> {
  const database = freshDatabase()
  const second = openWorker(database)
  let both: Promise<unknown> = Promise.resolve()
  let count = 0
  const first = openWorker(database, () => {
    if (++count === statement) both = second.migrate()
  })
  await first.migrate()
  await both
  const { store } = first
  expect(await store.rows(`SELECT count() FROM ${database}.samples`)).toEqual([[0]])
  expect(await store.rows(`SELECT version FROM ${database}.schema_version ORDER BY version`)).toEqual(
    Array.from({ length: SAMPLES_SCHEMA_VERSION }, (_, index) => [index + 1]),
  )
  await first.close()
  await second.close()
}

test('[STO-001] workers that meet a new samples store at once bring it to its schema once, and all of them can store', async () => {
  for (const statement of [2, 5, 7, 9]) await bothMigrate(statement)
})

test('a worker that died while it brought the store to its schema holds the others up no longer than its lock', async () => {
  const worker = openWorker(freshDatabase())
  await server.client.set(redisKeys(prefix).samplesSchema, 'the dead one', 'PX', 1_500)
  const startedMs = performance.now()
  await worker.migrate()
  expect(performance.now() - startedMs).toBeGreaterThan(1_000)
  expect(await worker.store.rows(`SELECT count() FROM ${worker.store.database}.samples`)).toEqual([[0]])
  await worker.close()
})
