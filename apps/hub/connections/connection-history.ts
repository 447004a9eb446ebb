// What happened to a connection, newest first: changes from the audit log, tests, and changes of its state.
import { type SQL, sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { mergedPage } from '../platform/db/merged-page.ts'
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
  /** Where it stands among changes of one time. */
  place: string
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

const COLUMNS = sql`at, type, actor, action, changes, result, state, place`
const ORDER = sql`at desc, place desc, type`
const BACKWARDS = sql`at, place, type desc`

const partsOf = (companyId: string, id: string | null): Readonly<Record<(typeof entryTypes)[number], SQL>> => ({
  change: sql`
    select created_at as at, 'change' as type, actor_name as actor, split_part(action, '.', 2) as action, changes,
      null::jsonb as result, null as state, position as place
    from audit_log where company_id = ${companyId} and subject_id = ${id} and subject_type = 'connection'
      and action <> 'connection.test'`,
  test: sql`
    select r.queued_at as at, 'test' as type, u.name as actor, null as action, null::jsonb as changes,
      coalesce(r.result, '{}') || jsonb_strip_nulls(jsonb_build_object(
        'run_id', r.id, 'run_state', r.state, 'error', coalesce(r.error, r.result ->> 'error'))) as result,
      null as state, 0::bigint as place
    from resource_runs r left join users u on u.id = r.requested_by
    where r.company_id = ${companyId} and r.kind = 'connection' and r.resource_id = ${id}::uuid and r.action = 'test'`,
  state: sql`
    select s.at, 'state' as type, null as actor, null as action, null::jsonb as changes, null::jsonb as result, s.state,
      0::bigint as place
    from connection_states s join connections c on c.id = s.connection_id and c.company_id = ${companyId}
    where s.connection_id = ${id}::uuid`,
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
  present: ({ place, ...row }) => ({ ...row, at: new Date(row.at) }),
  read({ hub, companyId }, { id = null, type }, range) {
    const of = partsOf(companyId, id)
    const parts = type === undefined ? Object.values(of) : [of[type]]
    return mergedPage<Entry>(hub.database.db, { parts, columns: COLUMNS, order: ORDER, backwards: BACKWARDS }, range)
  },
})
