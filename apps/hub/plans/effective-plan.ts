// What a company may use: its own plan while it runs, else that of the next company above, with what was agreed for it
// alone (decision G-05).
import { sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import type { PlanOverrides } from '../platform/db/schema-identity.ts'

type EffectivePlan = {
  readonly code: string
  readonly agentQuota: number | null
  readonly metricsRetentionDays: number | null
  /** The company that owns the quota: the nearest with its own plan or quota, else the root. */
  readonly quotaCompanyId: string
  /** The most scan hosts; null: no limit. */
  readonly scanHosts: number | null
  /** How long events of findings are kept; null: for ever. */
  readonly scanHistoryDays: number | null
  readonly scanMinIntervalHours: number
  /** The nearest company with its own plan, else the root: it owns what overrides cannot change. */
  readonly planCompanyId: string
}

type PlanRow = {
  code: string
  agent_quota: number | null
  metrics_retention_days: number | null
  scan_hosts: number | null
  scan_history_days: number | null
  scan_min_interval_hours: number
}
type ChainRow = Omit<PlanRow, 'code'> & {
  id: string
  plan_overrides: PlanOverrides
  is_running: boolean
  code: string | null
}

const PLAN_COLUMNS = sql`p.code, p.agent_quota, p.metrics_retention_days, p.scan_hosts, p.scan_history_days,
  p.scan_min_interval_hours`
const NO_PLAN: PlanRow = {
  code: 'free',
  agent_quota: 3,
  metrics_retention_days: 7,
  scan_hosts: 1,
  scan_history_days: 30,
  scan_min_interval_hours: 24,
}

/**
 * The company's own plan while it has not expired, else its parent's effective plan, else free. The company's overrides
 * replace single values of it, until its plan expires.
 */
export async function effectivePlan(db: Executor, companyId: string): Promise<EffectivePlan> {
  const chain = await db.execute<ChainRow>(sql`
    with recursive chain as (
      select id, parent_id, plan_code, plan_expires_at, plan_overrides, 0 as depth from companies where id = ${companyId}
      union all select c.id, c.parent_id, c.plan_code, c.plan_expires_at, c.plan_overrides, chain.depth + 1
        from companies c join chain on c.id = chain.parent_id where chain.depth < 32)
    select chain.id, chain.plan_overrides, coalesce(chain.plan_expires_at > now(), true) as is_running,
      ${PLAN_COLUMNS}
    from chain left join plans p on p.code = chain.plan_code order by depth`)
  const overrides: PlanOverrides[] = []
  let base: PlanRow | null = null
  let quotaCompanyId: string | null = null
  let planCompanyId: string | null = null
  for (const row of chain) {
    if (!row.is_running) continue
    if (row.code !== null || row.plan_overrides.agent_quota !== undefined) quotaCompanyId ??= row.id
    overrides.push(row.plan_overrides)
    if (row.code !== null) {
      base = { ...row, code: row.code }
      planCompanyId = row.id
      break
    }
  }
  if (!base) {
    const [free] = await db.execute<PlanRow>(sql`select ${PLAN_COLUMNS} from plans p where p.code = 'free'`)
    base = free ?? NO_PLAN
  }
  const root = chain.at(-1)?.id ?? companyId
  // From the farthest ancestor to the company itself: the nearest override wins.
  const merged: PlanOverrides = Object.assign({}, ...overrides.reverse())
  return {
    code: base.code,
    agentQuota: merged.agent_quota === undefined ? base.agent_quota : merged.agent_quota,
    metricsRetentionDays:
      merged.metrics_retention_days === undefined ? base.metrics_retention_days : merged.metrics_retention_days,
    quotaCompanyId: quotaCompanyId ?? root,
    scanHosts: base.scan_hosts,
    scanHistoryDays: base.scan_history_days,
    scanMinIntervalHours: base.scan_min_interval_hours,
    planCompanyId: planCompanyId ?? root,
  }
}
