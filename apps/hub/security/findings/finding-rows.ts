// Rows of security_findings: how they are read for an event, and written, many at a time.
import { sql } from 'drizzle-orm'
import type { Finding, RunningException } from '../../../../core/lifecycle/finding.ts'
import type { FindingColumns } from '../../../../core/matching/finding-event.ts'
import { statementOfRows } from '../../platform/db/statement-of-rows.ts'
import type { Tx } from '../../platform/db/transaction.ts'

/** A finding with the exception that gave it its status, when that one still runs. */
export type StoredFinding = { readonly finding: Finding; readonly exception: RunningException | null }

type Row = Omit<FindingColumns, 'cvss_score' | 'cvss_vector' | 'score_source'> & {
  id: string
  company_id: string
  server_id: string | null
  host_id: string
  finding_key: string
  cvss_score: number | null
  cvss_vector: string | null
  score_source: string | null
  kev: boolean
  kev_due_date: string | null
  epss: number | null
  risk: number
  priority: Finding['priority']
  status: Finding['status']
  exception_id: string | null
  running_type: RunningException['type'] | null
  first_seen_ms: number
  last_seen_ms: number
  reopened_ms: number | null
  resolved_ms: number | null
  resolved_reason: Finding['resolvedReason']
  sla_due_ms: number | null
  sla_told: string | null
  last_event_seq: string
  db_version: string
}

const columnsOf = (row: Row): FindingColumns => ({
  kind: row.kind,
  vuln_id: row.vuln_id,
  aliases: row.aliases,
  advisory_ids: row.advisory_ids,
  ecosystem: row.ecosystem,
  package_key: row.package_key,
  packages: row.packages,
  installed_version: row.installed_version,
  fixed_version: row.fixed_version,
  fix_status: row.fix_status,
  fix_channel: row.fix_channel,
  severity_label: row.severity_label,
  minor: row.minor,
  kernel: row.kernel,
  reboot_required: row.reboot_required,
  no_distro_fix: row.no_distro_fix,
  eol_date: row.eol_date,
  upgrade_to: row.upgrade_to,
  ...(row.cvss_score === null ? {} : { cvss_score: row.cvss_score }),
  ...(row.cvss_vector === null ? {} : { cvss_vector: row.cvss_vector }),
  ...(row.score_source === null ? {} : { score_source: row.score_source }),
})

function storedOf(row: Row): StoredFinding {
  const finding: Finding = {
    id: row.id,
    companyId: row.company_id,
    serverId: row.server_id,
    hostId: row.host_id,
    findingKey: row.finding_key,
    columns: columnsOf(row),
    kev: row.kev,
    kevDueDate: row.kev_due_date,
    epss: row.epss,
    risk: row.risk,
    priority: row.priority,
    slaDueAtMs: row.sla_due_ms,
    status: row.status,
    exceptionId: row.exception_id,
    firstSeenAtMs: row.first_seen_ms,
    lastSeenAtMs: row.last_seen_ms,
    reopenedAtMs: row.reopened_ms,
    resolvedAtMs: row.resolved_ms,
    resolvedReason: row.resolved_reason,
    slaTold: row.sla_told,
    lastEventSeq: Number(row.last_event_seq),
    dbVersion: Number(row.db_version),
  }
  const exception =
    row.exception_id !== null && row.running_type !== null ? { id: row.exception_id, type: row.running_type } : null
  return { finding, exception }
}

const ms = (column: string) => sql.raw(`round(extract(epoch from f.${column}) * 1000)::float8`)

type FindingId = { readonly companyId: string; readonly findingKey: string }

/** Names a finding in a map. */
export const findingKeyOf = ({ companyId, findingKey }: FindingId): string => `${companyId} ${findingKey}`

const lock = statementOfRows(
  { company_id: 'uuid', finding_key: 'text' },
  keys => sql`
    select f.id, f.company_id, f.server_id, f.host_id, f.finding_key, f.kind, f.vuln_id, f.aliases, f.advisory_ids, f.ecosystem,
      f.package_key, f.packages, f.installed_version, f.fixed_version, f.fix_status, f.fix_channel, f.no_distro_fix,
      f.eol_date, f.upgrade_to, f.severity_label, f.minor, f.kernel, f.reboot_required, f.cvss_score, f.cvss_vector,
      f.score_source, f.kev, f.kev_due_date::text as kev_due_date, f.epss, f.risk, f.priority, f.status, f.exception_id,
      e.type as running_type, ${ms('first_seen_at')} as first_seen_ms, ${ms('last_seen_at')} as last_seen_ms,
      ${ms('reopened_at')} as reopened_ms, ${ms('resolved_at')} as resolved_ms, f.resolved_reason,
      ${ms('sla_due_at')} as sla_due_ms, f.sla_told, f.last_event_seq, f.db_version
    from (select distinct x.company_id, x.finding_key collate "C" as finding_key from ${keys}) k
      join security_findings f on f.company_id = k.company_id and f.finding_key = k.finding_key
      left join security_exceptions e on e.id = f.exception_id and e.status = 'approved'
        and (e.expires_at is null or e.expires_at > now())
    order by f.id for no key update of f`,
)

