// How many entries of the audit log a filter has. Counts are kept by day (UTC), action, actor and kind of subject
// (sql/hub/0014): a total is the sum of the whole days in the filter's span, and of entries that are counted at its
// ends, so that it is exact and costs little.
import { type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'

export type AuditFilter = {
  readonly action?: string | undefined
  readonly actorId?: string | undefined
  readonly subjectType?: string | undefined
  readonly subjectId?: string | undefined
  /** The type or the id of a subject. */
  readonly subject?: string | undefined
  readonly from?: Date | undefined
  readonly to?: Date | undefined
}

const DAY_MS = 86_400_000
/** What comes later has no text that the database reads, and no entry. */
const END_MS = Date.UTC(10_000, 0)

export const all = (conditions: readonly SQL[]): SQL => sql.join([...conditions], sql` and `)

const instantOf = (ms: number): string =>
  ms === -Infinity ? '-infinity' : ms >= END_MS ? 'infinity' : new Date(ms).toISOString()

/** What entries and kept counts have in common. */
function countedBy(companyId: string, { action, actorId, subjectType }: AuditFilter): SQL[] {
  const conditions = [sql`company_id = ${companyId}`]
  if (action !== undefined) conditions.push(sql`action = ${action}`)
  if (actorId !== undefined) conditions.push(sql`actor_id = ${actorId}`)
  if (subjectType !== undefined) conditions.push(sql`subject_type = ${subjectType}`)
  return conditions
}

/** The conditions of entries, all but `subject`. */
export function entriesBy(companyId: string, filter: AuditFilter): SQL[] {
  const conditions = countedBy(companyId, filter)
  if (filter.subjectId !== undefined) conditions.push(sql`subject_id = ${filter.subjectId}`)
  if (filter.from) conditions.push(sql`created_at >= ${filter.from.toISOString()}`)
  if (filter.to) conditions.push(sql`created_at <= ${filter.to.toISOString()}`)
  return conditions
}

/**
 * The two lists that make up a filter by `subject`: a kind of subject, and a subject of another kind that has this id.
 */
export const bySubject = (subject: string): { readonly kind: SQL; readonly id: SQL } => ({
  kind: sql`subject_type = ${subject}`,
  id: sql`subject_id = ${subject} and subject_type <> ${subject}`,
})

/**
 * Selects from the kept counts: whole days between the instants, and the entries before the first and after the last of
 * them.
 */
function kept(companyId: string, filter: AuditFilter): SQL {
  const fromMs = filter.from?.getTime() ?? -Infinity
  const toMs = filter.to?.getTime() ?? Infinity
  const firstMs = Math.ceil(fromMs / DAY_MS) * DAY_MS
  // An entry of the last millisecond is within `to`.
  const endMs = Math.max(firstMs, Math.floor((toMs + 1) / DAY_MS) * DAY_MS)
  const counted = all(countedBy(companyId, filter))
  const days = sql`${counted} and day >= ${instantOf(firstMs)}::timestamptz::date and day < ${instantOf(endMs)}::timestamptz::date`
  const until = sql`created_at <= ${instantOf(toMs)}`
  return sql`
    select count from audit_log_counts where ${days}
    union all select count from audit_log_count_changes where ${days}
    union all select count(*) from audit_log
      where ${counted} and created_at >= ${instantOf(fromMs)} and created_at < ${instantOf(firstMs)} and ${until}
    union all select count(*) from audit_log where ${counted} and created_at >= ${instantOf(endMs)} and ${until}`
}

/** How many entries of a company match. */
export async function countAudit(db: Executor, companyId: string, filter: AuditFilter): Promise<number> {
  const { subject, subjectId } = filter
  const entries = entriesBy(companyId, filter)
  const counts =
    subjectId !== undefined
      ? sql`select count(*) as count from audit_log where ${all(entries)}`
      : subject === undefined
        ? kept(companyId, filter)
        : sql`${kept(companyId, { ...filter, subjectType: subject })}
            union all select count(*) from audit_log where ${all([...entries, bySubject(subject).id])}`
  const [row] = await db.execute<{ total: number }>(
    sql`select coalesce(sum(count), 0)::int as total from (${counts}) x`,
  )
  return row?.total ?? 0
}

/**
 * Adds what statements have changed up in the kept counts. One statement, so that a reader finds a change in one of the
 * two tables, never in both; what another hub has taken meanwhile is not taken again.
 */
export async function addUpAuditCounts(db: Executor): Promise<void> {
  await db.execute(sql`
    with taken as (delete from audit_log_count_changes returning company_id, day, action, actor_id, subject_type, count)
    insert into audit_log_counts as c (company_id, day, action, actor_id, subject_type, count)
    select company_id, day, action, actor_id, subject_type, sum(count) from taken group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
    on conflict (company_id, day, action, actor_id, subject_type) do update set count = c.count + excluded.count`)
}
