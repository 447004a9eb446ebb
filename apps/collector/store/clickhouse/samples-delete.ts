// Deletes samples from the store: a purge of a tenant, and the days that leave a retention window. Deleted rows are
// invisible at once; `reclaim` frees their disk space.
import type { ClickHouse, QueryParams } from './clickhouse.ts'
import { deleteSettings, ofAllNodes, storedTable, tableOfStored } from './cluster.ts'

const DATA_TABLES = ['samples_raw', 'rollup_5m', 'rollup_1h'] as const

/**
 * Deletes everything of a company, or of one of its servers. A delete checks every part of a table, and inserts wait
 * for that. So each table is first queried for rows of the tenant, and most second deletions and repeated purges end
 * there.
 */
export async function purgeSamples(store: ClickHouse, companyId: string, serverId: string | null): Promise<void> {
  const ofServer = serverId === null ? '' : ' AND server_id = {server:UUID}'
  const params: QueryParams = serverId === null ? { company: companyId } : { company: companyId, server: serverId }
  const purge = async (table: string, where: string): Promise<void> => {
    const found = await store.rows(`SELECT 1 FROM ${store.database}.${table} WHERE ${where} LIMIT 1`, params)
    if (found.length > 0) await deleteFrom(store, table, where, params)
  }
  const owned = `company_id = {company:UUID}${ofServer}`
  for (const table of [...DATA_TABLES, 'series', 'rollup_late']) await purge(table, owned)
  if (serverId === null) await purge('retention_memory', owned)
}

function deleteFrom(store: ClickHouse, table: string, where: string, params: QueryParams): Promise<void> {
  return store.command(`DELETE FROM ${storedTable(store, table)} WHERE ${where} ${deleteSettings(store)}`, params)
}

/** Samples of a company before an instant, which is a UTC midnight. */
export type Expiry = { readonly companyId: string; readonly beforeMs: number }
export type ExpiredDays = { readonly companyId: string; readonly days: number }

/** Companies in one statement: it must stay within the engine's limit of 256 KiB. */
const COMPANIES_PER_STATEMENT = 2_000

/**
 * Deletes expired samples, raw and rollups, or only counts them (`isDryRun`). Returns each company that had some, with
 * the number of UTC days. A delete touches every part that it could concern, so many companies share one statement.
 */
export async function expireSamples(
  store: ClickHouse,
  expiries: readonly Expiry[],
  isDryRun: boolean,
): Promise<ExpiredDays[]> {
  const expired: ExpiredDays[] = []
  for (let from = 0; from < expiries.length; from += COMPANIES_PER_STATEMENT) {
    const counted = await countExpired(store, expiries.slice(from, from + COMPANIES_PER_STATEMENT))
    expired.push(...counted)
    if (isDryRun || counted.length === 0) continue
    const found = new Set(counted.map(({ companyId }) => companyId))
    const { where, params } = expiredWhere(expiries.filter(({ companyId }) => found.has(companyId)))
    for (const table of DATA_TABLES) await deleteFrom(store, table, where, params)
  }
  return expired
}

async function countExpired(store: ClickHouse, expiries: readonly Expiry[]): Promise<ExpiredDays[]> {
  const { where, params } = expiredWhere(expiries)
  const days = DATA_TABLES.map(
    table =>
      `SELECT company_id, toDate(ts) AS day FROM ${store.database}.${table} WHERE ${where} GROUP BY company_id, day`,
  )
  const rows = await store.rows(
    `SELECT toString(company_id) AS id, uniqExact(day) FROM (${days.join(' UNION ALL ')}) GROUP BY company_id ORDER BY id`,
    params,
  )
  return rows.map(([companyId, count]) => ({ companyId: String(companyId), days: Number(count) }))
}

/**
 * One condition for all companies, grouped by instant, so that parts and granules without matching rows are skipped.
 */
function expiredWhere(expiries: readonly Expiry[]): { where: string; params: QueryParams } {
  const byInstant = new Map<number, string[]>()
  for (const { companyId, beforeMs } of expiries)
    byInstant.set(beforeMs, [...(byInstant.get(beforeMs) ?? []), companyId])
  const params: Record<string, number | readonly string[]> = {}
  const terms = [...byInstant].map(([beforeMs, companies], index) => {
    params[`companies${index}`] = companies
    params[`before${index}`] = beforeMs
    return `(company_id IN {companies${index}:Array(UUID)} AND ts < fromUnixTimestamp64Milli({before${index}:Int64}, 'UTC'))`
  })
  return { where: terms.join(' OR '), params }
}

/** Rewrites the parts that hold deleted rows without them, in the background. */
export async function reclaim(store: ClickHouse): Promise<void> {
  const tables = await store.rows(
    `SELECT DISTINCT table FROM ${ofAllNodes(store, 'system.parts')}
     WHERE database = {database:String} AND active AND has_lightweight_delete AND table NOT IN (
       SELECT table FROM ${ofAllNodes(store, 'system.mutations')} WHERE database = {database:String} AND NOT is_done)
     ORDER BY table`,
    { database: store.database },
  )
  for (const [table] of tables)
    if (typeof table === 'string' && /^\w+$/.test(table)) {
      const stored = storedTable(store, tableOfStored(store, table))
      await store.command(`ALTER TABLE ${stored} APPLY DELETED MASK SETTINGS mutations_sync = 0`)
    }
}
