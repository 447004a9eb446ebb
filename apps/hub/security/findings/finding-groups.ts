// Findings by what they have in common: a group for each vulnerability or package, over the counts that are kept by
// name, so that a million findings of a company are grouped by reading some thousands of rows; and one for each server,
// which no count is kept by, so that all that the filter selects is read.
import { type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../../platform/db/connect.ts'
import type { RowRange } from '../../platform/db/page-of-rows.ts'
import {
  all,
  cellConditions,
  type FindingFilter,
  findingConditions,
  findsText,
  nameConditions,
  type priorities,
  SEARCH_TEXT,
} from './finding-filter.ts'

export const groupings = ['cve', 'package', 'server'] as const
export type Grouping = (typeof groupings)[number]

type FindingGroup = {
  /** The vulnerability, the package or the id of the server; empty: of scan hosts that are attached to none. */
  readonly key: string
  /** What the reference data call a vulnerability, and the name of a server; null where there is none. */
  readonly title: string | null
  readonly risk: number
  readonly priority: (typeof priorities)[number]
  readonly kev: boolean
  readonly findings: number
  readonly open: number
  /** Of these findings, how many are mended by an upgrade. */
  readonly fixed: number
  readonly packages: number
  readonly vulnerabilities: number
}

type GroupsPage = { readonly total: number; readonly groups: readonly FindingGroup[] }

const GROUP = sql`key, risk, priority, kev, findings, open, fixed, packages, vulnerabilities`
const COLUMNS = sql`vuln_id, package_key, risk, priority, kev, fix_status, status`

const keyOf: Readonly<Record<Grouping, SQL>> = {
  cve: sql`vuln_id`,
  package: sql`package_key`,
  server: sql`coalesce(server_id::text, '')`,
}

const titleOf: Readonly<Record<Grouping, SQL>> = {
  cve: sql`(select nullif(v.title, '') from security_vulnerabilities v where v.vuln_id = g.key)`,
  package: sql`null::text`,
  server: sql`(select s.name from servers s where s.id = nullif(g.key, '')::uuid)`,
}

/** Rows with a count each: of a server its findings, else the kept counts and the changes not yet added up. */
function counted(companyId: string, filter: FindingFilter, by: Grouping): SQL {
  const { server_id, search } = filter
  const key = sql`${keyOf[by]} as key`
  if (by === 'server' || (server_id !== undefined && server_id !== 'none'))
    return sql`select ${key}, ${COLUMNS}, 1 as count from security_findings where ${findingConditions(companyId, filter)}`
  const owned = [sql`company_id = ${companyId}`, ...cellConditions(filter), ...nameConditions(filter)]
  const where = (searched: SQL) => all(search === undefined ? owned : [...owned, findsText(searched, search)])
  return sql`
    select ${key}, ${COLUMNS}, count from security_finding_name_counts where ${where(sql`search_text`)}
    union all select ${key}, ${COLUMNS}, count from security_finding_count_changes where ${where(SEARCH_TEXT)}`
}

/** The groups of the findings that a filter selects, the highest risk first. */
export async function findingGroups(
  db: Executor,
  companyId: string,
  { filter, by }: { readonly filter: FindingFilter; readonly by: Grouping },
  { limit, offset }: RowRange,
): Promise<GroupsPage> {
  const [row] = await db.execute<GroupsPage>(sql`
    with cells as (
      select key, ${COLUMNS}, sum(count)::bigint as n from (${counted(companyId, filter, by)}) counted
      group by key, ${COLUMNS} having sum(count) > 0),
    groups as materialized (
      select key, max(risk) as risk, min(priority) as priority, bool_or(kev) as kev, sum(n)::int as findings,
        coalesce(sum(n) filter (where status = 'open'), 0)::int as open,
        coalesce(sum(n) filter (where fix_status = 'fixed'), 0)::int as fixed,
        count(distinct package_key)::int as packages, count(distinct vuln_id)::int as vulnerabilities
      from cells group by key),
    page as (
      select ${GROUP}, ${titleOf[by]} as title from (
        select ${GROUP} from groups order by risk desc, findings desc, key limit ${limit} offset ${offset}) g)
    select (select count(*)::int from groups) as total,
      coalesce((select jsonb_agg(to_jsonb(p) order by p.risk desc, p.findings desc, p.key) from page p), '[]') as groups`)
  return row ?? { total: 0, groups: [] }
}
