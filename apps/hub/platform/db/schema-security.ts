// Tables of the security family (sql/hub/0024) as drizzle sees them. The SQL file is the truth; this mirrors it.
import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  customType,
  date,
  doublePrecision,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  uuid,
} from 'drizzle-orm/pg-core'
import type { FixChannel, FixStatus } from '../../../../core/matching/advisory.ts'
import type {
  FindingKind as EventKind,
  FindingPackage,
  MatchStatus,
  ReleaseSupport,
  ResolvedReason,
} from '../../../../core/matching/finding-event.ts'

const at = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' })
const whole = (name: string) => bigint(name, { mode: 'number' })
const bytes = customType<{ data: Uint8Array }>({ dataType: () => 'bytea' })

type FindingKind = EventKind | 'check' | 'secret' | 'sensitive_data'
type FindingStatus = 'open' | 'resolved' | 'accepted' | 'false_positive'
type Priority = 'p1' | 'p2' | 'p3' | 'p4'
type ScanHostState = 'active' | 'revoked'
type ExceptionType = 'accepted' | 'false_positive'
type ExceptionChange = 'begin' | 'end'
type ExceptionStatus = 'pending' | 'approved' | 'rejected' | 'expired' | 'withdrawn'
type SlaTold = 'due_soon' | 'overdue'

export const scanEnrollmentCodes = pgTable('scan_enrolment_codes', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  codeHash: text('code_hash').notNull(),
  serverId: uuid('server_id'),
  agentId: uuid('agent_id'),
  codeSealed: text('code_sealed'),
  maxUses: integer('max_uses').notNull().default(1),
  uses: integer('uses').notNull().default(0),
  createdBy: uuid('created_by'),
  createdAt: at('created_at').notNull().defaultNow(),
  expiresAt: at('expires_at').notNull(),
  lastUsedAt: at('last_used_at'),
})

export const scanHosts = pgTable('scan_hosts', {
  id: uuid('host_id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  serverId: uuid('server_id'),
  publicKey: text('public_key').notNull(),
  state: text('state').$type<ScanHostState>().notNull().default('active'),
  inactiveAt: at('inactive_at'),
  machineIdHash: text('machine_id_hash').notNull(),
  hostname: text('hostname').notNull(),
  ipAddresses: text('ip_addresses').array().notNull().default([]),
  os: jsonb('os').$type<Readonly<Record<string, string>>>().notNull().default({}),
  scannerVersion: text('scanner_version'),
  codeId: uuid('code_id'),
  enrolledAt: at('enrolled_at').notNull().defaultNow(),
  rotatedAt: at('rotated_at'),
  revokedAt: at('revoked_at'),
  revokedReason: text('revoked_reason'),
  lastSeenAt: at('last_seen_at'),
  lastReportAt: at('last_report_at'),
  staleToldAt: at('stale_told_at'),
  syncVersion: whole('sync_version').notNull().default(0),
})

export const securityFindings = pgTable('security_findings', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  serverId: uuid('server_id'),
  hostId: uuid('host_id').notNull(),
  findingKey: text('finding_key').notNull(),
  kind: text('kind').$type<FindingKind>().notNull(),
  vulnId: text('vuln_id').notNull(),
  aliases: jsonb('aliases').$type<readonly string[]>().notNull().default([]),
  advisoryIds: jsonb('advisory_ids').$type<readonly string[]>().notNull().default([]),
  ecosystem: text('ecosystem').notNull(),
  packageKey: text('package_key').notNull(),
  packages: jsonb('packages').$type<readonly FindingPackage[]>().notNull().default([]),
  installedVersion: text('installed_version').notNull(),
  fixedVersion: text('fixed_version').notNull(),
  fixStatus: text('fix_status').$type<FixStatus | 'upgrade_release'>().notNull(),
  fixChannel: text('fix_channel').$type<FixChannel>().notNull(),
  noDistroFix: boolean('no_distro_fix').notNull().default(false),
  eolDate: text('eol_date').notNull().default(''),
  upgradeTo: jsonb('upgrade_to').$type<readonly string[]>().notNull().default([]),
  severityLabel: text('severity_label').notNull(),
  minor: boolean('minor').notNull(),
  kernel: boolean('kernel').notNull(),
  rebootRequired: boolean('reboot_required').notNull(),
  cvssScore: doublePrecision('cvss_score'),
  cvssVector: text('cvss_vector'),
  scoreSource: text('score_source'),
  kev: boolean('kev').notNull().default(false),
  kevDueDate: date('kev_due_date', { mode: 'string' }),
  epss: doublePrecision('epss'),
  risk: smallint('risk').notNull(),
  priority: text('priority').$type<Priority>().notNull(),
  status: text('status').$type<FindingStatus>().notNull(),
  exceptionId: uuid('exception_id'),
  firstSeenAt: at('first_seen_at').notNull(),
  lastSeenAt: at('last_seen_at').notNull(),
  reopenedAt: at('reopened_at'),
  resolvedAt: at('resolved_at'),
  resolvedReason: text('resolved_reason').$type<ResolvedReason>(),
  slaDueAt: at('sla_due_at'),
  slaTold: text('sla_told').$type<SlaTold>(),
  lastEventSeq: whole('last_event_seq').notNull(),
  dbVersion: whole('db_version').notNull(),
  isAttached: boolean('is_attached').notNull().generatedAlwaysAs(sql`server_id is not null`),
  nameDigest: uuid('name_digest')
    .notNull()
    .generatedAlwaysAs(sql`md5(vuln_id || chr(10) || package_key || chr(10) || aliases::text)::uuid`),
})

