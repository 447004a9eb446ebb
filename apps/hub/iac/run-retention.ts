// How long runs of manifests are kept.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'

const AT_ONCE = 1000

/** Runs are kept 400 days. A run brings its items, so that they go a block at a time. */
export async function forgetOldManifestRuns(hub: Hub): Promise<void> {
  const forget = () =>
    hub.database.db.execute(sql`
      delete from iac_runs where id in (
        select id from iac_runs where created_at < now() - interval '400 days' and queued_at is null limit ${AT_ONCE})`)
  while ((await forget()).count === AT_ONCE) {
    // A little at a time, so that nobody waits for long.
  }
}
