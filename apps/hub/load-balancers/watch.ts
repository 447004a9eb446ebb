// What the hub looks after by the clock: drained members whose time is over, and pools whose members came or went.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { hubEditor } from '../resources/editor.ts'
import { updateResource } from '../resources/write-resource.ts'
import { lbMemberKind } from './lb-member.ts'
import { judgePools, lbPoolKind } from './lb-pool.ts'

const AT_ONCE = 500

type Due = { id: string; company_id: string }

/** Drained members that no connection is left of, or whose time is over, are disabled. */
async function endDraining(hub: Hub): Promise<void> {
  const { db } = hub.database
  const now = new Date(hub.now()).toISOString()
  const isOver = sql`admin_state = 'draining' and drain_then = 'disabled' and deleted_at is null
    and (drain_until <= ${now}::timestamptz or (active_connections = 0 and observed_at > drain_started_at))`
  const due = await db.execute<Due>(sql`select id, company_id from lb_members where ${isOver} limit ${AT_ONCE}`)
  for (const { id, company_id } of due)
    await inTransaction(db, async tx => {
      // Whoever enabled it meanwhile has the last word.
      const [still] = await tx.db.execute(sql`
        select 1 from lb_members where id = ${id} and ${isOver} for no key update`)
      const editor = hubEditor(hub, company_id)
      if (still) await updateResource(tx, lbMemberKind, editor, id, { admin_state: 'disabled' })
    })
}

/** States of members change with agents, alerts and servers, which know nothing of pools. */
async function judgeAll(hub: Hub): Promise<void> {
  const { db } = hub.database
  const companies = await db.execute<{ company_id: string }>(
    sql`select distinct company_id from lb_pools where deleted_at is null`,
  )
  for (const { company_id } of companies)
    await inTransaction(db, tx => judgePools(tx, { hub, companyId: company_id }, lbPoolKind.info, null))
}

export async function watchLoadBalancers(hub: Hub): Promise<void> {
  await endDraining(hub)
  await judgeAll(hub)
}
