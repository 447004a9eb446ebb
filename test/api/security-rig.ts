// Findings and scan hosts for tests of what people see, written as the ingest leaves them.
import { randomUUID } from 'node:crypto'
import type { TestHub } from './hub-harness.ts'

export type SeededFinding = {
  id: string
  company_id: string
  server_id: string | null
  host_id: string
  finding_key: string
  kind: string
  vuln_id: string
  aliases: string[]
  package_key: string
  fix_status: string
  fixed_version: string
  severity_label: string
  kev: boolean
  risk: number
  priority: string
  status: string
  first_seen_at: string
  last_seen_at: string
  resolved_at: string | null
  resolved_reason: string | null
  sla_due_at: string | null
}

const hex = (bytes: number): string => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('hex')

/** A scan host of a company; attached to the server, if one is given. */
export async function seedHost(
  hub: TestHub,
  companyId: string,
  serverId: string | null = null,
  more: { enrolledAt?: Date; lastReportAt?: Date | null } = {},
): Promise<string> {
  const hostId = randomUUID()
  await hub.hub.database.client`
    insert into scan_hosts (host_id, company_id, server_id, public_key, machine_id_hash, hostname, enrolled_at, last_report_at)
    values (${hostId}, ${companyId}, ${serverId}, ${Buffer.alloc(32).toString('base64')}, ${hex(32)}, 'scanned',
      ${(more.enrolledAt ?? new Date()).toISOString()}, ${more.lastReportAt?.toISOString() ?? null})`
  return hostId
}

export function finding(companyId: string, hostId: string, more: Partial<SeededFinding> = {}): SeededFinding {
  const now = new Date().toISOString()
  return {
    id: randomUUID(),
    company_id: companyId,
    server_id: null,
    host_id: hostId,
    finding_key: hex(32),
    kind: 'vulnerability',
    vuln_id: 'CVE-2024-0001',
    aliases: [],
    package_key: 'openssl',
    fix_status: 'fixed',
    fixed_version: '2.0',
    severity_label: 'high',
    kev: false,
    risk: 80,
    priority: 'p2',
    status: 'open',
    first_seen_at: now,
    last_seen_at: now,
    resolved_at: null,
    resolved_reason: null,
    sla_due_at: null,
    ...more,
  }
}

/** Stores findings in one statement. */
export async function seedFindings(hub: TestHub, rows: readonly SeededFinding[]): Promise<void> {
  await hub.hub.database.client.unsafe(
    `insert into security_findings (id, company_id, server_id, host_id, finding_key, kind, vuln_id, aliases, ecosystem,
      package_key, packages, installed_version, fixed_version, fix_status, fix_channel, severity_label, minor, kernel,
      reboot_required, kev, risk, priority, status, first_seen_at, last_seen_at, resolved_at, resolved_reason, sla_due_at,
      last_event_seq, db_version)
    select x.id, x.company_id, x.server_id, x.host_id, x.finding_key, x.kind, x.vuln_id, x.aliases, 'debian:12', x.package_key,
      jsonb_build_array(jsonb_build_object('name', x.package_key, 'version', '1.0', 'arch', 'amd64')), '1.0', x.fixed_version,
      x.fix_status, 'standard', x.severity_label, false, false, false, x.kev, x.risk, x.priority, x.status, x.first_seen_at,
      x.last_seen_at, x.resolved_at, x.resolved_reason, x.sla_due_at, 1, 2026010101
    from jsonb_to_recordset($1::jsonb) as x (id uuid, company_id uuid, server_id uuid, host_id uuid, finding_key text,
      kind text, vuln_id text, aliases jsonb, package_key text, fixed_version text, fix_status text, severity_label text,
      kev boolean, risk smallint, priority text, status text, first_seen_at timestamptz, last_seen_at timestamptz,
      resolved_at timestamptz, resolved_reason text, sla_due_at timestamptz)`,
    [JSON.stringify(rows)],
  )
}
