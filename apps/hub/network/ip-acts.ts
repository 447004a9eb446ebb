// Releasing and reserving an address, and its history.
import { type SQL, sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { mergedPage } from '../platform/db/merged-page.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { collectionReadBy } from '../platform/http/collection.ts'
import { uuid } from '../platform/http/request-schema.ts'
import { anyObject, named, nullable, string, time } from '../platform/http/response-schema.ts'
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

/** `place` is where it stands among changes of one time. */
type HistoryRow = { at: Date; type: string; actor: string | null; details: Unchecked; place: string }

const historyResponse = named('IpHistoryEntry', {
  at: time(),
  type: string(),
  actor: nullable(string()),
  details: anyObject(),
})

const HISTORY_COLUMNS = sql`at, type, actor, details, place`
const HISTORY_ORDER = sql`at desc, place desc, type`

const historyParts = (companyId: string, id: string | null, address: string | null): readonly SQL[] => [
  sql`
    select created_at as at, case action when 'ip_address.create' then 'registered'
        when 'ip_address.allocate' then 'allocated' when 'ip_address.release' then 'released' else 'changed' end as type,
      actor_name as actor, changes as details, position as place
    from audit_log where company_id = ${companyId} and subject_id = ${id} and subject_type = 'ip_address'`,
  sql`
    select o.first_seen_at as at, 'seen' as type, null as actor,
      jsonb_build_object('server', s.name, 'interface', o.interface) as details, 0::bigint as place
    from ip_observations o join servers s on s.id = o.server_id
    where o.company_id = ${companyId} and o.address = ${address}::inet`,
  sql`
    select c.since as at, 'conflict' as type, null as actor, c.detail || jsonb_build_object('code', c.code) as details,
      0::bigint as place
    from resource_conditions c where c.company_id = ${companyId} and c.kind = 'ip_address' and c.resource_id = ${id}::uuid
      and c.since is not null`,
]

/** Newest first: from the audit log, from what agents saw first, and from conflicts. */
export const ipHistory = collectionReadBy<
  HistoryRow,
  typeof historyResponse,
  Record<never, never>,
  { id: ReturnType<typeof uuid>; address: ReturnType<typeof string> }
>({
  filters: {},
  within: { id: uuid(), address: string() },
  response: historyResponse,
  present: ({ place, ...row }) => ({ ...row, at: new Date(row.at) }),
  read: ({ hub, companyId }, { id = null, address = null }, range) =>
    mergedPage<HistoryRow>(
      hub.database.db,
      { parts: historyParts(companyId, id, address), columns: HISTORY_COLUMNS, order: HISTORY_ORDER },
      range,
    ),
})
