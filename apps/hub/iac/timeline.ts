// The timeline of a run: what its people, its approvers, the clock and the applying did, in their order (RES-169).
import { sql } from 'drizzle-orm'
import type { RunRow } from '../manifest-runs/run-list.ts'
import type { RouteContext } from '../platform/http/route.ts'
import type { timelineTypes } from './run-response.ts'

type Row = {
  at: string
  type: (typeof timelineTypes)[number]
  flow: string | null
  step: string | null
  ticket: string | null
  item_id: string | null
  actor_id: string | null
  actor_name: string | null
  message: string | null
}
const ENTRIES_MAX = 5_000

export async function timelineOf({ hub }: RouteContext, run: RunRow) {
  const rows = await hub.database.db.execute<Row>(sql`
    select x.at, x.type, x.flow, x.step, x.ticket, x.item_id, x.actor_id, x.actor_name, x.message from (
      select e.at, 1 as source, e.id as place, e.type, null as flow, null as step, null::uuid as ticket, e.item_id, e.actor_id,
        e.actor_name, e.message
      from iac_run_events e where e.run_id = ${run.id}
      union all
      select a.at, 2, a.id, case a.type when 'opened' then 'ticket_opened' else a.type end, t.workflow->>'name',
        t.workflow->'steps'->a.step->>'name', t.id, t.item_id, a.user_id, coalesce(u.name, a.user_name),
        concat_ws(': ', case a.type
            when 'opened' then t.action || ' ' || t.kind || ' ' || t.name
            when 'decided' then a.decision || coalesce(' on behalf of ' || o.name, '')
            when 'delegated' then coalesce(f.name, '') || ' to ' || coalesce(d.name, '') end, a.comment)
      from approval_events a join approval_tickets t on t.id = a.ticket_id
        left join users u on u.id = a.user_id left join users o on o.id = a.origin_id
        left join users f on f.id = a.from_id left join users d on d.id = a.to_id
      where t.run_id = ${run.id} and t.company_id = ${run.companyId} and a.type <> 'commented') x
    order by x.at, x.source, x.place limit ${ENTRIES_MAX}`)
  return rows.map(row => ({
    at: new Date(row.at),
    type: row.type,
    flow: row.flow,
    step: row.step,
    ticket: row.ticket,
    item_id: row.item_id,
    actor: row.actor_id === null ? null : { id: row.actor_id, name: row.actor_name ?? '' },
    text: row.message ?? '',
  }))
}
