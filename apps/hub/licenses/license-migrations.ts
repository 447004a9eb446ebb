// The end of a regenerated licence (decisions G-19, G-20): only here does a licence end agents. One that expires or is
// revoked lets nobody enroll any more, and the agents that enrolled with it work on.
import { sql } from 'drizzle-orm'
import { DAY_MS } from '../../../core/limits.ts'
import { revokeAgents } from '../agents/agents.ts'
import { purgeAtCollectors } from '../collectors/collector-jobs.ts'
import type { Hub } from '../hub-context.ts'
import { inTransaction, type Tx, uuidList } from '../platform/db/transaction.ts'

/** How long agents may stay on a licence that was regenerated. */
export const MIGRATE_MS = 30 * DAY_MS

/**
 * Agents that are still on a regenerated licence after migrate_until are revoked, and the data of servers that are left
 * without an agent are deleted (decisions G-19, G-20). An agent whose last rotation failed at the hub or collector is
 * spared.
 */
export async function endLicenseMigrations(hub: Hub): Promise<void> {
  if (!hub.config['agents.token_rotation']) {
    hub.log.info('token rotation is off: agents of superseded licences are left alone')
    return
  }
  const due = await hub.database.db.execute<{ id: string; company_id: string }>(sql`
    select l.id, l.company_id from monitoring_licenses l
    where l.superseded_at is not null and l.migrate_until <= now() and exists (
      select 1 from monitoring_agents a where a.license_id = l.id and a.state <> 'revoked' and a.rotation_failed_at is null)`)
  for (const license of due)
    await inTransaction(hub.database.db, async tx => {
      const agents = await tx.db.execute<{ id: string; server_id: string | null }>(sql`
        select id, server_id from monitoring_agents where license_id = ${license.id} and state <> 'revoked'
          and rotation_failed_at is null for update`)
      await revokeAgents(
        hub,
        tx,
        agents.map(agent => agent.id),
        'license_superseded',
      )
      const serverIds = [...new Set(agents.map(agent => agent.server_id).filter(id => id !== null))]
      const alone = await tx.db.execute<{ id: string }>(sql`
        select s.id from servers s where s.id = any(${uuidList(serverIds)}::uuid[]) and not exists (
          select 1 from monitoring_agents a where a.server_id = s.id and a.state <> 'revoked')`)
      for (const { id } of alone)
        await purgeAtCollectors(hub, tx, { scope: 'server', company_id: license.company_id, id })
    })
}

/** Follows the successors of a licence to the newest one: an agent that rotates moves there. */
export async function newestLicense(tx: Tx, licenseId: string): Promise<string> {
  const rows = await tx.db.execute<{ id: string }>(sql`
    with recursive chain as (
      select id, superseded_by, 0 as depth from monitoring_licenses where id = any(${uuidList([licenseId])}::uuid[])
      union all select l.id, l.superseded_by, c.depth + 1 from monitoring_licenses l join chain c on l.id = c.superseded_by
        where c.depth < 1000)
    select id from chain order by depth desc limit 1`)
  return rows[0]?.id ?? licenseId
}
