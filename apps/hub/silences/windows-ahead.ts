// The windows of silences that recur, as rows that collectors are given one by one (decision G-179). The first window
// is the silence itself; the later ones of the next 8 days are rows beside it, which nobody sees but the feed.
import { sql } from 'drizzle-orm'
import { silenceWindows, WINDOWS_AHEAD_MS } from '../../../core/lifecycle/silence-windows.ts'
import { DAY_MS, limits } from '../../../core/limits.ts'
import { reloadCollectors } from '../collectors/collector-jobs.ts'
import type { Hub } from '../hub-context.ts'
import { silences } from '../platform/db/schema.ts'
import { inTransaction, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { NO_SCOPE } from '../scopes/scope.ts'

type Stored = Pick<typeof silences.$inferSelect, 'id' | 'startsAt' | 'endsAt' | 'recurrence' | 'cancelledAt'>

/** The windows that begin within the next 8 days, without the first one, and until when that is all. */
function laterWindows({ startsAt, endsAt, recurrence, cancelledAt }: Stored, nowMs: number) {
  if (recurrence === null || cancelledAt !== null) return { windows: [], untilMs: null }
  const first = { startsAtMs: startsAt.getTime(), endsAtMs: endsAt.getTime() }
  const aheadMs = nowMs + WINDOWS_AHEAD_MS
  const windows = silenceWindows(first, recurrence, nowMs, aheadMs).filter(
    window => window.startsAtMs !== first.startsAtMs,
  )
  const isLast = recurrence.until !== null && Date.parse(recurrence.until) <= aheadMs
  return { windows, untilMs: isLast ? null : aheadMs }
}

/**
 * Brings the rows of a silence's later windows in step with it: rows that are missing are made, and all of them get its
 * scope, rules and reason; a row whose window it no longer has leaves the feed. Gives the changed rows new numbers of
 * the feed.
 */
export async function storeWindows(tx: Tx, silence: Stored, nowMs: number): Promise<void> {
  const { windows, untilMs } = laterWindows(silence, nowMs)
  const list = JSON.stringify(
    windows.map(({ startsAtMs, endsAtMs }) => ({
      starts_at: new Date(startsAtMs).toISOString(),
      ends_at: new Date(endsAtMs).toISOString(),
    })),
  )
  const now = new Date(nowMs).toISOString()
  await tx.db.execute(sql`update monitoring_silences
    set windows_until = ${untilMs === null ? null : new Date(untilMs).toISOString()} where id = ${silence.id}`)
  const changed = await tx.db.execute<{ id: string }>(sql`
    insert into monitoring_silences as w (id, company_id, scope, resolved_server_ids, rule_ids, starts_at, ends_at, reason,
      created_by, recurrence_of)
    select gen_random_uuid(), s.company_id, s.scope, s.resolved_server_ids, s.rule_ids, x.starts_at, x.ends_at, s.reason,
      s.created_by, s.id
    from monitoring_silences s, jsonb_to_recordset(${list}::jsonb) as x (starts_at timestamptz, ends_at timestamptz)
    where s.id = ${silence.id}
    on conflict (recurrence_of, starts_at) where recurrence_of is not null do update set scope = excluded.scope,
      resolved_server_ids = excluded.resolved_server_ids, rule_ids = excluded.rule_ids, ends_at = excluded.ends_at,
      reason = excluded.reason, deleted_at = null
    where (w.scope, w.resolved_server_ids, w.rule_ids, w.ends_at, w.reason, w.deleted_at) is distinct from
      (excluded.scope, excluded.resolved_server_ids, excluded.rule_ids, excluded.ends_at, excluded.reason, null)
    returning id`)
  const dropped = await tx.db.execute<{ id: string }>(sql`
    update monitoring_silences w set deleted_at = ${now}, scope = ${JSON.stringify(NO_SCOPE.scope)}, resolved_server_ids = '{}'
    where w.recurrence_of = ${silence.id} and w.deleted_at is null and w.ends_at > ${now} and not exists (
      select 1 from jsonb_to_recordset(${list}::jsonb) as x (starts_at timestamptz) where x.starts_at = w.starts_at)
    returning id`)
  const ids = [...changed, ...dropped].map(row => row.id)
  if (ids.length > 0) tx.touch('silences', ids)
}

/**
 * Each hour: the windows of the day that has come into sight, and rows of windows that collectors have forgotten go,
 * without a tombstone, since what has ended needs none.
 */
export async function keepWindowsAhead(hub: Hub): Promise<void> {
  const { db } = hub.database
  const nowMs = hub.now()
  const dueBefore = new Date(nowMs + WINDOWS_AHEAD_MS - DAY_MS).toISOString()
  const due = sql`windows_until < ${dueBefore} and deleted_at is null and cancelled_at is null`
  const companies = await db.execute<{ company_id: string }>(
    sql`select distinct company_id from monitoring_silences where ${due}`,
  )
  for (const { company_id: companyId } of companies)
    await inTransaction(db, async tx => {
      await lockCompany(tx, companyId)
      const rows = await tx.db
        .select({
          id: silences.id,
          startsAt: silences.startsAt,
          endsAt: silences.endsAt,
          recurrence: silences.recurrence,
          cancelledAt: silences.cancelledAt,
        })
        .from(silences)
        .where(sql`company_id = ${companyId} and ${due}`)
      for (const row of rows) await storeWindows(tx, row, nowMs)
      await reloadCollectors(hub, tx, 'silences')
    })
  await db.execute(sql`delete from monitoring_silences where recurrence_of is not null
    and ends_at < ${new Date(nowMs - 2 * limits.silenceKeepMs).toISOString()}`)
}
