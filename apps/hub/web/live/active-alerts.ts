// The active alerts of a company, read once in two seconds for all who look: lists filter, group and count them in
// memory. Rows of alerts that have not changed are not read again (known-rows.ts).
import { sql } from 'drizzle-orm'
import type { Severity } from '../../../../core/alerting/rules/rule.ts'
import type { AlertState, AlertType } from '../../../../core/lifecycle/alert.ts'
import type { Hub } from '../../hub-context.ts'
import { uuidList } from '../../platform/db/transaction.ts'
import { type RecordLayout, Records, type RowsReading, readRows } from './known-rows.ts'
import { type Freshness, RecentValues } from './recent-values.ts'
import { SharedTexts } from './shared-texts.ts'

export type AlertRow = {
  readonly id: string
  readonly type: AlertType
  readonly severity: Severity
  readonly state: AlertState
  readonly server_id: string
  readonly server_name: string
  readonly tags: readonly string[]
  readonly environment: string | null
  readonly role: string | null
  readonly datacenter: string | null
  readonly rule_id: string | null
  readonly rule_name: string | null
  readonly series_key: string
  readonly opened_at: string
  readonly ended_at: string | null
  readonly last_value: number | null
  readonly threshold: number | null
  readonly acknowledged_by: string | null
  readonly suppressed: boolean
  readonly flapping: boolean
  readonly group_id: string | null
  readonly group_size: number | null
}

const ALERTS_AGE_MS = 2_000
const COMPANIES_MAX = 200
/** More alerts at once are not looked through. */
const READ_MAX = 50_000
/** The id, and a hash of the transactions that wrote what is shown of it. */
const layout: RecordLayout = { recordBytes: 24, rowBytes: 24 }

/** Of the tables of `alertJoins`. */
export const alertColumns = sql`x.id, x.type, x.severity, x.state, x.server_id, s.name as server_name, s.tags, s.environment, s.role,
  s.datacenter, x.rule_id, r.name as rule_name, x.series_key, x.opened_at, coalesce(x.resolved_at, x.closed_at) as ended_at,
  x.last_value, x.threshold, u.name as acknowledged_by, x.suppressed, x.flapping, x.group_id,
  coalesce(cardinality(x.group_member_ids), x.group_total) as group_size`

export const alertJoins = sql`join servers s on s.id = x.server_id left join monitoring_rules r on r.id = x.rule_id
  left join users u on u.id = x.acknowledged_by`

/** The worst first, then what nobody is on, then the newest. */
const recordsSql = (companyId: string) => sql`
  select string_agg(uuid_send(id) || int8send(hashtextextended(concat_ws(' ', alert, server, rule, person), 0)),
    ''::bytea order by place) as records
  from (
    select x.id, x.xmin as alert, s.xmin as server, coalesce(r.xmin::text, '-') as rule,
      coalesce(u.xmin::text, '-') as person, row_number() over (
        order by array_position(array['critical', 'warning', 'info'], x.severity), x.state = 'acknowledged',
          x.opened_at desc, x.id) as place
    from monitoring_alerts x ${alertJoins}
    where x.company_id = ${companyId} and x.state in ('open', 'acknowledged')
    order by place limit ${READ_MAX}) shown`

export class ActiveAlerts {
  private readonly recent: RecentValues<RowsReading<AlertRow>>
  private readonly texts = new SharedTexts()

  constructor(private readonly hub: Hub) {
    this.recent = new RecentValues(ALERTS_AGE_MS, COMPANIES_MAX, hub.now)
  }

  async of(companyId: string, wanted: Freshness): Promise<readonly AlertRow[]> {
    return (await this.recent.of(companyId, wanted, () => this.read(companyId))).rows
  }

  private async read(companyId: string): Promise<RowsReading<AlertRow>> {
    const { db } = this.hub.database
    const before = this.recent.last(companyId, Number.POSITIVE_INFINITY)
    const [row] = await db.execute<{ records: Buffer | null }>(recordsSql(companyId))
    const read = async (ids: readonly string[]): Promise<ReadonlyMap<string, AlertRow>> => {
      const rows = await db.execute<AlertRow>(sql`
        select ${alertColumns} from monitoring_alerts x ${alertJoins}
        where x.company_id = ${companyId} and x.id = any(${uuidList(ids)}::uuid[])`)
      return new Map(rows.map(each => [each.id, this.kept(each)]))
    }
    const records = new Records(row?.records ?? Buffer.alloc(0), layout)
    return readRows(before, records, read, () => {})
  }

  private kept(row: AlertRow): AlertRow {
    const { texts } = this
    return {
      ...row,
      type: texts.text(row.type),
      severity: texts.text(row.severity),
      state: texts.text(row.state),
      tags: texts.list(row.tags),
      environment: texts.text(row.environment),
      role: texts.text(row.role),
      datacenter: texts.text(row.datacenter),
      rule_id: texts.text(row.rule_id),
      rule_name: texts.text(row.rule_name),
      series_key: texts.text(row.series_key),
      acknowledged_by: texts.text(row.acknowledged_by),
    }
  }
}
