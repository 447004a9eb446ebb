// The daily digest: what a company has open, at 08:00 of its time zone (decision G-162).
import { sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'
import type { Executor } from '../../platform/db/connect.ts'
import { inTransaction } from '../../platform/db/transaction.ts'
import { coverage, findingCounts } from '../findings/overview.ts'
import { databaseDay } from '../stale-hosts-and-database.ts'
import { addNotice } from './notices.ts'

const TOLD_FROM_HOUR = 8

/** The values of the texts that are about the company as a whole. */
export async function digestValues(hub: Hub, db: Executor, companyId: string): Promise<Record<string, string>> {
  const yesterday = new Date(hub.now() - 24 * 3_600_000).toISOString().slice(0, 10)
  const [counts, covered, [days], [matcher]] = await Promise.all([
    findingCounts(db, companyId),
    coverage(db, companyId, hub.now()),
    db.execute<{ opened: number; resolved: number }>(sql`
      select coalesce(sum(opened), 0)::int as opened, coalesce(sum(resolved), 0)::int as resolved from (
        select day, opened, resolved from security_finding_days where company_id = ${companyId}
        union all select day, opened, resolved from security_finding_day_changes where company_id = ${companyId}) x
      where day >= ${yesterday}::date`),
    db.execute<{ db_version: string }>(
      sql`select db_version from security_matchers order by last_heartbeat_at desc limit 1`,
    ),
  ])
  return {
    open: String(counts.by_status.open),
    ...Object.fromEntries(Object.entries(counts.by_priority).map(([name, count]) => [name, String(count)])),
    opened: String(days?.opened ?? 0),
    resolved: String(days?.resolved ?? 0),
    overdue: String(covered.overdue),
    stale: String(covered.stale_hosts),
    db_day: (matcher ? databaseDay(Number(matcher.db_version)) : null) ?? '–',
  }
}

/**
 * Notes the digest of each company that is scanned and where it is past 08:00 of a day that was not told yet. A
 * company that begins in the course of a day is told from the next one on.
 */
export async function noteDigests(hub: Hub): Promise<void> {
  const now = new Date(hub.now()).toISOString()
  const due = await hub.database.db.execute<{ id: string; day: string; is_first: boolean }>(sql`
    select x.id, x.day, x.told_on is null as is_first from (
      select c.id, d.told_on, ((${now}::timestamptz at time zone coalesce(s.time_zone, 'UTC')))::date::text as day,
        extract(hour from ${now}::timestamptz at time zone coalesce(s.time_zone, 'UTC')) as hour
      from companies c left join security_settings s on s.company_id = c.id left join security_digests d on d.company_id = c.id
      where c.deleted_at is null and c.suspended_at is null
        and exists (select 1 from scan_hosts h where h.company_id = c.id and h.state = 'active')) x
    where (x.told_on is null or x.told_on < x.day::date) and (x.hour >= ${TOLD_FROM_HOUR} or x.told_on is null)`)
  for (const { id, day, is_first } of due)
    await inTransaction(hub.database.db, async tx => {
      const isEarly = is_first
        ? sql`case when extract(hour from ${now}::timestamptz at time zone coalesce((
            select time_zone from security_settings where company_id = ${id}), 'UTC')) < ${TOLD_FROM_HOUR} then 1 else 0 end`
        : sql`0`
      const told = await tx.db.execute(sql`
        insert into security_digests as d (company_id, told_on) values (${id}, ${day}::date - ${isEarly})
        on conflict (company_id) do update set told_on = excluded.told_on where d.told_on < excluded.told_on returning 1`)
      if (told.length > 0 && !is_first) await addNotice(hub, tx, { companyId: id, type: 'security.digest.daily' })
    })
}
