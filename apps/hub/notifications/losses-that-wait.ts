// Of which lost servers people are told a little later, since a wide-area incident could claim them (GRP-007): only of
// those in a subnet or datacenter where the company has at least as many servers with an agent as an incident needs.
// How long: `notifications.group_wait`; whom an incident then claims: core/lifecycle/alerts-of-incident.ts.
import { type SQL, sql } from 'drizzle-orm'
import { GROUP_DEFAULTS } from '../../../core/alerting/evaluate/group-parameters.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'

/**
 * The groups of one dimension in which an incident could open: each group is checked once, and counting stops at the
 * server that makes it large enough.
 */
const forming = (column: SQL): SQL => sql`
  select g.company_id, g.key from (select distinct company_id, min, ${column} as key from lost where ${column} is not null) g
  where exists (
    select 1 from servers s where s.company_id = g.company_id and s.${column} = g.key and s.deleted_at is null
      and exists (select 1 from monitoring_agents a where a.server_id = s.id and a.state <> 'revoked')
    offset g.min - 1 limit 1)`

/** Of the lost servers, those that an incident could claim. */
export async function lossesThatWait(tx: Tx, serverIds: ReadonlySet<string>): Promise<{ id: string }[]> {
  if (serverIds.size === 0) return []
  return tx.db.execute<{ id: string }>(sql`
    with lost as materialized (
      select s.id, s.company_id, s.subnet_id, s.datacenter, coalesce(m.group_down_min, ${GROUP_DEFAULTS.min}::int) as min
      from servers s left join monitoring_settings m on m.company_id = s.company_id
      where s.id = any(${uuidList(serverIds)}::uuid[]) and s.deleted_at is null and (s.subnet_id is not null or s.datacenter is not null)),
    subnets as materialized (${forming(sql`subnet_id`)}),
    datacenters as materialized (${forming(sql`datacenter`)})
    select l.id from lost l where exists (select 1 from subnets g where g.company_id = l.company_id and g.key = l.subnet_id)
      or exists (select 1 from datacenters g where g.company_id = l.company_id and g.key = l.datacenter)`)
}
