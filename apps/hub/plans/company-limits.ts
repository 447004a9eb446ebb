// Limits on what every collector holds in memory for a company: servers, rules, silences, checks, and the servers that
// their scopes list. Each limit is checked in the transaction that adds a row, under the company's lock; existing rows
// stay.
import { type SQL, sql } from 'drizzle-orm'
import type { HubConfig } from '../config.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { type TextKey, words } from '../platform/http/api-texts.ts'

type Limit = {
  readonly key: keyof HubConfig & `limits.${string}`
  readonly text: TextKey
  /** The field that the refusal names. */
  readonly field: string
  readonly count: (companyId: string) => SQL
}

/** Rules, silences and checks that are in force or can come into force. */
const alive = (table: 'rules' | 'silences' | 'checks', companyId: string): SQL =>
  sql`${sql.identifier(`monitoring_${table}`)} where company_id = ${companyId} and deleted_at is null
    ${table === 'silences' ? sql`and cancelled_at is null and ends_at > now()` : sql``}`

const countOf = (table: 'rules' | 'silences' | 'checks') => (companyId: string) =>
  sql`select count(*)::int as count from ${alive(table, companyId)}`

const companyLimits = {
  servers: {
    key: 'limits.servers_per_company',
    text: 'limit_servers',
    field: 'limit',
    count: companyId =>
      sql`select count(*)::int as count from servers where company_id = ${companyId} and deleted_at is null`,
  },
  rules: { key: 'limits.rules_per_company', text: 'limit_rules', field: 'limit', count: countOf('rules') },
  silences: { key: 'limits.silences_per_company', text: 'limit_silences', field: 'limit', count: countOf('silences') },
  checks: { key: 'limits.checks_per_company', text: 'limit_checks', field: 'limit', count: countOf('checks') },
  /** Each company has separate limits, so the number of companies bounds the total of an account. */
  companies: {
    key: 'limits.companies_per_company',
    text: 'limit_companies',
    field: 'limit',
    count: companyId => sql`
      with recursive below as (
        select id, 0 as depth from companies where parent_id = ${companyId} and deleted_at is null
        union all select c.id, b.depth + 1 from companies c join below b on c.parent_id = b.id
          where c.deleted_at is null and b.depth < 32)
      select count(*)::int as count from below`,
  },
  scope_ids: {
    key: 'limits.scope_ids_per_company',
    text: 'limit_scope_ids',
    field: 'scope',
    count: companyId => sql`
      select coalesce(sum(server_id_count), 0)::int as count from (
        select server_id_count from ${alive('rules', companyId)}
        union all select server_id_count from ${alive('silences', companyId)}
        union all select server_id_count from ${alive('checks', companyId)}) x`,
  },
} as const satisfies Readonly<Record<string, Limit>>

type LimitedKind = keyof typeof companyLimits

async function counted(db: Executor, companyId: string, { count }: Limit): Promise<number> {
  const [row] = await db.execute<{ count: number }>(count(companyId))
  return row?.count ?? 0
}

/**
 * Throws 422 with reason company_quota when the company exceeds a limit. Call it after the insert, in a transaction
 * that holds the company's lock, and only where a row was added: a company above a lowered limit can still change its
 * rows.
 */
export async function checkCompanyLimit(
  { config }: Pick<Hub, 'config'>,
  tx: Tx,
  companyId: string,
  kind: LimitedKind,
): Promise<void> {
  const limit = companyLimits[kind]
  const max = config[limit.key]
  const count = await counted(tx.db, companyId, limit)
  if (count <= max) return
  const errors = { [limit.field]: [words(limit.text, { max, count })] }
  throw new ApiError(422, 'limit_exceeded', words('invalid'), { errors, reason: 'company_quota' })
}
