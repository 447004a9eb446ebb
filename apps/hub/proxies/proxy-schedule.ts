// Proxies are probed by the clock: those whose time has come, the one that waits longest first.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { eachAlone } from '../platform/each-alone.ts'
import { hubEditor } from '../resources/editor.ts'
import { findRow } from '../resources/resource-rows.ts'
import { startRun } from '../resources/runs.ts'
import { proxyKind } from './proxy.ts'

const PROXIES_AT_ONCE = 200

/** Starts a test of every proxy that is due and has something to look at; one under way is left alone. */
export async function testDueProxies(hub: Hub): Promise<void> {
  const { db } = hub.database
  const due = await db.execute<{ id: string; company_id: string }>(sql`
    select p.id, p.company_id from proxies p where p.deleted_at is null and p.enabled and p.check_interval_seconds > 0
      and p.status not in ('planned', 'retired') and p.next_check_at <= now()
      and (p.mode = 'forward' or exists (
        select 1 from proxy_sites s where s.proxy_id = p.id and s.deleted_at is null and s.enabled))
    order by p.next_check_at limit ${PROXIES_AT_ONCE}`)
  await eachAlone(hub, 'cannot start the test of a proxy', due, ({ id, company_id }) =>
    inTransaction(db, async tx => {
      const proxy = await findRow(proxyKind, tx.db, company_id, id)
      await startRun(tx, hubEditor(hub, company_id), proxyKind, proxy, 'test')
    }),
  )
}
