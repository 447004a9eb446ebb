// What the reference data say of the vulnerabilities of a batch of events.
import { sql } from 'drizzle-orm'
import type { VulnerabilityReference } from '../../../../core/lifecycle/finding.ts'
import type { Tx } from '../../platform/db/transaction.ts'

/** Reference data by vuln_id, as far as the matcher told them. */
export async function loadReferences(
  tx: Tx,
  vulnIds: ReadonlySet<string>,
): Promise<Map<string, VulnerabilityReference>> {
  if (vulnIds.size === 0) return new Map()
  const rows = await tx.db.execute<{
    vuln_id: string
    kev: boolean | null
    kev_due_date: string | null
    epss: number | null
  }>(sql`
    select vuln_id, kev, kev_due_date::text as kev_due_date, epss from security_vulnerabilities
    where vuln_id in (select x collate "C" from jsonb_array_elements_text(${JSON.stringify([...vulnIds])}::jsonb) x)`)
  return new Map(
    rows.map(row => [row.vuln_id, { kev: row.kev ?? false, kevDueDate: row.kev_due_date, epss: row.epss }]),
  )
}
