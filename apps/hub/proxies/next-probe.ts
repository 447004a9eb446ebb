// When a proxy is looked at again, and until when what was seen speaks for it.
import { sql } from 'drizzle-orm'
import type { Tx } from '../platform/db/transaction.ts'
import type { ProxyRow } from './proxy.ts'

const RETRY_SECONDS = 60
export const PROBES_TO_AGE = 3

/** When a proxy is looked at again: soon, where something fails that did not fail before. */
export async function keepClock(tx: Tx, proxy: ProxyRow, isNewFailure: boolean, now: Date): Promise<void> {
  const seconds = proxy.check_interval_seconds
  const next = new Date(now.getTime() + 1000 * (isNewFailure ? Math.min(RETRY_SECONDS, seconds) : seconds))
  const until = seconds > 0 ? new Date(now.getTime() + 1000 * PROBES_TO_AGE * seconds) : null
  await tx.db.execute(sql`
    update proxies set checked_at = ${now.toISOString()}::timestamptz, next_check_at = ${next.toISOString()}::timestamptz,
      probe_until = ${until?.toISOString() ?? null}::timestamptz
    where id = ${proxy.id} and enabled and deleted_at is null`)
}
