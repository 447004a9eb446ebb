// A samples store on a cluster, as far as one engine without a coordinator is one: a shard that is the engine itself.
// Distributed tables, their settings and every statement are real; replication and statements of all nodes are only
// read by the engine's parser.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type ClickHouse, openClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { migrateSamples, SAMPLES_SCHEMA_VERSION } from '../../apps/collector/store/clickhouse/samples-schema.ts'
import statements from '../../sql/samples/cluster.sql' with { type: 'text' }
import { freshDatabase } from '../support/clickhouse.ts'
import { startClickHouseServer, TEST_CLUSTER } from '../support/clickhouse-server.ts'

const TABLES = ['schema_version', 'series', 'samples_raw', 'rollup_5m', 'rollup_1h', 'rollup_late', 'rollup_progress']

const server = startClickHouseServer(0, { hasCluster: true })
const opened: ClickHouse[] = []
function open(database: string, cluster: string | null): ClickHouse {
  // The front asks every request for the settings of a cluster: what opens a store without one brings them along.
  const store = openClickHouse({ url: server.url, database, cluster: cluster ?? TEST_CLUSTER })
  opened.push(store)
  return { ...store, cluster }
}
const single = open(freshDatabase(), null)
const cluster = open(freshDatabase(), TEST_CLUSTER)

beforeAll(async () => {
  await migrateSamples(single)
  await migrateSamples(cluster)
})
afterAll(async () => {
  for (const store of opened) await store.close()
  await server.stop()
})

async function formOf({ rows, database }: ClickHouse, table: string): Promise<unknown> {
  const params = { database, table }
  const of = 'WHERE database = {database:String} AND table = {table:String}'
  const columns = await rows(
    `SELECT name, type, default_kind, default_expression, compression_codec FROM system.columns ${of} ORDER BY position`,
    params,
  )
  const table_ = await rows(
    `SELECT engine, partition_key, sorting_key, extract(create_table_query, 'TTL (.*?) SETTINGS'),
       extractAll(create_table_query, '(.[a-z]+. [a-zA-Z0-9]+ CODEC[^,]* SETTINGS [(][^)]*[)])') FROM system.tables
     WHERE database = {database:String} AND name = {table:String}`,
    params,
  )
  return { columns, table: table_ }
}

test('tables of a cluster have the columns, codecs, blocks, keys and limits of those of one server', async () => {
  for (const table of [...TABLES, 'retention_memory'])
    expect({ table, form: await formOf(cluster, `${table}_local`) }).toEqual({
      table,
      form: await formOf(single, table),
    })
  expect(JSON.stringify(await formOf(cluster, 'samples_raw_local'))).toContain('min_compress_block_size = 1048576')
})

test('every statement, with replicas and all nodes, is one that the engine can read', async () => {
  const texts = statements.split(';').map(text => text.trim())
  expect(texts.length).toBeGreaterThan(16)
  for (const text of texts) {
    const sql = text.replaceAll('{db}', 'db').replaceAll('{cluster}', 'somewhere')
    const bare = sql.replaceAll(/^--.*$/gm, '').trim()
    expect(bare).toContain("ON CLUSTER 'somewhere'")
    if (bare.includes('MergeTree')) expect(bare).toMatch(/Replicated\w*MergeTree\('\/clickhouse\/tables\/\{shard\}\//)
    expect((await cluster.rows(`EXPLAIN AST ${bare}`)).length).toBeGreaterThan(1)
  }
})

test('what a crash left half made is completed, and the version said once', async () => {
  const store = open(freshDatabase(), TEST_CLUSTER)
  const first = statements.split(';').slice(0, 5)
  for (const text of first)
    await store.command(text.replaceAll('{db}', store.database).replaceAll('{cluster}', TEST_CLUSTER))
  await migrateSamples(store)
  await migrateSamples(store)
  const versions = await store.rows(`SELECT version FROM ${store.database}.schema_version ORDER BY version`)
  expect(versions).toEqual([[6], [SAMPLES_SCHEMA_VERSION]])
  expect(await store.rows(`SELECT count() FROM ${store.database}.samples`)).toEqual([[0]])
})

test('tables of the other form are refused, in words for the operator', async () => {
  const asCluster = open(single.database, TEST_CLUSTER)
  const asSingle = open(cluster.database, null)
  await expect(migrateSamples(asCluster)).rejects.toThrow('its tables are those of one server')
  await expect(migrateSamples(asSingle)).rejects.toThrow('set clickhouse.cluster')
})