/** Locks the findings of these keys, in the order of their ids, and reads them. */
export async function lockFindings(tx: Tx, ids: readonly FindingId[]): Promise<Map<string, StoredFinding>> {
  const keys = ids.map(({ companyId, findingKey }) => ({ company_id: companyId, finding_key: findingKey }))
  const rows = await tx.db.execute<Row>(lock(keys))
  return new Map(
    rows.map(row => [findingKeyOf({ companyId: row.company_id, findingKey: row.finding_key }), storedOf(row)]),
  )
}

const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

const recordOf = (finding: Finding) => ({
  ...finding.columns,
  id: finding.id,
  company_id: finding.companyId,
  server_id: finding.serverId,
  host_id: finding.hostId,
  finding_key: finding.findingKey,
  kev: finding.kev,
  kev_due_date: finding.kevDueDate,
  epss: finding.epss,
  risk: finding.risk,
  priority: finding.priority,
  status: finding.status,
  exception_id: finding.exceptionId,
  first_seen_at: iso(finding.firstSeenAtMs),
  last_seen_at: iso(finding.lastSeenAtMs),
  reopened_at: iso(finding.reopenedAtMs),
  resolved_at: iso(finding.resolvedAtMs),
  resolved_reason: finding.resolvedReason,
  sla_due_at: iso(finding.slaDueAtMs),
  sla_told: finding.slaTold,
  last_event_seq: finding.lastEventSeq,
  db_version: finding.dbVersion,
})

/** Every column that an event may change, with its type. */
const COLUMNS = {
  server_id: 'uuid',
  host_id: 'uuid',
  kind: 'text',
  vuln_id: 'text',
  aliases: 'jsonb',
  advisory_ids: 'jsonb',
  ecosystem: 'text',
  package_key: 'text',
  packages: 'jsonb',
  installed_version: 'text',
  fixed_version: 'text',
  fix_status: 'text',
  fix_channel: 'text',
  no_distro_fix: 'boolean',
  eol_date: 'text',
  upgrade_to: 'jsonb',
  severity_label: 'text',
  minor: 'boolean',
  kernel: 'boolean',
  reboot_required: 'boolean',
  cvss_score: 'float8',
  cvss_vector: 'text',
  score_source: 'text',
  kev: 'boolean',
  kev_due_date: 'date',
  epss: 'float8',
  risk: 'smallint',
  priority: 'text',
  status: 'text',
  exception_id: 'uuid',
  first_seen_at: 'timestamptz',
  last_seen_at: 'timestamptz',
  reopened_at: 'timestamptz',
  resolved_at: 'timestamptz',
  resolved_reason: 'text',
  sla_due_at: 'timestamptz',
  sla_told: 'text',
  last_event_seq: 'bigint',
  db_version: 'bigint',
} as const
const NAMES = Object.keys(COLUMNS)
const listOf = (column: (name: string) => string) => sql.raw(NAMES.map(column).join(', '))

const insert = statementOfRows(
  { id: 'uuid', company_id: 'uuid', finding_key: 'text', ...COLUMNS },
  rows => sql`
    insert into security_findings (id, company_id, finding_key, ${listOf(name => name)})
    select x.id, x.company_id, x.finding_key, ${listOf(name => `x.${name}`)} from ${rows}`,
)

/** Their unique key. */
export const FINDINGS_KEY = 'security_findings_key'

/**
 * Stores findings, all transactions in one order of keys. Violates FINDINGS_KEY when another one was first with one.
 */
export async function insertFindings(tx: Tx, created: readonly Finding[]): Promise<void> {
  if (created.length === 0) return
  const inOrder = created
    .map(finding => ({ key: findingKeyOf(finding), finding }))
    .sort((one, other) => (one.key < other.key ? -1 : 1))
  await tx.db.execute(insert(inOrder.map(({ finding }) => recordOf(finding))))
}

const update = statementOfRows(
  { id: 'uuid', ...COLUMNS },
  rows => sql`
    update security_findings f set ${listOf(name => `${name} = x.${name}`)} from ${rows} where f.id = x.id`,
)

/** Stores findings that the transaction has locked. */
export async function updateFindings(tx: Tx, changed: readonly Finding[]): Promise<void> {
  if (changed.length > 0) await tx.db.execute(update(changed.map(recordOf)))
}
