// What an exception does to its findings (decisions G-154, G-170): while it runs it gives them their status, and when
// it ends they return to open, or to what another running exception says. Resolved ones keep their status, and remember
// the exception for when they are seen again.
import { sql } from 'drizzle-orm'
import type { Tx } from '../../platform/db/transaction.ts'

/** Locks the findings of an exception, in the order in which events lock them. */
const lockFindings = (tx: Tx, exceptionId: string) =>
  tx.db.execute(sql`
    select count(*) from (
      select f.id from security_findings f join security_exception_findings x on x.finding_id = f.id
      where x.exception_id = ${exceptionId} order by f.id for no key update of f) locked`)

export async function beginException(tx: Tx, exceptionId: string, type: string): Promise<void> {
  await lockFindings(tx, exceptionId)
  await tx.db.execute(sql`
    update security_findings f set exception_id = ${exceptionId},
      status = case when f.status = 'resolved' then f.status else ${type} end
    from security_exception_findings x where x.exception_id = ${exceptionId} and x.finding_id = f.id`)
}

/** The exception is over already, so that it is not found among those that still run. */
export async function endException(tx: Tx, exceptionId: string, nowMs: number): Promise<void> {
  await lockFindings(tx, exceptionId)
  await tx.db.execute(sql`
    with ended as (
      select f.id, other.id as other_id, other.type as other_type from security_findings f
      left join lateral (
        select e.id, e.type from security_exception_findings x join security_exceptions e on e.id = x.exception_id
        where x.finding_id = f.id and e.status = 'approved'
          and (e.expires_at is null or e.expires_at > ${new Date(nowMs).toISOString()}::timestamptz)
        order by e.decided_at desc, e.id desc limit 1) other on true
      where f.exception_id = ${exceptionId})
    update security_findings f set exception_id = e.other_id,
      status = case when f.status = 'resolved' then f.status else coalesce(e.other_type, 'open') end
    from ended e where f.id = e.id`)
}
