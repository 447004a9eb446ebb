// Releasing and reserving an address, and its history.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
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

type HistoryRow = { at: Date; type: string; actor: string | null; details: Unchecked }

const historyResponse = named('IpHistoryEntry', {
  at: time(),
  type: string(),
  actor: nullable(string()),
  details: anyObject(),
})

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
  present: row => ({ ...row, at: new Date(row.at) }),
  async read({ hub, companyId }, given, { limit, offset }) {
    const rows = await hub.database.db.execute<HistoryRow & { total: number }>(sql`
      select at, type, actor, details, (count(*) over ())::int as total from (
        select created_at as at, case action when 'ip_address.create' then 'registered'
            when 'ip_address.allocate' then 'allocated' when 'ip_address.release' then 'released' else 'changed' end as type,
          actor_name as actor, changes as details
        from audit_log where company_id = ${companyId} and subject_id = ${given.id ?? null} and subject_type = 'ip_address'
        union all
        select o.first_seen_at, 'seen', null, jsonb_build_object('server', s.name, 'interface', o.interface)
        from ip_observations o join servers s on s.id = o.server_id
        where o.company_id = ${companyId} and o.address = ${given.address ?? null}::inet
        union all
        select c.since, 'conflict', null, c.detail || jsonb_build_object('code', c.code) from resource_conditions c
        where c.company_id = ${companyId} and c.kind = 'ip_address' and c.resource_id = ${given.id ?? null}
          and c.since is not null) h
      order by at desc, type limit ${limit} offset ${offset}`)
    const total = rows[0]?.total ?? 0
    return { rows: rows.map(({ total: _total, ...row }) => row), total }
  },
})
