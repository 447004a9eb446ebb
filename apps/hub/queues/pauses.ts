// Pausing a queue: its jobs are still accepted, and wait (decision R-064; RES-254). Every hub holds to it.
import { sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import type { QueueName } from '../platform/jobs/retries-and-concurrency.ts'
import { tellHubs } from '../system-state/system-state.ts'

/** Without these the hub would not come to rest again by itself. */
const NEVER_PAUSED: readonly QueueName[] = ['schedule', 'jobs.failed']
/** What people wait for. */
const CONFIRMED = /^(collector|notifications)\./

const subjectOf = (queue: QueueName) => ({ type: 'queue', id: null, name: queue })

async function change(context: RouteContext, act: (tx: Tx) => Promise<void>): Promise<void> {
  const { hub } = context
  await inTransaction(hub.database.db, async tx => {
    await act(tx)
    await tellHubs(tx)
  })
  await hub.state.refresh()
}

export async function pauseQueue(
  context: RouteContext,
  queue: QueueName,
  { minutes = 60, confirm }: { readonly minutes?: number | undefined; readonly confirm?: boolean | undefined },
): Promise<void> {
  if (NEVER_PAUSED.includes(queue)) throw invalidField('queue', 'queue_never_paused')
  if (CONFIRMED.test(queue) && confirm !== true) throw invalidField('confirm', 'confirm')
  const until = new Date(context.hub.now() + minutes * 60_000).toISOString()
  await change(context, async tx => {
    await tx.db.execute(sql`
      insert into queue_pauses (queue, paused_until, paused_by) values (${queue}, ${until}, ${context.caller.user.id})
      on conflict (queue) do update set paused_until = excluded.paused_until, paused_by = excluded.paused_by`)
    await auditRequest(tx, context, 'queue.pause', subjectOf(queue), { paused_until: { old: null, new: until } })
  })
}

/** A queue that is not paused stays so. */
export async function resumeQueue(context: RouteContext, queue: QueueName): Promise<void> {
  await change(context, async tx => {
    const ended = await tx.db.execute(sql`
      delete from queue_pauses where queue = ${queue} and paused_until > now() returning queue`)
    if (ended.length > 0) await auditRequest(tx, context, 'queue.resume', subjectOf(queue))
  })
}
