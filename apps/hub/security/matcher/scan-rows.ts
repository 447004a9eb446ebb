// Rows of security_server_scans, one a scan host: its newest report (document 3 "Security ingest payloads").
import { sql } from 'drizzle-orm'
import { type Tx, uuidList } from '../../platform/db/transaction.ts'
import type { ScanEvent } from './event-parse.ts'
import type { KnownHost } from './known-hosts.ts'

/** A report that is newer than the stored one. */
export type NewScan = {
  readonly host: KnownHost
  readonly seq: number
  readonly occurredAt: string
  readonly scan: ScanEvent
}

/** The seq of the newest report of each host. */
export async function loadScanSeqs(tx: Tx, hostIds: Iterable<string>): Promise<Map<string, number>> {
  const rows = await tx.db.execute<{ host_id: string; last_event_seq: string }>(sql`
    select host_id, last_event_seq from security_server_scans where host_id = any(${uuidList(hostIds)}::uuid[])`)
  return new Map(rows.map(row => [row.host_id, Number(row.last_event_seq)]))
}

const recordOf = ({ host, seq, occurredAt, scan }: NewScan) => ({
  host_id: host.hostId,
  company_id: host.companyId,
  server_id: host.serverId,
  last_event_seq: seq,
  occurred_at: occurredAt,
  scanned_at: scan.scannedAt,
  scanner_version: scan.scannerVersion,
  db_version: scan.dbVersion,
  os: scan.os,
  kernel_running: scan.kernelRunning,
  reboot_required: scan.rebootRequired,
  livepatch_active: scan.livepatchActive,
  package_count: scan.packageCount,
  error_codes: scan.errorCodes,
  match_status: scan.matchStatus,
  release_support: scan.releaseSupport,
  open_findings: scan.openFindings,
})

/** Stores the newest report of each of these hosts, which the transaction has locked. */
export async function storeScans(tx: Tx, scans: readonly NewScan[]): Promise<void> {
  if (scans.length === 0) return
  const records = JSON.stringify(scans.map(recordOf))
  await tx.db.execute(sql`
    insert into security_server_scans (host_id, company_id, server_id, last_event_seq, scanned_at, scanner_version, db_version, os,
      kernel_running, reboot_required, livepatch_active, package_count, error_codes, match_status, release_support, open_findings)
    select x.host_id, x.company_id, x.server_id, x.last_event_seq, x.scanned_at, x.scanner_version, x.db_version, x.os,
      x.kernel_running, x.reboot_required, x.livepatch_active, x.package_count, x.error_codes, x.match_status, x.release_support,
      x.open_findings
    from jsonb_to_recordset(${records}::jsonb) as x (host_id uuid, company_id uuid, server_id uuid, last_event_seq bigint,
      scanned_at timestamptz, scanner_version text, db_version bigint, os jsonb, kernel_running text, reboot_required boolean,
      livepatch_active boolean, package_count integer, error_codes jsonb, match_status text, release_support text, open_findings integer)
    on conflict (host_id) do update set server_id = excluded.server_id, last_event_seq = excluded.last_event_seq,
      scanned_at = excluded.scanned_at, scanner_version = excluded.scanner_version, db_version = excluded.db_version,
      os = excluded.os, kernel_running = excluded.kernel_running, reboot_required = excluded.reboot_required,
      livepatch_active = excluded.livepatch_active, package_count = excluded.package_count, error_codes = excluded.error_codes,
      match_status = excluded.match_status, release_support = excluded.release_support, open_findings = excluded.open_findings`)
  await tx.db.execute(sql`
    update scan_hosts h set last_report_at = greatest(h.last_report_at, x.occurred_at), stale_told_at = null,
      scanner_version = coalesce(x.scanner_version, h.scanner_version)
    from jsonb_to_recordset(${records}::jsonb) as x (host_id uuid, occurred_at timestamptz, scanner_version text)
    where h.host_id = x.host_id`)
}

/**
 * Hosts that a first database has compared without a new report: the reports stay as they were, but they are not
 * uncompared any more (decision G-199). Behind the findings of the batch, one of which may be the end of the release.
 */
export async function markCompared(tx: Tx, dbVersionByHost: ReadonlyMap<string, number>): Promise<void> {
  if (dbVersionByHost.size === 0) return
  const records = JSON.stringify([...dbVersionByHost].map(([host_id, db_version]) => ({ host_id, db_version })))
  await tx.db.execute(sql`
    update security_server_scans s set db_version = x.db_version, match_status = case when exists (
      select from security_findings f where f.host_id = s.host_id and f.kind = 'release_eol' and f.status <> 'resolved')
      then 'release_eol' else 'ok' end
    from jsonb_to_recordset(${records}::jsonb) as x (host_id uuid, db_version bigint)
    where s.host_id = x.host_id and s.match_status = 'no_db'`)
}
