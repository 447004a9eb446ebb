// How long an export can be downloaded, and how long it is shown after that.
import { sql } from 'drizzle-orm'
import { DAY_MS } from '../../../core/limits.ts'
import type { Hub } from '../hub-context.ts'
import { defaultOf } from '../system-state/setting-definitions.ts'

const KEPT_ROW_DAYS = 90

/** When an export that is ready now loses its content. */
export async function expiryOf({ database: { db }, state, now }: Hub, companyId: string): Promise<Date> {
  const days = (await state.valueIn(db, companyId, 'exports.kept_days')) ?? defaultOf('exports.kept_days')
  return new Date(now() + days * DAY_MS)
}

/** Exports that are over lose their content, and go once they have been shown for a while. */
export async function forgetOldExports({ database: { db }, now }: Hub): Promise<void> {
  await db.execute(sql`
    with over as (update exports set state = 'expired', object_id = null from (
        select id, object_id from exports where state = 'ready' and expires_at <= ${new Date(now()).toISOString()}::timestamptz
        for update) e where exports.id = e.id returning e.object_id)
    delete from stored_objects where id in (select object_id from over)`)
  await db.execute(sql`
    delete from exports where state in ('failed', 'expired') and created_at < now() - make_interval(days => ${KEPT_ROW_DAYS})`)
}
