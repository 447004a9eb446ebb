import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type ClickHouse, openClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { migrateSamples, SAMPLES_SCHEMA_VERSION } from '../../apps/collector/store/clickhouse/samples-schema.ts'
import tables from '../../sql/samples/0001_tables.sql' with { type: 'text' }
import { engineUrl, freshDatabase, openTestStore } from '../support/clickhouse.ts'

describe('a samples store of the first version', () => {
  let store: ClickHouse
  const values = [0, 1, -3, 12.5, 99.99, 0.835, 1 / 3, 2 ** 53, 1e300, 5e-324, -0.000123]
  const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000 - 7_200_000
  const at = (offsetMs: number): string => `fromUnixTimestamp64Milli(${hour + offsetMs}, 'UTC')`
  const owner = "toUUID('11111111-1111-4111-8111-111111111111'), toUUID('aaaaaaaa-0000-4000-8000-000000000001')"

  beforeAll(async () => {
    store = openClickHouse({ url: engineUrl, database: freshDatabase() })
    const db = store.database
    for (const statement of tables.split(';').map(text => text.trim().replaceAll('{db}', db)))
      if (statement !== '') await store.command(statement)
    await store.command(`INSERT INTO ${db}.schema_version SELECT 1, now64(3, 'UTC')`)
    for (const [index, value] of values.entries()) {
      await store.command(
        `INSERT INTO ${db}.samples_raw (company_id, server_id, series_id, ts, value) SELECT ${owner}, 7, ${at(index * 30_000)}, ${value}`,
      )
      for (const cell of ['5m', '1h'])
        await store.command(
          `INSERT INTO ${db}.rollup_${cell} (company_id, server_id, series_id, ts, count, sum, min, max, last, last_ts, version)
           SELECT ${owner}, ${index}, ${at(0)}, 3, ${value} * 3, ${value} - 1, ${value} + 2.25, ${value}, ${at(60_000)}, 5`,
        )
    }
  })
  afterAll(() => store.close())

  const raw = (from: string) => store.rows(`SELECT value FROM ${store.database}.${from} ORDER BY ts`)
  const cells = (cell: string) =>
    store.rows(
      `SELECT count, sum, min, max, last, toFloat64(toUnixTimestamp64Milli(last_ts)) FROM ${store.database}.rollup_${cell} FINAL ORDER BY series_id`,
    )

  test('is brought to the form of this program with every value as it was, also when that is done twice', async () => {
    const wantedRaw = await raw('samples_raw FINAL')
    const wantedCells = await cells('5m')
    expect(wantedRaw).toEqual(values.map(value => [value]))
    for (let turn = 0; turn < 2; turn++) {
      await migrateSamples(store)
      expect(await raw('samples')).toEqual(wantedRaw)
      for (const cell of ['5m', '1h']) {
        const found = await cells(cell)
        found.forEach((row, index) => {
          row.forEach((value, column) => {
            const wanted = Number(wantedCells[index]?.[column])
            expect(Math.abs(Number(value) - wanted)).toBeLessThanOrEqual(Math.abs(wanted) * 1e-15)
          })
        })
        expect(found).toHaveLength(values.length)
      }
      expect(await store.rows(`SELECT max(version) FROM ${store.database}.schema_version`)).toEqual([
        [SAMPLES_SCHEMA_VERSION],
      ])
      expect(await store.rows(`EXISTS TABLE ${store.database}.next_raw`)).toEqual([[0]])
      // As after a crash that left the new tables and no word of them, and the old one beside them.
      await store.command(`CREATE TABLE IF NOT EXISTS ${store.database}.next_raw AS ${store.database}.samples_raw`)
      await store.command(`DELETE FROM ${store.database}.schema_version WHERE version > 2`)
    }
  })
})

describe('how long the store keeps samples', () => {
  const DAY_MS = 86_400_000
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS
  let store: ClickHouse
  beforeAll(async () => {
    store = await openTestStore()
  })
  afterAll(() => store.close())

  test('[STO-005] raw samples are kept for 30 days and no longer, the cells of the rollups stay', async () => {
    const db = store.database
    const owner = "toUUID('11111111-1111-4111-8111-111111111111'), toUUID('aaaaaaaa-0000-4000-8000-000000000001'), 7"
    for (const age of [1, 28, 29, 31, 32, 90]) {
      const ts = `fromUnixTimestamp64Milli(${today - age * DAY_MS}, 'UTC')`
      await store.command(
        `INSERT INTO ${db}.samples_raw (company_id, server_id, series_id, ts, points) SELECT ${owner}, ${ts}, concat(char(0), reinterpretAsFixedString(toInt64(${age})))`,
      )
      for (const cell of ['5m', '1h'])
        await store.command(
          `INSERT INTO ${db}.rollup_${cell} (company_id, server_id, series_id, ts, count, last_digits) SELECT ${owner}, ${ts}, 1, ${age}`,
        )
    }
    await store.command(`OPTIMIZE TABLE ${db}.samples_raw FINAL`)
    expect(await store.rows(`SELECT value FROM ${db}.samples ORDER BY value`)).toEqual([[1], [28], [29]])
    for (const cell of ['5m', '1h']) {
      await store.command(`OPTIMIZE TABLE ${db}.rollup_${cell} FINAL`)
      expect(await store.rows(`SELECT count() FROM ${db}.rollup_${cell}`)).toEqual([[6]])
    }
  })
})
