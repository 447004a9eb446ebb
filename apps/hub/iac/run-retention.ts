// How long runs of manifests are kept.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'

/** Runs are kept 400 days. */
export async function forgetOldManifestRuns(hub: Hub): Promise<void> {
  await hub.database.db.execute(sql`
    delete from iac_runs where id in (
      select id from iac_runs where created_at < now() - interval '400 days' and queued_at is null limit 1000)`)
}
