// Releasing and reserving an address: which may be, and what becomes of it.
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { editorOf } from '../resources/editor.ts'
import { type Found, lockRow } from '../resources/resource-rows.ts'
import { updateResource } from '../resources/write-resource.ts'
import { type IpAddressRow, ipAddressKind } from './ip-address.ts'

type Row = Found<IpAddressRow>

/** What an address loses with its release; its row stays, with its history. */
export const released = (nowMs: number) => ({
  status: 'released',
  server_id: null,
  interface: null,
  mac: null,
  dns_name: null,
  reserved_until: null,
  released_at: new Date(nowMs),
})

export const releaseAddress = (context: RouteContext, { id }: Row, note: string | null): Promise<Row> =>
  inTransaction(context.hub.database.db, async tx => {
    const before = await lockRow(ipAddressKind, tx, context.companyId, id)
    if (before.status === 'released') return before
    const columns = released(context.hub.now())
    return updateResource(tx, ipAddressKind, editorOf(context), id, {}, { action: 'release', columns, note })
  })

export const reserveAddress = (context: RouteContext, { id }: Row, until: string, note: string | null): Promise<Row> =>
  inTransaction(context.hub.database.db, async tx => {
    if (Date.parse(until) <= context.hub.now()) throw invalidField('until', 'future')
    const before = await lockRow(ipAddressKind, tx, context.companyId, id)
    if (before.status === 'active' && before.server_id !== null)
      throw invalidField('status', 'state_refused', { state: 'active' })
    const columns = { status: 'reserved', reserved_until: new Date(until), released_at: null }
    return updateResource(tx, ipAddressKind, editorOf(context), id, {}, { action: 'reserve', columns, note })
  })
