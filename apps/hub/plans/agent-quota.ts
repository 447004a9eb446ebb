// Which companies share an agent quota, and how much of it is used. A quota belongs to a company with its own plan or
// agent quota; all companies below it without one share it (decisions G-05, G-22).
import { sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { lockCompanies, type Tx, uuidList } from '../platform/db/transaction.ts'
import { effectivePlan } from './effective-plan.ts'

export type AgentQuota = {
  /** The code of the plan. */
  readonly plan: string
  /** null: no limit. */
  readonly max: number | null
  /** The companies that share the quota; agents of deleted companies do not count. */
  readonly companyIds: readonly string[]
}

export async function agentQuota(db: Executor, companyId: string): Promise<AgentQuota> {
  const { code, agentQuota, quotaCompanyId } = await effectivePlan(db, companyId)
  const rows = await db.execute<{ id: string }>(sql`
    with recursive sharing as (
      select id, 0 as depth from companies where id = ${quotaCompanyId}
      union all select c.id, s.depth + 1 from companies c join sharing s on c.parent_id = s.id
        where s.depth < 32 and c.deleted_at is null and not (coalesce(c.plan_expires_at > now(), true)
          and (c.plan_code is not null or jsonb_exists(c.plan_overrides, 'agent_quota'))))
    select id from sharing`)
  return { plan: code, max: agentQuota, companyIds: rows.map(row => row.id) }
}

/**
 * Locks the company together with the company whose quota it uses, so that nobody else takes from that quota until the
 * commit. Called in place of `lockCompany`, because both locks must be taken in the common order.
 */
export async function lockAgentQuota(tx: Tx, companyId: string): Promise<AgentQuota> {
  const { quotaCompanyId } = await effectivePlan(tx.db, companyId)
  await lockCompanies(tx, [companyId, quotaCompanyId])
  return agentQuota(tx.db, companyId)
}

/** Agents that count: all that are not revoked. */
export async function countedAgents(db: Executor, { companyIds }: AgentQuota): Promise<number> {
  const [row] = await db.execute<{ count: number }>(sql`
    select count(*)::int as count from monitoring_agents
    where company_id = any(${uuidList(companyIds)}::uuid[]) and state <> 'revoked'`)
  return row?.count ?? 0
}

/**
 * Sum of max_uses of the licences that count, active and exhausted ones (decision G-22), without the licence of an id.
 */
export async function licensedUses(
  db: Executor,
  { companyIds }: AgentQuota,
  exceptId: string | null = null,
): Promise<number> {
  const [row] = await db.execute<{ sum: number }>(sql`
    select coalesce(sum(max_uses), 0)::int as sum from monitoring_licenses
    where company_id = any(${uuidList(companyIds)}::uuid[]) and revoked_at is null and superseded_at is null
      and (expires_at is null or expires_at > now()) and id is distinct from ${exceptId}::uuid`)
  return row?.sum ?? 0
}
