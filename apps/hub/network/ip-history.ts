// What happened to an address, newest first.
import { type SQL, sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { mergedPage } from '../platform/db/merged-page.ts'
import { collectionReadBy } from '../platform/http/collection.ts'
import { uuid } from '../platform/http/request-schema.ts'
import { anyObject, named, nullable, string, time } from '../platform/http/response-schema.ts'

const historyResponse = named('IpHistoryEntry', {
  at: time(),
  type: string(),
  actor: nullable(string()),
  details: anyObject(),
})

const HISTORY_COLUMNS = sql`at, type, actor, details, place`
const HISTORY_ORDER = sql`at desc, place desc, type`
const HISTORY_BACKWARDS = sql`at, place, type desc`

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
      {
        parts: historyParts(companyId, id, address),
        columns: HISTORY_COLUMNS,
        order: HISTORY_ORDER,
        backwards: HISTORY_BACKWARDS,
      },
      range,
    ),
})

/** `place` is where it stands among changes of one time. */
type HistoryRow = { at: Date; type: string; actor: string | null; details: Unchecked; place: string }
