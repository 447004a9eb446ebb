// When an export that has a schedule is made next, also where clocks change.
import { sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'

export const periods = ['day', 'week', 'month'] as const

export type When = {
  readonly every: (typeof periods)[number]
  readonly at: string
  readonly weekday: number | null
  readonly day: number | null
  readonly timeZone: string
}

/**
 * The next time after an instant: of each local day that fits, one instant, so that a time that comes twice when
 * clocks go back counts once, and one that they skip is an hour later.
 */
export async function nextRunAfter(db: Executor, when: When, afterMs: number): Promise<Date> {
  const after = new Date(afterMs).toISOString()
  const [row] = await db.execute<{ at: string }>(sql`
    select min(x.at) as at from (
      select (d.day + ${when.at}::time) at time zone ${when.timeZone} as at, d.day
      from (select (${after}::timestamptz at time zone ${when.timeZone})::date + n as day from generate_series(0, 62) n) d) x
    where x.at > ${after}::timestamptz and (${when.every}::text = 'day'
      or (${when.every} = 'week' and extract(isodow from x.day) = ${when.weekday}::int)
      or (${when.every} = 'month' and extract(day from x.day) = ${when.day}::int))`)
  return new Date(row?.at ?? afterMs)
}
