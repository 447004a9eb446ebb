// Which findings a page has, and how many there are: at a million findings of a company as fast for the last page as
// for the first. Findings that stand next to each other in the order of the list are counted in cells: by what filters
// can ask for, and by name. The sums of the cells before a page say in which cell it begins and after how many of its
// findings, so that the index is read from there; the total is the sum of all.
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
  SEARCH_TEXT,
} from './finding-filter.ts'

/** The order of the list within one risk, which falls from the first to the last; by name, then by id. */
const CELL = ['priority', 'status', 'kind', 'severity_label', 'fix_status', 'kev', 'is_attached'] as const
const NAME = 'name_digest'

const columns = (names: readonly string[], of?: string): SQL =>
  sql.join(
    names.map(name => (of === undefined ? sql.identifier(name) : sql`${sql.identifier(of)}.${sql.identifier(name)}`)),
    sql`, `,
  )

/** The order of the list, for statements that read findings in it. */
export const FINDING_ORDER = sql`risk desc, ${columns([...CELL, NAME])}, id`

/** What stands for the cell in the key of counts by name (sql/hub/0063). */
const cellDigest = (riskAndCell: readonly SQL[]): SQL =>
  sql`security_cell_digest(${sql.join([...riskAndCell], sql`, `)})`

type IdsOfPage = { readonly ids: readonly string[]; readonly total: number }

/** A server has few findings: they are read and sorted. */
async function pageOfServer(
  db: Executor,
  companyId: string,
  filter: FindingFilter,
  { limit, offset }: RowRange,
): Promise<IdsOfPage> {
  const where = findingConditions(companyId, filter)
  const [row] = await db.execute<{ total: number; ids: string[] }>(sql`
    select (select count(*)::int from security_findings where ${where}) as total,
      array(select id from security_findings where ${where} order by ${FINDING_ORDER} limit ${limit} offset ${offset}) as ids`)
  return row ?? { ids: [], total: 0 }
}

/** What the cells of a filter meet, and whether names tell them apart. */
type CellFilter = {
  readonly conditions: readonly SQL[]
  /** The same for counts that are kept by name, when their key can say it. */
  readonly byKey?: readonly SQL[]
  readonly search?: string | undefined
  readonly isByName: boolean
}

/** Counts of the cells that a filter selects: those kept, and the changes that are not yet added up. */
function cellsOf({ conditions, byKey = conditions, search, isByName }: CellFilter): SQL {
  const key = columns(['risk', ...CELL, ...(isByName ? [NAME] : [])])
  const counted = (table: string, met: readonly SQL[], searched: SQL) => {
    const where = search === undefined ? met : [...met, findsText(searched, search)]
    return sql`select ${key}, count from ${sql.identifier(table)} where ${all(where)}`
  }
  const kept = isByName ? 'security_finding_name_counts' : 'security_finding_counts'
  return sql`
    select ${key}, sum(count)::bigint as n from (${counted(kept, byKey, sql`search_text`)}
      union all ${counted('security_finding_count_changes', conditions, SEARCH_TEXT)}) counted
    group by ${key} having sum(count) > 0`
}

type Cell = { readonly risk: number } & Readonly<Record<(typeof CELL)[number], string | boolean>>
type Placed = IdsOfPage & {
  /** The cell in which the page begins, when too many findings come before it there; its ids are left out. */
  readonly deep: { readonly cell: Cell; readonly skipped: number; readonly taken: number } | null
}

/** More are not stepped over in a cell that names can divide further. */
const SKIPPED_MAX = 500

