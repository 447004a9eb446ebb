// What the collector remembers about the retention of each company, beside the data it protects (decision G-137).
import type { ClickHouse } from './clickhouse.ts'

const MEMORY_DAYS = 30
/** The value that stands for an unlimited retention in the table. */
const UNLIMITED = 4_294_967_295

type SeenRetention = { readonly companyId: string; readonly retentionDays: number | null }
type RememberedRetention = {
  readonly companyId: string
  readonly firstSeenAtMs: number
  readonly largestDays: number
}

/** Companies that have samples. */
export async function companiesWithSamples(store: ClickHouse): Promise<string[]> {
  const db = store.database
  const rows = await store.rows(`SELECT DISTINCT toString(company_id) AS id FROM ${db}.series ORDER BY id`)
  return rows.map(row => String(row[0]))
}

/** Companies in one statement: its parameters stay far below the length that a server allows. */
const COMPANIES_PER_STATEMENT = 2_000

/** Stores the retention that was just seen, and returns what is remembered about these companies. */
export async function rememberRetention(
  store: ClickHouse,
  seen: readonly SeenRetention[],
  nowMs: number,
): Promise<RememberedRetention[]> {
  const remembered: RememberedRetention[] = []
  for (let from = 0; from < seen.length; from += COMPANIES_PER_STATEMENT)
    remembered.push(...(await rememberSome(store, seen.slice(from, from + COMPANIES_PER_STATEMENT), nowMs)))
  return remembered
}

async function rememberSome(
  store: ClickHouse,
  seen: readonly SeenRetention[],
  nowMs: number,
): Promise<RememberedRetention[]> {
  const db = store.database
  await store.command(
    `INSERT INTO ${db}.retention_memory (company_id, day, first_seen_at, retention_days)
     SELECT toUUID(row.1), toDate(fromUnixTimestamp64Milli({now:Int64}, 'UTC')), fromUnixTimestamp64Milli({now:Int64}, 'UTC'), toUInt32(row.2)
     FROM (SELECT arrayJoin(arrayZip({companies:Array(String)}, {days:Array(Int64)})) AS row)`,
    {
      now: nowMs,
      companies: seen.map(({ companyId }) => companyId),
      days: seen.map(({ retentionDays }) => retentionDays ?? UNLIMITED),
    },
  )
  const sinceMs = nowMs - MEMORY_DAYS * 86_400_000
  const rows = await store.rows(
    `SELECT toString(company_id), toFloat64(toUnixTimestamp64Milli(min(first_seen_at))),
            maxIf(retention_days, day >= toDate(fromUnixTimestamp64Milli({since:Int64}, 'UTC')))
     FROM ${db}.retention_memory WHERE company_id IN {companies:Array(UUID)} GROUP BY company_id`,
    { since: sinceMs, companies: seen.map(({ companyId }) => companyId) },
  )
  return rows.map(row => ({
    companyId: String(row[0]),
    firstSeenAtMs: Number(row[1]),
    largestDays: Number(row[2]) === UNLIMITED ? Number.POSITIVE_INFINITY : Number(row[2]),
  }))
}
