// Under which exception that still runs a new finding begins: that of its vulnerability and package on its server.
import { sql } from 'drizzle-orm'
import type { RunningException } from '../../../../core/lifecycle/finding.ts'
import { type Tx, uuidList } from '../../platform/db/transaction.ts'

type Covered = { readonly vuln_id: string; readonly package_key: string }
type OnServer = { readonly companyId: string; readonly serverId: string; readonly columns: Covered }

/** Names what an exception covers on a server, whatever scan host tells of it (decision G-194). */
export const exceptionKeyOf = (serverId: string, { vuln_id, package_key }: Covered): string =>
  JSON.stringify([serverId, vuln_id, package_key])

/** The running exceptions of findings on these servers. */
export async function loadExceptions(tx: Tx, findings: readonly OnServer[]): Promise<Map<string, RunningException>> {
  if (findings.length === 0) return new Map()
  const companyIds = uuidList(new Set(findings.map(finding => finding.companyId)))
  const serverIds = uuidList(new Set(findings.map(finding => finding.serverId)))
  const vulnIds = JSON.stringify([...new Set(findings.map(finding => finding.columns.vuln_id))])
  const rows = await tx.db.execute<{
    server_id: string
    vuln_id: string
    package_key: string
    id: string
    type: RunningException['type']
  }>(sql`
    select f.server_id, f.vuln_id, f.package_key, e.id, e.type
    from security_exceptions e join security_findings f on f.exception_id = e.id and f.company_id = e.company_id
    where e.company_id = any(${companyIds}::uuid[]) and e.status = 'approved' and (e.expires_at is null or e.expires_at > now())
      and f.server_id = any(${serverIds}::uuid[])
      and f.vuln_id in (select x collate "C" from jsonb_array_elements_text(${vulnIds}::jsonb) x)
    order by e.decided_at`)
  return new Map(rows.map(row => [exceptionKeyOf(row.server_id, row), { id: row.id, type: row.type }]))
}

/** Lists findings that began under an exception among those that it covers, so that its end reaches them too. */
export async function linkExceptions(
  tx: Tx,
  created: readonly { readonly id: string; readonly exceptionId: string | null }[],
): Promise<void> {
  const links = created
    .filter(finding => finding.exceptionId !== null)
    .map(({ id, exceptionId }) => ({ finding_id: id, exception_id: exceptionId }))
  if (links.length === 0) return
  await tx.db.execute(sql`
    insert into security_exception_findings (exception_id, finding_id)
    select x.exception_id, x.finding_id
    from jsonb_to_recordset(${JSON.stringify(links)}::jsonb) as x (exception_id uuid, finding_id uuid)
    on conflict do nothing`)
}
