// Who counts as the requester of a run, who approves nothing of it unless a workflow lets them.
import { sql } from 'drizzle-orm'
import type { RunRow } from '../manifest-runs/run-list.ts'
import type { Tx } from '../platform/db/transaction.ts'

/** Everybody who planned a run: its submitter, and whoever planned it again, now or before. */
export async function plannersOf(tx: Tx, run: RunRow, nowId: string): Promise<ReadonlySet<string>> {
  const rows = await tx.db.execute<{ id: string }>(sql`
    select distinct actor_id as id from iac_run_events
    where run_id = ${run.id} and type = 'planned' and actor_id is not null`)
  return new Set([...(run.submitterId === null ? [] : [run.submitterId]), ...rows.map(row => row.id), nowId])
}
