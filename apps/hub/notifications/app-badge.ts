// Which number stands on the icon of a person's app.
import { sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { reaches } from './choose-channels.ts'

/** Active alerts that nobody acknowledged, from a severity on, in the companies that a person may see (R-052). */
export async function badgeOf(db: Executor, userId: string, from: string): Promise<number> {
  const severities = (['info', 'warning', 'critical'] as const).filter(severity => reaches(severity, from))
  const [row] = await db.execute<{ count: number }>(sql`
    select count(*)::int as count from monitoring_alerts a
    where a.state = 'open' and a.severity = any(${`{${severities.join(',')}}`}::text[]) and a.company_id in (
      select u.company_id from users u where u.id = ${userId}
      union select g.company_id from user_company_grants g where g.user_id = ${userId})`)
  return row?.count ?? 0
}
