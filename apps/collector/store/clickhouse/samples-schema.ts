// Brings the samples store to the schema that this program knows. Every step is idempotent; a newer store is refused.
import tables from '../../../../sql/samples/0001_tables.sql' with { type: 'text' }
import decimals from '../../../../sql/samples/0002_decimals.sql' with { type: 'text' }
import runs from '../../../../sql/samples/0003_runs.sql' with { type: 'text' }
import views from '../../../../sql/samples/0004_views.sql' with { type: 'text' }
import sync from '../../../../sql/samples/0005_sync.sql' with { type: 'text' }
import shapes from '../../../../sql/samples/0006_shapes.sql' with { type: 'text' }
import blocks from '../../../../sql/samples/0007_blocks.sql' with { type: 'text' }
import cluster from '../../../../sql/samples/cluster.sql' with { type: 'text' }
import type { ClickHouse } from './clickhouse.ts'

type Step = {
  readonly sql: string
  /** A column of samples_raw that this step adds: where it exists the step cannot be applied again. */
  readonly column?: string
  /** A table that the step leaves behind when it was interrupted. */
  readonly leaves?: string
}
const STEPS: readonly Step[] = [
  { sql: tables },
  { sql: decimals },
  { sql: runs, column: 'points', leaves: 'next_raw' },
  { sql: views },
  { sql: sync },
  { sql: shapes },
  { sql: blocks },
]
export const SAMPLES_SCHEMA_VERSION = STEPS.length
/** The same on a cluster, of which there is no store of an earlier version than 6. */
const CLUSTER_STEPS: readonly (readonly [version: number, step: Step])[] = [
  [6, { sql: cluster }],
  [7, { sql: blocks }],
]

/** A store that this program must not touch. The message is for the operator. */
export class SamplesStoreRefused extends Error {}

async function storedVersion(store: ClickHouse): Promise<number> {
  const exists = await store.rows(
    "SELECT count() FROM system.tables WHERE database = {database:String} AND name = 'schema_version'",
    { database: store.database },
  )
  if (Number(exists[0]?.[0]) === 0) return 0
  const version = await store.rows(`SELECT max(version) FROM ${store.database}.schema_version`)
  return Number(version[0]?.[0] ?? 0)
}

async function hasColumn(store: ClickHouse, column: string): Promise<boolean> {
  const found = await store.rows(
    "SELECT count() FROM system.columns WHERE database = {database:String} AND table = 'samples_raw' AND name = {column:String}",
    { database: store.database, column },
  )
  return Number(found[0]?.[0]) > 0
}

async function run(store: ClickHouse, step: string, mayGoOn: () => void): Promise<void> {
  for (const statement of step.split(';')) {
    const sql = statement
      .trim()
      .replaceAll('{db}', store.database)
      .replaceAll('{_local}', store.cluster === null ? '' : '_local')
      .replaceAll('{on_cluster}', store.cluster === null ? '' : `ON CLUSTER '${store.cluster}'`)
      .replaceAll('{cluster}', store.cluster ?? '')
    if (sql === '') continue
    mayGoOn()
    await store.command(sql)
  }
}

/**
 * Runs the work in one process at a time. The work calls `mayGoOn` before each step to check that it still may: two
 * processes would exchange each other's tables.
 */
export type Exclusively = (work: (mayGoOn: () => void) => Promise<void>) => Promise<void>

/** For a store that only this process uses. */
const alone: Exclusively = work => work(() => {})

/** Runs the steps that the store lacks. Throws SamplesStoreRefused for a store of a newer program. */
export async function migrateSamples(store: ClickHouse, exclusively: Exclusively = alone): Promise<void> {
  await refuseOtherForm(store)
  const stored = await storedVersion(store)
  if (stored > SAMPLES_SCHEMA_VERSION)
    throw new SamplesStoreRefused(
      `cannot open the samples store: its schema is version ${stored}, this program knows ${SAMPLES_SCHEMA_VERSION}; use the newer program`,
    )
  if (stored < SAMPLES_SCHEMA_VERSION) await exclusively(mayGoOn => takeSteps(store, mayGoOn))
}

/** Tables of one server cannot become those of a cluster where they are, nor the other way round. */
async function refuseOtherForm(store: ClickHouse): Promise<void> {
  const found = await store.rows(
    "SELECT engine FROM system.tables WHERE database = {database:String} AND name = 'samples_raw'",
    { database: store.database },
  )
  const engine = found[0]?.[0]
  if (engine === undefined || (engine === 'Distributed') === (store.cluster !== null)) return
  throw new SamplesStoreRefused(
    store.cluster === null
      ? 'cannot open the samples store: its tables are those of a cluster; set clickhouse.cluster'
      : 'cannot open the samples store: its tables are those of one server; choose another clickhouse.database, or leave clickhouse.cluster empty',
  )
}

/** The steps of a store by the version that each leads to. */
const stepsOf = (store: ClickHouse): readonly (readonly [version: number, step: Step])[] =>
  store.cluster === null ? STEPS.map((step, index) => [index + 1, step] as const) : CLUSTER_STEPS

async function takeSteps(store: ClickHouse, mayGoOn: () => void): Promise<void> {
  // Another process may just have applied some.
  const stored = await storedVersion(store)
  for (const [version, { sql, column, leaves }] of stepsOf(store)) {
    if (version <= stored) continue
    const isTaken = column !== undefined && (await hasColumn(store, column))
    if (!isTaken) await run(store, sql, mayGoOn)
    else if (leaves !== undefined) await store.command(`DROP TABLE IF EXISTS ${store.database}.${leaves} SYNC`)
    mayGoOn()
    await store.command(`INSERT INTO ${store.database}.schema_version SELECT ${version}, now64(3, 'UTC')`)
  }
}
