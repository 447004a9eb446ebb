// What happened to a connection, newest first: changes from the audit log, tests, and changes of its state.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { collectionReadBy } from '../platform/http/collection.ts'
import { oneOf, uuid } from '../platform/http/request-schema.ts'
import { anyObject, named, nullable, string, time, wordOf } from '../platform/http/response-schema.ts'

const entryTypes = ['change', 'test', 'state'] as const

type Entry = {
  at: Date | string
  type: (typeof entryTypes)[number]
  actor: string | null
  action: string | null
  changes: Unchecked | null
  result: Unchecked | null
  state: string | null
}

const entryResponse = named('ConnectionHistoryEntry', {
  at: time(),
  type: wordOf(entryTypes),
  actor: nullable(string()),
  action: nullable(string()),
  changes: nullable(anyObject()),
  result: nullable(anyObject()),
  state: nullable(string()),
})

export const connectionHistory = collectionReadBy<
  Entry,
  typeof entryResponse,
  { type: ReturnType<typeof oneOf<typeof entryTypes>> },
  { id: ReturnType<typeof uuid> }
>({
  filters: { type: oneOf(entryTypes) },
  within: { id: uuid() },
  response: entryResponse,
  present: row => ({ ...row, at: new Date(row.at) }),
  async read({ hub, companyId }, { id = null, type = null }, { limit, offset }) {
    const rows = await hub.database.db.execute<Entry & { total: number }>(sql`
      select at, type, actor, action, changes, result, state, (count(*) over ())::int as total from (
        select created_at as at, 'change' as type, actor_name as actor, split_part(action, '.', 2) as action, changes,
          null::jsonb as result, null as state, position as place
        from audit_log where company_id = ${companyId} and subject_id = ${id} and subject_type = 'connection'
          and action <> 'connection.test'
        union all
        select r.queued_at, 'test', u.name, null, null, coalesce(r.result, '{}') || jsonb_strip_nulls(jsonb_build_object(
          'run_id', r.id, 'run_state', r.state, 'error', coalesce(r.error, r.result ->> 'error'))), null, 0
        from resource_runs r left join users u on u.id = r.requested_by
        where r.company_id = ${companyId} and r.kind = 'connection' and r.resource_id = ${id}::uuid and r.action = 'test'
        union all
        select s.at, 'state', null, null, null, null, s.state, 0 from connection_states s
        join connections c on c.id = s.connection_id and c.company_id = ${companyId} where s.connection_id = ${id}::uuid) h
      where ${type}::text is null or type = ${type}
      order by at desc, type, place desc limit ${limit} offset ${offset}`)
    const total = rows[0]?.total ?? 0
    return { rows: rows.map(({ total: _total, ...row }) => row), total }
  },
})
