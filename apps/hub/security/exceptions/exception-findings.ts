// What an exception does to its findings (decisions G-154, G-170): while it runs it gives them their status, and when
// it ends they return to open, or to what another running exception says. Resolved ones keep their status, and remember
// the exception for when they are seen again. An exception can have a great many findings: the first ones change in the
// transaction of the decision, the rest some at a time in jobs, so that no event of the matcher waits for all of them.
import { sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'
import { inTransaction, type Tx, uuidList } from '../../platform/db/transaction.ts'

/** The most findings that one transaction locks and changes. */
const CHANGED_AT_ONCE = 1000
const QUEUE = 'security.exception'

type Change = 'begin' | 'end'

/** One that was decided later, and that runs, keeps the findings that it has. */
const giveStatus = (tx: Tx, exceptionId: string, ids: string, now: string) =>
  tx.db.execute(sql`
    update security_findings f set exception_id = e.id,
      status = case when f.status = 'resolved' then f.status else e.type end
    from security_exceptions e
    where e.id = ${exceptionId} and f.id = any(${ids}::uuid[]) and not exists (
      select 1 from security_exceptions later where later.id = f.exception_id and later.status = 'approved'
        and (later.expires_at is null or later.expires_at > ${now}::timestamptz)
        and (later.decided_at, later.id) > (e.decided_at, e.id))`)

/** The exception is over already, so that it is not found among those that still run. */
const takeStatusBack = (tx: Tx, exceptionId: string, ids: string, now: string) =>
  tx.db.execute(sql`
    with ended as (
      select f.id, other.id as other_id, other.type as other_type from security_findings f
      left join lateral (
        select e.id, e.type from security_exception_findings x join security_exceptions e on e.id = x.exception_id
        where x.finding_id = f.id and e.status = 'approved'
          and (e.expires_at is null or e.expires_at > ${now}::timestamptz)
        order by e.decided_at desc, e.id desc limit 1) other on true
      where f.id = any(${ids}::uuid[]) and f.exception_id = ${exceptionId})
    update security_findings f set exception_id = e.other_id,
      status = case when f.status = 'resolved' then f.status else coalesce(e.other_type, 'open') end
    from ended e where f.id = e.id`)

/** Changes the next findings of an exception, and asks for a job when some are left then. */
async function changeSome(hub: Hub, tx: Tx, exceptionId: string): Promise<void> {
  const [exception] = await tx.db.execute<{ changing: Change; changed_to: string | null }>(sql`
    select changing, changed_to from security_exceptions
    where id = ${exceptionId} and changing is not null for no key update`)
  if (!exception) return
  const { changing, changed_to: after } = exception
  // Locked in the order in which events lock them.
  const locked = await tx.db.execute<{ id: string }>(sql`
    select f.id from (
      select finding_id from security_exception_findings
      where exception_id = ${exceptionId} and finding_id > coalesce(${after}, '00000000-0000-0000-0000-000000000000')::uuid
      order by finding_id limit ${CHANGED_AT_ONCE}) x
    join security_findings f on f.id = x.finding_id order by f.id for no key update of f`)
  const ids = uuidList(locked.map(row => row.id))
  const change = changing === 'begin' ? giveStatus : takeStatusBack
  if (locked.length > 0) await change(tx, exceptionId, ids, new Date(hub.now()).toISOString())
  const isDone = locked.length < CHANGED_AT_ONCE
  await tx.db.execute(sql`
    update security_exceptions set changing = ${isDone ? null : changing}, changed_to = ${locked.at(-1)?.id ?? after},
      changed_count = changed_count + ${locked.length} where id = ${exceptionId}`)
  if (!isDone) hub.jobs.enqueue(tx, [{ queue: QUEUE, payload: { exception_id: exceptionId }, key: exceptionId }])
}

/** Begins or ends with the findings of an exception; what was still to be done to them is not. */
export async function changeFindings(hub: Hub, tx: Tx, exceptionId: string, changing: Change): Promise<void> {
  await tx.db.execute(sql`
    update security_exceptions set changing = ${changing}, changed_to = null, changed_count = 0 where id = ${exceptionId}`)
  await changeSome(hub, tx, exceptionId)
}

/** Goes on with exceptions whose job was lost. */
export async function resumeChanges(hub: Hub): Promise<void> {
  await inTransaction(hub.database.db, async tx => {
    const open = await tx.db.execute<{ id: string }>(sql`select id from security_exceptions where changing is not null`)
    if (open.length === 0) return
    hub.jobs.enqueue(
      tx,
      open.map(({ id }) => ({ queue: QUEUE, payload: { exception_id: id }, key: id })),
    )
  })
}

export function registerExceptionJobs(hub: Hub): void {
  hub.jobs.register(QUEUE, {
    handle: ({ exception_id: id }) => inTransaction(hub.database.db, tx => changeSome(hub, tx, String(id))),
  })
}
