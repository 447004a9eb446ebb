// Security data of a server or a company that is deleted for good (decision G-161). Scan hosts leave their feed as
// tombstones.
import { type SQL, sql } from 'drizzle-orm'
import { type Tx, uuidList } from '../platform/db/transaction.ts'

/**
 * Deletes scan hosts with their findings, events and scans. The hosts are locked first: a batch of events that is under
 * way ends before, and later ones find no host.
 */
async function deleteHosts(tx: Tx, companyId: string, which: SQL): Promise<void> {
  const rows = await tx.db.execute<{ host_id: string }>(
    sql`select host_id from scan_hosts where company_id = ${companyId} and ${which} order by host_id for update`,
  )
  const ids = rows.map(row => row.host_id)
  if (ids.length === 0) return
  const hosts = uuidList(ids)
  await tx.db.execute(sql`delete from security_finding_events where host_id = any(${hosts}::uuid[])`)
  await tx.db.execute(sql`delete from security_findings where host_id = any(${hosts}::uuid[])`)
  await tx.db.execute(sql`delete from scan_hosts where host_id = any(${hosts}::uuid[])`)
  tx.leaveTombstones('scan_hosts', companyId, ids)
}

export const deleteServerSecurity = (tx: Tx, companyId: string, serverId: string): Promise<void> =>
  deleteHosts(tx, companyId, sql`server_id = ${serverId}`)

export async function deleteCompanySecurity(tx: Tx, companyId: string): Promise<void> {
  await deleteHosts(tx, companyId, sql`true`)
  for (const table of [
    'security_finding_counts',
    'security_finding_name_counts',
    'security_finding_count_changes',
    'security_notices',
    'security_finding_days',
    'security_finding_day_changes',
  ])
    await tx.db.execute(sql`delete from ${sql.identifier(table)} where company_id = ${companyId}`)
}
