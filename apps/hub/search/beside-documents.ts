// What search finds without documents of its own. A document for each alert would cost more than all else that its
// event costs, so active alerts are found by the documents of their rules and servers. Collectors are of no company.
import { type SQL, sql } from 'drizzle-orm'
import { collectorStatus } from '../../../core/lifecycle/collector-shown-online.ts'
import { activeStates } from '../alerts/alert-list.ts'
import type { Db } from '../platform/db/connect.ts'
import { likePattern } from '../platform/db/page-of-rows.ts'
import { uuidList } from '../platform/db/transaction.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'

/** What was found, before it is ranked. */
export type Candidate = {
  kind: string
  resource_id: string
  name: string
  subtitle: string | null
  /** In lower case. */
  text: string
  exact: string[]
  health: string | null
  status: string | null
  updated_at: Date | string
  similarity: number
}

/** Of alerts by each way, and of collectors. */
const EACH_MAX = 100
/** Kinds whose documents lead to alerts. */
export const alertOwners: readonly string[] = ['server', 'rule']

type AlertRow = Omit<Candidate, 'kind' | 'exact' | 'similarity' | 'text'> & {
  server_id: string
  rule_id: string | null
}

/** Active alerts of servers and rules that were found, and the one with an id, at most some of each. */
export async function alertsOf(
  db: Db,
  companyId: string,
  q: string,
  owners: readonly Candidate[],
): Promise<Candidate[]> {
  if (owners.length === 0 && !isUuid(q)) return []
  const idsOf = (kind: string) => uuidList(owners.flatMap(each => (each.kind === kind ? [each.resource_id] : [])))
  // Each way has an index of active alerts alone. Of an order by time PostgreSQL would read all alerts of the company.
  const some = (condition: SQL) => sql`(select a.id from monitoring_alerts a
    where a.company_id = ${companyId} and a.state in ${activeStates} and ${condition} limit ${EACH_MAX})`
  const ways = [
    some(sql`a.server_id = any(${idsOf('server')}::uuid[])`),
    some(sql`a.rule_id = any(${idsOf('rule')}::uuid[])`),
    ...(isUuid(q) ? [some(sql`a.id = ${q}`)] : []),
  ]
  const rows = await db.execute<AlertRow>(sql`
    with found as materialized (${sql.join(ways, sql` union `)})
    select a.id as resource_id, concat_ws(': ', coalesce(r.name, a.type), s.name) as name, a.series_key as subtitle,
      case when a.severity in ('critical', 'warning') then a.severity end as health, a.state as status,
      a.opened_at as updated_at, a.server_id, a.rule_id
    from found f join monitoring_alerts a on a.id = f.id join servers s on s.id = a.server_id
      left join monitoring_rules r on r.id = a.rule_id`)
  const textOf = new Map(owners.map(each => [each.resource_id, each.text]))
  return rows.map(({ server_id, rule_id, ...row }) => ({
    ...row,
    kind: 'alert',
    text: [row.name.toLowerCase(), textOf.get(rule_id ?? ''), textOf.get(server_id)].filter(Boolean).join(' '),
    exact: [],
    similarity: 1,
  }))
}

type Instant = Date | string
type CollectorRow = {
  id: string
  name: string
  base_url: string | null
  last_heartbeat_at: Instant | null
  at: Instant
}

/** The collectors of which the name or the address holds every word, or the one with an id. */
export async function collectorsOf({ hub }: RouteContext, q: string, words: readonly string[]): Promise<Candidate[]> {
  const holdsAll = sql.join(
    words.map(word => sql`lower(concat_ws(' ', name, base_url)) like ${likePattern(word)}`),
    sql` and `,
  )
  const rows = await hub.database.db.execute<CollectorRow>(sql`
    select id, name, base_url, last_heartbeat_at, coalesce(last_heartbeat_at, created_at) as at
    from monitoring_collectors where id::text = ${q} or (${holdsAll}) order by name limit ${EACH_MAX}`)
  return rows.map(row => ({
    kind: 'collector',
    resource_id: row.id,
    name: row.name,
    subtitle: row.base_url,
    text: `${row.name} ${row.base_url ?? ''}`.toLowerCase(),
    exact: [],
    health: null,
    status: collectorStatus(
      row.last_heartbeat_at === null ? null : new Date(row.last_heartbeat_at).getTime(),
      hub.now(),
    ),
    updated_at: row.at,
    similarity: 1,
  }))
}
