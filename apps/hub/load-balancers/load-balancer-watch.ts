// What the hub does for load balancers by the clock: devices are read, and told the states of members; drained members
// end (draining.ts), and pools are judged whose members came or went.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { eachAlone } from '../platform/each-alone.ts'
import { hubEditor } from '../resources/editor.ts'
import type { Kind } from '../resources/kind.ts'
import { rowsOfIds } from '../resources/resource-rows.ts'
import { startRun } from '../resources/runs.ts'
import { updateResource } from '../resources/write-resource.ts'
import { isDrainOver } from './draining.ts'
import { lbMemberKind, WRITE } from './lb-member.ts'
import { judgePools, lbPoolKind } from './lb-pool.ts'
import { loadBalancerKind } from './load-balancer.ts'
import { RETRY_WAIT_SECONDS } from './write-member-state.ts'

const AT_ONCE = 500
const AGAIN_SECONDS = 60

type Due = { id: string; company_id: string }

/** Drained members that no connection is left of, or whose time is over, are disabled. */
async function endDraining(hub: Hub): Promise<void> {
  const { db } = hub.database
  const isOver = isDrainOver(hub.now())
  const due = await db.execute<Due>(sql`select id, company_id from lb_members where ${isOver} limit ${AT_ONCE}`)
  await eachAlone(hub, 'cannot end the draining of a member', due, ({ id, company_id }) =>
    inTransaction(db, async tx => {
      // Whoever enabled it meanwhile has the last word.
      const [still] = await tx.db.execute(sql`
        select 1 from lb_members where id = ${id} and ${isOver} for no key update`)
      const editor = hubEditor(hub, company_id)
      if (still) await updateResource(tx, lbMemberKind, editor, id, { admin_state: 'disabled' })
    }),
  )
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

/**
 * Devices whose interval has passed are read; one that failed is read again after a minute. The try counts from here
 * on, so that one whose run breaks does not come before the others again.
 */
async function syncDue(hub: Hub): Promise<void> {
  const { db } = hub.database
  const now = new Date(hub.now()).toISOString()
  const due = await db.execute<Due>(sql`
    update load_balancers set sync_tried_at = ${now}::timestamptz where id in (
      select id from load_balancers where deleted_at is null and sync_interval_seconds > 0
        and integration <> 'none' and status not in ('planned', 'retired')
        and (sync_tried_at is null or sync_tried_at <= ${now}::timestamptz - make_interval(secs =>
          case when sync_failed then least(sync_interval_seconds, ${AGAIN_SECONDS}) else sync_interval_seconds end))
      order by sync_tried_at nulls first limit ${AT_ONCE} for no key update skip locked)
    returning id, company_id`)
  await startAll(hub, loadBalancerKind as Kind, due, 'sync')
}

/** Members whose state the device did not take yet: less often the more often it was in vain. A try counts as above. */
async function writeDue(hub: Hub): Promise<void> {
  const { db } = hub.database
  const now = new Date(hub.now()).toISOString()
  const due = await db.execute<Due>(sql`
    update lb_members set written_at = ${now}::timestamptz where id in (
      select id from lb_members where deleted_at is null and pending_state is not null
        and (written_at is null or written_at <= ${now}::timestamptz - make_interval(secs => ${RETRY_WAIT_SECONDS}))
      order by written_at nulls first limit ${AT_ONCE} for no key update skip locked)
    returning id, company_id`)
  await startAll(hub, lbMemberKind as Kind, due, WRITE)
}

/** A run under way is left alone. */
async function startAll(hub: Hub, kind: Kind, due: readonly Due[], action: string): Promise<void> {
  const { db } = hub.database
  await eachAlone(hub, 'cannot start an act on a load balancer', due, ({ id, company_id }) =>
    inTransaction(db, async tx => {
      const [row] = await rowsOfIds(kind, tx.db, company_id, [id])
      if (row) await startRun(tx, hubEditor(hub, company_id), kind, row, action)
    }),
  )
}

export async function watchLoadBalancers(hub: Hub): Promise<void> {
  await syncDue(hub)
  await writeDue(hub)
  await endDraining(hub)
  await judgeAll(hub)
}
