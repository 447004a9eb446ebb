// Taking samples out of the store: a purge of a tenant, and the days that leave a retention window. Deleted rows are invisible
// at once; `reclaim` takes them off the disk.
import type { ClickHouse, QueryParams } from './clickhouse.ts'

const DATA_TABLES = ['samples_raw', 'rollup_5m', 'rollup_1h'] as const
const SETTINGS = 'SETTINGS lightweight_deletes_sync = 2'

/** Deletes everything of a company, or of one machine of it. */
export async function purgeSamples(store: ClickHouse, companyId: string, serverId: string | null): Promise<void> {
  const owner = serverId === null ? '' : ' AND server_id = {server:UUID}'
  const params: QueryParams = serverId === null ? { company: companyId } : { company: companyId, server: serverId }
  for (const table of [...DATA_TABLES, 'series', 'rollup_late'])
    await store.command(
      `DELETE FROM ${store.database}.${table} WHERE company_id = {company:UUID}${owner} ${SETTINGS}`,
      params,
    )
  if (serverId === null)
    await store.command(
      `DELETE FROM ${store.database}.retention_memory WHERE company_id = {company:UUID} ${SETTINGS}`,
      params,
    )
}

/** The number of UTC days of a company with samples before `beforeMs`. */
export async function countDays(store: ClickHouse, companyId: string, beforeMs: number): Promise<number> {
  const days = DATA_TABLES.map(
    table =>
      `SELECT DISTINCT toDate(ts) AS day FROM ${store.database}.${table}
       WHERE company_id = {company:UUID} AND ts < fromUnixTimestamp64Milli({before:Int64}, 'UTC')`,
  )
  const rows = await store.rows(`SELECT uniqExact(day) FROM (${days.join(' UNION ALL ')})`, {
    company: companyId,
    before: beforeMs,
  })
  return Number(rows[0]?.[0] ?? 0)
}

/** Deletes the samples of a company before `beforeMs`, raw and rollups. */
export async function deleteDays(store: ClickHouse, companyId: string, beforeMs: number): Promise<void> {
  for (const table of DATA_TABLES)
    await store.command(
      `DELETE FROM ${store.database}.${table}
       WHERE company_id = {company:UUID} AND ts < fromUnixTimestamp64Milli({before:Int64}, 'UTC') ${SETTINGS}`,
      { company: companyId, before: beforeMs },
    )
}

/** Has the parts that hold deleted rows rewritten without them, in the background. */
export async function reclaim(store: ClickHouse): Promise<void> {
  const tables = await store.rows(
    `SELECT DISTINCT table FROM system.parts
     WHERE database = {database:String} AND active AND has_lightweight_delete AND table NOT IN (
       SELECT table FROM system.mutations WHERE database = {database:String} AND NOT is_done)
     ORDER BY table`,
    { database: store.database },
  )
  for (const [table] of tables)
    if (typeof table === 'string' && /^\w+$/.test(table))
      await store.command(`ALTER TABLE ${store.database}.${table} APPLY DELETED MASK SETTINGS mutations_sync = 0`)
}
