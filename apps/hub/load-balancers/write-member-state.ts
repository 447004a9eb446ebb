// Telling a device what people want of a member: asked again until it confirms; after three failures people
// are told.
import { type SQL, sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { setConditions } from '../resources/conditions.ts'
import type { Editor } from '../resources/editor.ts'
import { findRow } from '../resources/resource-rows.ts'
import { RunFailed } from '../resources/runs.ts'
import { writeDevice } from './device-integration.ts'
import { addressOf, type LbMember } from './lb-member.ts'
import { lbPoolKind } from './lb-pool.ts'
import { type LoadBalancer, loadBalancerKind } from './load-balancer.ts'

const FAILURES_TO_TELL = 3
const RETRY_SECONDS = 15
const RETRY_SECONDS_MAX = 600

/** How long until a device is told again that did not take a state: the longer, the more often it was in vain. */
export const RETRY_WAIT_SECONDS: SQL = sql`least(write_failures * ${RETRY_SECONDS}, ${RETRY_SECONDS_MAX})`

/** Opens or ends the condition of the device by the members that it was told of in vain. */
async function tellFailures(tx: Tx, device: LoadBalancer, error: string | null): Promise<void> {
  const members = await tx.db.execute<{ name: string }>(sql`
    select m.name from lb_members m join lb_pools p on p.id = m.pool_id where p.device_id = ${device.id}
      and m.deleted_at is null and m.pending_state is not null and m.write_failures >= ${FAILURES_TO_TELL}
    order by m.name limit 20`)
  const detail = { members: members.map(member => member.name), error: error ?? '' }
  const found = members.length === 0 ? [] : [{ code: 'device_write_failed', detail }]
  const { info } = loadBalancerKind
  await setConditions(tx, info, device.company_id, [device.id], ['device_write_failed'], new Map([[device.id, found]]))
}

async function writeState(editor: Editor, member: LbMember): Promise<Unchecked> {
  const { hub, companyId } = editor
  const { db } = hub.database
  const state = member.pending_state
  if (state === null) return { written: false }
  const pool = await findRow(lbPoolKind, db, companyId, member.pool_id)
  const device = await findRow(loadBalancerKind, db, companyId, pool.device_id)
  let error: string | null = null
  try {
    const { name, port, admin_state } = member
    const address = await addressOf(db, member)
    await writeDevice(editor, device, { pool: pool.name, member: name, address, port, state: admin_state })
  } catch (fault) {
    if (!(fault instanceof RunFailed)) throw fault
    error = fault.message
  }
  const now = new Date(hub.now()).toISOString()
  await inTransaction(db, async tx => {
    // Another state that is wanted by now stays pending, and is told of next.
    await tx.db.execute(sql`
      update lb_members set written_at = ${now}::timestamptz,
        write_failures = case when ${error === null} then 0 else write_failures + 1 end,
        pending_state = case when ${error === null} then nullif(pending_state, ${member.admin_state}) else pending_state end
      where company_id = ${companyId} and id = ${member.id}`)
    await tellFailures(tx, device, error)
  })
  if (error !== null) throw new RunFailed(error)
  return { written: true, state: member.admin_state }
}

export const writeStateAct = {
  work: ({ editor, row }: { readonly editor: Editor; readonly row: LbMember }): Promise<Unchecked> =>
    writeState(editor, row),
}
