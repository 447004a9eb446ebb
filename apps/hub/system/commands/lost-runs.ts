// Runs of commands whose hub is gone, and runs of long ago.
import { sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'
import type { Executor } from '../../platform/db/connect.ts'
import { livingProcesses } from '../../queues/living-processes.ts'

const KEPT_DAYS = 90

/** A hub that died ends no run: whoever waits for it is told, and may start it anew. */
export async function failLostRuns({ database }: Hub): Promise<void> {
  await database.db.execute(sql`
    update system_command_runs set state = 'failed', finished_at = now(), error = 'the hub that ran it is gone'
    where state = 'running' and hub_id not in (${livingProcesses})`)
}

export async function forgetOldRuns(db: Executor): Promise<void> {
  await db.execute(sql`delete from system_command_runs where finished_at < now() - make_interval(days => ${KEPT_DAYS})`)
}
