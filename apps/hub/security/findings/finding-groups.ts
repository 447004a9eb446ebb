// Findings by what was found: a group for each vulnerability, over the counts that are kept by name, so that a million
// findings of a company are grouped by reading some thousands of rows.
import { type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../../platform/db/connect.ts'
import type { RowRange } from '../../platform/db/page-of-rows.ts'
import {
  all,
  cellConditions,
  type FindingFilter,
  findingConditions,
  findsText,
  type priorities,
  SEARCH_TEXT,
} from './finding-filter.ts'

type VulnerabilityGroup = {
  readonly vuln_id: string
  /** Of the reference data; null where they do not have it. */
  readonly title: string | null
  readonly risk: number
  readonly priority: (typeof priorities)[number]
  readonly kev: boolean
  readonly findings: number
  readonly open: number
  /** Of these findings, how many are mended by an upgrade. */
  readonly fixed: number
  readonly packages: number
}

type GroupsPage = { readonly total: number; readonly groups: readonly VulnerabilityGroup[] }

const GROUP = sql`vuln_id, risk, priority, kev, findings, open, fixed, packages`
const COLUMNS = sql`vuln_id, package_key, risk, priority, kev, fix_status, status`

/** Rows with a count each: of a server its findings, else the kept counts and the changes not yet added up. */
function counted(companyId: string, filter: FindingFilter): SQL {
  const { server_id, vuln_id, search } = filter
  if (server_id !== undefined && server_id !== 'none')
    return sql`select ${COLUMNS}, 1 as count from security_findings where ${findingConditions(companyId, filter)}`
  const owned = [
    sql`company_id = ${companyId}`,
    ...cellConditions(filter),
    ...(vuln_id === undefined ? [] : [sql`vuln_id = ${vuln_id}`]),
  ]
  const where = (searched: SQL) => all(search === undefined ? owned : [...owned, findsText(searched, search)])
  return sql`
    select ${COLUMNS}, count from security_finding_name_counts where ${where(sql`search_text`)}
    union all select ${COLUMNS}, count from security_finding_count_changes where ${where(SEARCH_TEXT)}`
}

/** The vulnerabilities of the findings that a filter selects, the highest risk first. */
export async function vulnerabilityGroups(
  db: Executor,
  companyId: string,
  filter: FindingFilter,
  { limit, offset }: RowRange,
): Promise<GroupsPage> {
  const [row] = await db.execute<GroupsPage>(sql`
    with cells as (
      select ${COLUMNS}, sum(count)::bigint as n from (${counted(companyId, filter)}) counted
      group by ${COLUMNS} having sum(count) > 0),
    groups as materialized (
      select vuln_id, max(risk) as risk, min(priority) as priority, bool_or(kev) as kev, sum(n)::int as findings,
        coalesce(sum(n) filter (where status = 'open'), 0)::int as open,
        coalesce(sum(n) filter (where fix_status = 'fixed'), 0)::int as fixed, count(distinct package_key)::int as packages
      from cells group by vuln_id),
    page as (
      select ${GROUP}, (select nullif(v.title, '') from security_vulnerabilities v where v.vuln_id = g.vuln_id) as title from (
        select ${GROUP} from groups order by risk desc, findings desc, vuln_id limit ${limit} offset ${offset}) g)
    select (select count(*)::int from groups) as total,
      coalesce((select jsonb_agg(to_jsonb(p) order by p.risk desc, p.findings desc, p.vuln_id) from page p), '[]') as groups`)
  return row ?? { total: 0, groups: [] }
}
