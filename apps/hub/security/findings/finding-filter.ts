// What the list of findings can be filtered by, as conditions on findings and on their kept counts alike: both have the
// same columns (sql/hub/0025).
import { type SQL, sql } from 'drizzle-orm'

export const findingStatuses = ['open', 'resolved', 'accepted', 'false_positive'] as const
export const findingKinds = ['vulnerability', 'release_eol', 'check', 'secret', 'sensitive_data'] as const
export const priorities = ['p1', 'p2', 'p3', 'p4'] as const
export const fixStatuses = ['fixed', 'no_fix', 'wont_fix', 'undetermined', 'upgrade_release'] as const

type FindingStatus = (typeof findingStatuses)[number]
export type FindingKind = (typeof findingKinds)[number]

type OneOrMore<T extends string> = T | readonly T[]

/** A filter with the values that the list takes; it is also kept with exports. */
export type FindingFilter = {
  readonly status?: OneOrMore<FindingStatus> | undefined
  readonly kind?: OneOrMore<FindingKind> | undefined
  readonly priority?: OneOrMore<(typeof priorities)[number]> | undefined
  readonly severity_label?: string | undefined
  /** A server, or `none` for findings of scan hosts that are attached to none. */
  readonly server_id?: string | undefined
  readonly vuln_id?: string | undefined
  readonly package_key?: string | undefined
  readonly fix_status?: OneOrMore<(typeof fixStatuses)[number]> | undefined
  readonly kev?: boolean | undefined
  readonly search?: string | undefined
  /** Kinds that the caller may not see. */
  readonly hidden_kinds?: readonly FindingKind[] | undefined
}

const isOneOf = (column: SQL, value: OneOrMore<string>): SQL =>
  typeof value === 'string' ? sql`${column} = ${value}` : sql`${column} = any(${`{${value.join(',')}}`}::text[])`

export const all = (conditions: readonly SQL[]): SQL => sql.join([...conditions], sql` and `)

/** What a search text is looked for in, of findings and of changes of counts; kept counts have it as a column. */
export const SEARCH_TEXT = sql`security_search_text(vuln_id, package_key, aliases)`

/** The condition that a text is found, whatever its case. */
export const findsText = (searched: SQL, term: string): SQL => {
  const pattern = `%${term.replace(/[\\%_]/g, char => `\\${char}`)}%`
  return sql`${searched} like lower(${pattern}::text collate "C")`
}

/** The conditions on columns that every count has. */
export function cellConditions(filter: FindingFilter): SQL[] {
  const conditions: SQL[] = []
  if (filter.status !== undefined) conditions.push(isOneOf(sql`status`, filter.status))
  if (filter.kind !== undefined) conditions.push(isOneOf(sql`kind`, filter.kind))
  if (filter.priority !== undefined) conditions.push(isOneOf(sql`priority`, filter.priority))
  if (filter.severity_label !== undefined) conditions.push(sql`severity_label = ${filter.severity_label}`)
  if (filter.fix_status !== undefined) conditions.push(isOneOf(sql`fix_status`, filter.fix_status))
  if (filter.kev !== undefined) conditions.push(sql`kev = ${filter.kev}`)
  if (filter.server_id === 'none') conditions.push(sql`not is_attached`)
  for (const kind of filter.hidden_kinds ?? []) conditions.push(sql`kind <> ${kind}`)
  return conditions
}

/** The conditions on names, which counts have that are kept by name. */
export function nameConditions({ vuln_id, package_key }: FindingFilter): SQL[] {
  const conditions: SQL[] = []
  if (vuln_id !== undefined) conditions.push(sql`vuln_id = ${vuln_id}`)
  if (package_key !== undefined) conditions.push(sql`package_key = ${package_key}`)
  return conditions
}

/** The conditions on findings of a company. */
export function findingConditions(companyId: string, filter: FindingFilter): SQL {
  const conditions = [sql`company_id = ${companyId}`, ...cellConditions(filter)]
  if (filter.server_id !== undefined && filter.server_id !== 'none')
    conditions.push(sql`server_id = ${filter.server_id}`)
  conditions.push(...nameConditions(filter))
  if (filter.search !== undefined) conditions.push(findsText(SEARCH_TEXT, filter.search))
  return all(conditions)
}
