// What companies are to be told, written in the transaction that applied the events. The rows keep the order of the
// commits; one dispatch job of a company works off all of its rows, so that nobody reads of an end before its beginning.
import { sql } from 'drizzle-orm'
import type { Alert, NotifyType } from '../../../core/lifecycle/alert.ts'
import { inTransaction, type Tx } from '../db/transaction.ts'
import type { Hub } from '../hub-context.ts'

/** Something to tell: the alert as it was when the event was applied. */
export type Told = { readonly type: NotifyType; readonly alert: Alert }

/** Older rows have lost their job with a hub. */
const LEFT_OVER_SECONDS = 15

const dispatchOf = (companyIds: Iterable<string>) =>
  [...new Set(companyIds)]
    .sort()
    .map(id => ({ queue: 'notifications.dispatch' as const, payload: { company_id: id }, key: id, group: id }))

/** People and systems are told after the commit. */
export async function tellLater(hub: Hub, tx: Tx, told: readonly Told[]): Promise<void> {
  if (told.length === 0) return
  const byCompany = Map.groupBy(told, item => item.alert.companyId)
  const rows = [...byCompany].map(([companyId, items]) => ({ company_id: companyId, told: items }))
  await tx.db.execute(sql`
    insert into notification_outbox (company_id, told)
    select company_id, told from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (company_id uuid, told jsonb)`)
  hub.jobs.enqueue(tx, dispatchOf(byCompany.keys()))
}

/** Starts a dispatch for what a lost hub left untold. */
export async function tellLeftOver(hub: Hub): Promise<void> {
  await inTransaction(hub.database.db, async tx => {
    const rows = await tx.db.execute<{ company_id: string }>(sql`
      select distinct company_id from notification_outbox
      where created_at < now() - make_interval(secs => ${LEFT_OVER_SECONDS})`)
    hub.jobs.enqueue(tx, dispatchOf(rows.map(row => row.company_id)))
  })
}

/** The oldest things that a company is to be told, locked: nobody else tells them meanwhile. */
export async function takeTold(
  tx: Tx,
  companyId: string,
  countMax: number,
): Promise<{ told: Told[]; rowCount: number }> {
  const rows = await tx.db.execute<{ position: string; told: Told[] }>(sql`
    select position, told from notification_outbox where company_id = ${companyId}
    order by position limit ${countMax} for update`)
  if (rows.length > 0)
    await tx.db.execute(sql`
      delete from notification_outbox where company_id = ${companyId}
        and position in (select jsonb_array_elements_text(${JSON.stringify(rows.map(row => row.position))}::jsonb)::bigint)`)
  return { told: rows.flatMap(row => row.told), rowCount: rows.length }
}