export const securityFindingEvents = pgTable('security_finding_events', {
  eventId: text('event_id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  hostId: uuid('host_id').notNull(),
  serverId: uuid('server_id'),
  findingId: uuid('finding_id'),
  seq: whole('seq').notNull(),
  type: text('type').notNull(),
  occurredAt: at('occurred_at').notNull(),
  payload: jsonb('payload').$type<Readonly<Record<string, unknown>>>().notNull(),
  receivedAt: at('received_at').notNull().defaultNow(),
})

export const securityServerScans = pgTable('security_server_scans', {
  hostId: uuid('host_id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  serverId: uuid('server_id'),
  lastEventSeq: whole('last_event_seq').notNull(),
  scannedAt: at('scanned_at').notNull(),
  scannerVersion: text('scanner_version'),
  dbVersion: whole('db_version').notNull(),
  os: jsonb('os').$type<Readonly<Record<string, unknown>>>().notNull(),
  kernelRunning: text('kernel_running'),
  rebootRequired: boolean('reboot_required'),
  livepatchActive: boolean('livepatch_active'),
  packageCount: integer('package_count'),
  errorCodes: jsonb('error_codes').$type<readonly string[]>().notNull().default([]),
  matchStatus: text('match_status').$type<MatchStatus>().notNull(),
  releaseSupport: text('release_support').$type<ReleaseSupport>(),
  openFindings: integer('open_findings'),
})

export const securityExceptions = pgTable('security_exceptions', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  type: text('type').$type<ExceptionType>().notNull(),
  status: text('status').$type<ExceptionStatus>().notNull().default('pending'),
  reason: text('reason').notNull(),
  expiresAt: at('expires_at'),
  findingCount: integer('finding_count').notNull().default(0),
  requestedBy: uuid('requested_by'),
  requestedAt: at('requested_at').notNull().defaultNow(),
  decidedBy: uuid('decided_by'),
  decidedAt: at('decided_at'),
  endedAt: at('ended_at'),
  expiringToldAt: at('expiring_told_at'),
  changing: text('changing').$type<ExceptionChange>(),
  changedTo: uuid('changed_to'),
  changedCount: integer('changed_count').notNull().default(0),
})

export const securityExceptionFindings = pgTable(
  'security_exception_findings',
  { exceptionId: uuid('exception_id').notNull(), findingId: uuid('finding_id').notNull() },
  table => [primaryKey({ columns: [table.exceptionId, table.findingId] })],
)

export const securitySettings = pgTable('security_settings', {
  companyId: uuid('company_id').primaryKey(),
  version: integer('version').notNull().default(1),
  enabled: boolean('enabled').notNull().default(true),
  scanIntervalHours: integer('scan_interval_hours').notNull().default(24),
  timeZone: text('time_zone').notNull().default('UTC'),
  updatedAt: at('updated_at').notNull().defaultNow(),
})

export const securityExpectedPorts = pgTable(
  'security_expected_ports',
  {
    companyId: uuid('company_id').notNull(),
    port: integer('port').notNull(),
    proto: text('proto').$type<'tcp' | 'udp'>().notNull(),
  },
  table => [primaryKey({ columns: [table.companyId, table.port, table.proto] })],
)

export const securityContentScanSettings = pgTable('security_content_scan_settings', {
  companyId: uuid('company_id').primaryKey(),
  enabled: boolean('enabled').notNull().default(false),
  kinds: text('kinds').array().notNull().default([]),
  paths: text('paths').array().notNull().default([]),
  maxFileMb: integer('max_file_mb').notNull().default(10),
  updatedAt: at('updated_at').notNull().defaultNow(),
})

export const securityExports = pgTable('security_exports', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  format: text('format').$type<'csv' | 'jsonl'>().notNull(),
  filters: jsonb('filters').$type<Readonly<Record<string, unknown>>>().notNull().default({}),
  status: text('status').$type<'queued' | 'running' | 'ready' | 'failed'>().notNull().default('queued'),
  rowCount: integer('row_count'),
  error: text('error'),
  requestedBy: uuid('requested_by'),
  createdAt: at('created_at').notNull().defaultNow(),
  finishedAt: at('finished_at'),
  expiresAt: at('expires_at').notNull(),
  /** Of the try that counts. */
  attempt: uuid('attempt'),
})

export const securityExportParts = pgTable(
  'security_export_parts',
  {
    exportId: uuid('export_id').notNull(),
    part: integer('part').notNull(),
    content: bytes('content').notNull(),
  },
  table => [primaryKey({ columns: [table.exportId, table.part] })],
)

export const securityVulnerabilities = pgTable('security_vulnerabilities', {
  id: text('vuln_id').primaryKey(),
  title: text('title'),
  description: text('description'),
  cvssScore: doublePrecision('cvss_score'),
  cvssVector: text('cvss_vector'),
  severity: text('severity'),
  publishedAt: at('published_at'),
  modifiedAt: at('modified_at'),
  referenceUrls: jsonb('reference_urls').$type<readonly string[]>().notNull().default([]),
  aliases: jsonb('aliases').$type<readonly string[]>(),
  kev: boolean('kev'),
  kevDueDate: date('kev_due_date', { mode: 'string' }),
  epss: doublePrecision('epss'),
  updatedAt: at('updated_at').notNull().defaultNow(),
})

export const securityMatchers = pgTable('security_matchers', {
  userId: uuid('user_id').primaryKey(),
  version: text('version').notNull(),
  dbVersion: whole('db_version').notNull(),
  queueDepth: whole('queue_depth').notNull(),
  lastHeartbeatAt: at('last_heartbeat_at').notNull(),
  staleToldAt: at('stale_told_at'),
})
