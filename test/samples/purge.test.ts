import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { purgeSamples } from '../../apps/collector/store/clickhouse/samples-delete.ts'
import { openTestStore } from '../support/clickhouse.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const OTHER_COMPANY = '22222222-2222-4222-8222-222222222222'
const SERVER = 'aaaaaaaa-0000-4000-8000-000000000001'
const SIBLING = 'aaaaaaaa-0000-4000-8000-000000000002'

describe('a purge in the samples store', () => {
  let store: ClickHouse

  const tables = ['samples_raw', 'rollup_5m', 'rollup_1h', 'series', 'rollup_late']
  const put = async (companyId: string, serverId: string): Promise<void> => {
    const columns: Record<string, string> = {
      samples_raw: 'series_id, ts, points',
      rollup_5m: 'series_id, ts, count, last_digits',
      rollup_1h: 'series_id, ts, count, last_digits',
      series: 'series_id, metric',
      rollup_late: 'ts',
    }
    const values: Record<string, string> = {
      samples_raw: "1, now64(3), unhex('000500000000000000')",
      rollup_5m: '1, now64(3), 1, 5',
      rollup_1h: '1, now64(3), 1, 5',
      series: "1, 'cpu_usage_percent'",
      rollup_late: 'now64(3)',
    }
    for (const table of tables)
      await store.command(
        `INSERT INTO ${store.database}.${table} (company_id, server_id, ${columns[table]})
         SELECT {company:UUID}, {server:UUID}, ${values[table]}`,
        { company: companyId, server: serverId },
      )
  }
  /** Tables in which a server has rows. */
  const tablesWith = async (companyId: string, serverId: string): Promise<string[]> => {
    const found: string[] = []
    for (const table of tables) {
      const rows = await store.rows(
        `SELECT 1 FROM ${store.database}.${table} WHERE company_id = {company:UUID} AND server_id = {server:UUID} LIMIT 1`,
        { company: companyId, server: serverId },
      )
      if (rows.length > 0) found.push(table)
    }
    return found
  }
  /** How many deletes the store was given. */
  const deletes = async (): Promise<number> => {
    const [row] = await store.rows('SELECT count() FROM system.mutations WHERE database = {database:String}', {
      database: store.database,
    })
    return Number(row?.[0])
  }

  beforeAll(async () => {
    store = await openTestStore()
    for (const serverId of [SERVER, SIBLING]) await put(COMPANY, serverId)
    await put(OTHER_COMPANY, SERVER)
  })
  afterAll(() => store.close())

  test('[PUR-007] [PUR-014] a server leaves every table, and no other server or company does', async () => {
    await purgeSamples(store, COMPANY, SERVER)
    expect(await tablesWith(COMPANY, SERVER)).toEqual([])
    expect(await tablesWith(COMPANY, SIBLING)).toEqual(tables)
    expect(await tablesWith(OTHER_COMPANY, SERVER)).toEqual(tables)
  })

  test('[PUR-003] a purge of what is gone costs no delete', async () => {
    const before = await deletes()
    expect(before).toBeGreaterThan(0)
    await purgeSamples(store, COMPANY, SERVER)
    await purgeSamples(store, OTHER_COMPANY, SIBLING)
    expect(await deletes()).toBe(before)
    await purgeSamples(store, COMPANY, null)
    expect(await tablesWith(COMPANY, SIBLING)).toEqual([])
    expect(await deletes()).toBeGreaterThan(before)
    expect(await tablesWith(OTHER_COMPANY, SERVER)).toEqual(tables)
  })
})