/** Risks first: only the cells of those that reach into the page are put in order. */
async function placed(
  db: Executor,
  companyId: string,
  filter: CellFilter,
  { limit, offset }: RowRange,
): Promise<Placed> {
  const cell = [...CELL, ...(filter.isByName ? [NAME] : [])]
  const isSame = all(['risk', ...cell].map(name => sql`f.${sql.identifier(name)} = s.${sql.identifier(name)}`))
  const isDeep = filter.isByName ? sql`false` : sql`s.skipped > ${SKIPPED_MAX}`
  const [row] = await db.execute<Placed>(sql`
    with cells as materialized (${cellsOf(filter)}),
    risks as (select risk, sum(n) as n, sum(sum(n)) over (order by risk desc) as upto from cells group by risk),
    placed as (
      select c.risk, ${columns(cell, 'c')}, c.n,
        r.upto - r.n + sum(c.n) over (partition by c.risk order by ${columns(cell, 'c')}) as upto
      from cells c join risks r on r.risk = c.risk
      where r.upto > ${offset}::bigint and r.upto - r.n < ${offset + limit}::bigint),
    shown as (
      select risk, ${columns(cell)}, greatest(${offset}::bigint - (upto - n), 0) as skipped,
        least(upto, ${offset + limit}::bigint) - greatest(upto - n, ${offset}::bigint) as taken
      from placed where upto > ${offset}::bigint and upto - n < ${offset + limit}::bigint)
    select (select coalesce(sum(n), 0)::int from cells) as total, array(
      select f.id from shown s cross join lateral (
        select f.id, f.name_digest from security_findings f
        where f.company_id = ${companyId} and ${isSame} and not ${isDeep}
        order by f.name_digest, f.id offset s.skipped limit s.taken) f
      order by s.risk desc, ${columns(CELL, 's')}, f.name_digest, f.id) as ids,
    (select jsonb_build_object('cell', to_jsonb(s), 'skipped', s.skipped, 'taken', s.taken) from shown s where ${isDeep}) as deep`)
  return row ?? { ids: [], total: 0, deep: null }
}

/** The ids of a page in the order of the list, and the exact total. */
export async function idsOfPage(
  db: Executor,
  companyId: string,
  filter: FindingFilter,
  range: RowRange,
): Promise<IdsOfPage> {
  const { server_id, search } = filter
  if (server_id !== undefined && server_id !== 'none') return pageOfServer(db, companyId, filter, range)
  const owned = sql`company_id = ${companyId}`
  const named = nameConditions(filter)
  const conditions = [owned, ...cellConditions(filter), ...named]
  const isByName = named.length > 0 || search !== undefined
  const { ids, total, deep } = await placed(db, companyId, { conditions, search, isByName }, range)
  if (deep === null) return { ids, total }
  const cell = ['risk' as const, ...CELL].map(name => ({ name: sql.identifier(name), value: sql`${deep.cell[name]}` }))
  const inCell = {
    conditions: [owned, ...cell.map(({ name, value }) => sql`${name} = ${value}`)],
    byKey: [owned, sql`cell_digest = ${cellDigest(cell.map(({ value }) => value))}`],
    isByName: true,
  }
  const before = await placed(db, companyId, inCell, { limit: deep.taken, offset: deep.skipped })
  return { ids: [...before.ids, ...ids], total }
}

/**
 * Adds what statements have changed up in the kept counts. One statement, so that a reader finds a change in one of the
 * two tables, never in both; what another hub has taken meanwhile is not taken again.
 */
export async function addUpFindingCounts(db: Executor): Promise<void> {
  const cell = columns(['company_id', 'risk', ...CELL])
  const digest = cellDigest([columns(['risk', ...CELL])])
  await db.execute(sql`
    with taken as (
      delete from security_finding_count_changes
      returning ${cell}, ${digest} as cell_digest, name_digest, vuln_id, package_key, aliases, count),
    by_name as (
      insert into security_finding_name_counts as c
        (cell_digest, name_digest, ${cell}, vuln_id, package_key, search_text, count)
      select cell_digest, name_digest, ${cell}, vuln_id, package_key, security_search_text(vuln_id, package_key, aliases),
        sum(count)
      from taken group by cell_digest, name_digest, ${cell}, vuln_id, package_key, aliases having sum(count) <> 0
      order by cell_digest, name_digest, company_id
      on conflict (company_id, cell_digest, name_digest) do update set count = c.count + excluded.count)
    insert into security_finding_counts as c (${cell}, count)
    select ${cell}, sum(count) from taken group by ${cell} having sum(count) <> 0 order by ${cell}
    on conflict (${cell}) do update set count = c.count + excluded.count`)
  await db.execute(sql`
    with taken as (delete from security_finding_day_changes returning company_id, day, opened, resolved)
    insert into security_finding_days as d (company_id, day, opened, resolved)
    select company_id, day, sum(opened), sum(resolved) from taken group by 1, 2 order by 1, 2
    on conflict (company_id, day) do update set opened = d.opened + excluded.opened, resolved = d.resolved + excluded.resolved`)
}
