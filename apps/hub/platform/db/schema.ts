// Tables of the monitoring family (sql/hub/0002) as drizzle sees them. The SQL files are the truth; this mirrors them.
import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  doublePrecision,
  integer,
  jsonb,
  pgTable,
  text,
  time,
  timestamp,
  uuid,
} from 'drizzle-orm/pg-core'
import type { RawMatchers } from '../../../../core/alerting/rules/matchers.ts'
import type { NoDataMode, Operator, RuleKind, RuleScope, Severity } from '../../../../core/alerting/rules/rule.ts'
import type { AgentState } from '../../../../core/lifecycle/agent.ts'
import type { AlertState, AlertType } from '../../../../core/lifecycle/alert.ts'
import type { Recurrence } from '../../../../core/lifecycle/silence-windows.ts'

const at = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' })
const version = (name: string) => bigint(name, { mode: 'number' })

export type ServerStatus = 'active' | 'maintenance' | 'decommissioned' | 'draft'
export type ServerOrigin = 'manual' | 'iac' | 'agent'
export type CheckType = 'service' | 'port' | 'tcp' | 'http' | 'cert'

export const collectors = pgTable('monitoring_collectors', {
  id: uuid('id').primaryKey(),
  name: text('name').notNull(),
  baseUrl: text('base_url'),
  adminUrl: text('admin_url'),
  adminTokenSealed: text('admin_token_sealed'),
  serviceUserId: uuid('service_user_id'),
  version: text('version'),
  lastHeartbeatAt: at('last_heartbeat_at'),
  agentCount: integer('agent_count'),
  ingestRps: doublePrecision('ingest_rps'),
  outboxDepth: integer('outbox_depth'),
  settings: jsonb('settings').$type<Readonly<Record<string, unknown>>>().notNull().default({}),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const servers = pgTable('servers', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  name: text('name').notNull(),
  hostname: text('hostname'),
  ipAddress: text('ip_address'),
  environment: text('environment'),
  role: text('role'),
  datacenter: text('datacenter'),
  subnetId: text('subnet_id'),
  tags: text('tags').array().notNull().default([]),
  operatingSystem: text('operating_system'),
  cpuCores: integer('cpu_cores'),
  memoryMb: integer('memory_mb'),
  diskGb: integer('disk_gb'),
  status: text('status').$type<ServerStatus>().notNull().default('active'),
  origin: text('origin').$type<ServerOrigin>().notNull().default('manual'),
  notes: text('notes'),
  syncVersion: version('sync_version').notNull().default(0),
  createdAt: at('created_at').notNull().defaultNow(),
  updatedAt: at('updated_at').notNull().defaultNow(),
  deletedAt: at('deleted_at'),
})

export const licenses = pgTable('monitoring_licenses', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  name: text('name').notNull(),
  tokenHash: text('token_hash').notNull(),
  tokenHint: text('token_hint').notNull(),
  serverId: uuid('server_id'),
  collectorId: uuid('collector_id'),
  expiresAt: at('expires_at'),
  maxUses: integer('max_uses').notNull().default(1),
  usedCount: integer('used_count').notNull().default(0),
  lastUsedAt: at('last_used_at'),
  revokedAt: at('revoked_at'),
  supersededAt: at('superseded_at'),
  supersededBy: uuid('superseded_by'),
  supersedes: uuid('supersedes'),
  migrateUntil: at('migrate_until'),
  createdBy: uuid('created_by'),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const agents = pgTable('monitoring_agents', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  serverId: uuid('server_id'),
  collectorId: uuid('collector_id'),
  licenseId: uuid('license_id'),
  tokenHash: text('token_hash').notNull(),
  prevTokenHash: text('prev_token_hash'),
  prevTokenExpiresAt: at('prev_token_expires_at'),
  machineId: text('machine_id'),
  hostname: text('hostname'),
  osFamily: text('os_family'),
  osVersion: text('os_version'),
  arch: text('arch'),
  agentVersion: text('agent_version'),
  protoVersion: integer('proto_version'),
  state: text('state').$type<AgentState>().notNull(),
  lastSeenAt: at('last_seen_at'),
  enrolledAt: at('enrolled_at').notNull().defaultNow(),
  revokedAt: at('revoked_at'),
  revokedReason: text('revoked_reason'),
  rotatedAt: at('rotated_at').array().notNull().default([]),
  rotationFailedAt: at('rotation_failed_at'),
  version: version('version').notNull().default(1),
  syncVersion: version('sync_version').notNull().default(0),
})

export const rules = pgTable('monitoring_rules', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  version: integer('version').notNull().default(1),
  name: text('name').notNull(),
  kind: text('kind').$type<RuleKind>().notNull(),
  scope: jsonb('scope').$type<RuleScope>().notNull(),
  resolvedServerIds: uuid('resolved_server_ids').array().notNull().default([]),
  /** Number of server ids in the record, listed and resolved; a column that the database generates. */
  serverIdCount: integer('server_id_count').notNull().generatedAlwaysAs(sql`cardinality(resolved_server_ids)`),
  metric: text('metric'),
  matchers: jsonb('matchers').$type<RawMatchers | null>(),
  operator: text('operator').$type<Operator>(),
  threshold: doublePrecision('threshold'),
  forSeconds: integer('for_seconds'),
  recoverThreshold: doublePrecision('recover_threshold'),
  recoverForSeconds: integer('recover_for_seconds'),
  severity: text('severity').$type<Severity>().notNull(),
  noData: text('no_data').$type<NoDataMode>(),
  renotifySeconds: integer('renotify_seconds'),
  enabled: boolean('enabled').notNull().default(true),
  isDefault: boolean('is_default').notNull().default(false),
  defaultKey: text('default_key'),
  checkId: uuid('check_id'),
  createdBy: uuid('created_by'),
  syncVersion: version('sync_version').notNull().default(0),
  createdAt: at('created_at').notNull().defaultNow(),
  updatedAt: at('updated_at').notNull().defaultNow(),
  deletedAt: at('deleted_at'),
})

export const silences = pgTable('monitoring_silences', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  scope: jsonb('scope').$type<RuleScope>().notNull(),
  resolvedServerIds: uuid('resolved_server_ids').array().notNull().default([]),
  /** Number of server ids in the record, listed and resolved; a column that the database generates. */
  serverIdCount: integer('server_id_count').notNull().generatedAlwaysAs(sql`cardinality(resolved_server_ids)`),
  startsAt: at('starts_at').notNull(),
  endsAt: at('ends_at').notNull(),
  reason: text('reason').notNull(),
  /** Empty: the events of all rules. */
  ruleIds: uuid('rule_ids').array().notNull().default([]),
  recurrence: jsonb('recurrence').$type<Recurrence>(),
  /** Up to when the windows of the recurrence are rows of their own; null: none is to come. */
  windowsUntil: at('windows_until'),
  /** Set on such a row: the silence that it is a window of. */
  recurrenceOf: uuid('recurrence_of'),
  cancelledAt: at('cancelled_at'),
  deletedAt: at('deleted_at'),
  createdBy: uuid('created_by'),
  syncVersion: version('sync_version').notNull().default(0),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const checks = pgTable('monitoring_checks', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  name: text('name').notNull(),
  scope: jsonb('scope').$type<RuleScope>().notNull(),
  resolvedServerIds: uuid('resolved_server_ids').array().notNull().default([]),
  /** Number of server ids in the record, listed and resolved; a column that the database generates. */
  serverIdCount: integer('server_id_count').notNull().generatedAlwaysAs(sql`cardinality(resolved_server_ids)`),
  type: text('type').$type<CheckType>().notNull(),
  target: jsonb('target').$type<Readonly<Record<string, string | number>>>().notNull(),
  intervalSeconds: integer('interval_seconds').notNull().default(60),
  timeoutSeconds: integer('timeout_seconds').notNull().default(5),
  enabled: boolean('enabled').notNull().default(true),
  syncVersion: version('sync_version').notNull().default(0),
  managedByKind: text('managed_by_kind'),
  managedById: uuid('managed_by_id'),
  createdBy: uuid('created_by'),
  createdAt: at('created_at').notNull().defaultNow(),
  updatedAt: at('updated_at').notNull().defaultNow(),
  deletedAt: at('deleted_at'),
})

export const alerts = pgTable('monitoring_alerts', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  type: text('type').$type<AlertType>().notNull(),
  serverId: uuid('server_id').notNull(),
  agentId: uuid('agent_id'),
  ruleId: uuid('rule_id'),
  ruleKey: text('rule_key').notNull(),
  seriesKey: text('series_key').notNull(),
  labels: jsonb('labels').$type<Readonly<Record<string, string>>>().notNull().default({}),
  severity: text('severity').$type<Severity>().notNull(),
  state: text('state').$type<AlertState>().notNull(),
  openedAt: at('opened_at').notNull(),
  resolvedAt: at('resolved_at'),
  resolvedReason: text('resolved_reason'),
  lastValue: doublePrecision('last_value'),
  peakValue: doublePrecision('peak_value'),
  threshold: doublePrecision('threshold'),
  suppressed: boolean('suppressed').notNull().default(false),
  suppressReason: text('suppress_reason'),
  flapping: boolean('flapping').notNull().default(false),
  groupId: uuid('group_id'),
  groupTotal: integer('group_total'),
  groupMemberIds: uuid('group_member_ids').array(),
  acknowledgedBy: uuid('acknowledged_by'),
  acknowledgedAt: at('acknowledged_at'),
  closedBy: uuid('closed_by'),
  closedAt: at('closed_at'),
  eventCount: integer('event_count').notNull().default(0),
  lastEventSeq: version('last_event_seq').notNull().default(0),
  notifiedAt: at('notified_at'),
  recoveryUntold: boolean('recovery_untold').notNull().default(false),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const alertEvents = pgTable('monitoring_alert_events', {
  id: uuid('id').notNull(),
  companyId: uuid('company_id').notNull(),
  serverId: uuid('server_id').notNull(),
  alertId: uuid('alert_id'),
  eventId: text('event_id').primaryKey(),
  seq: version('seq').notNull(),
  type: text('type').notNull(),
  occurredAt: at('occurred_at').notNull(),
  payload: jsonb('payload').$type<Readonly<Record<string, unknown>>>().notNull(),
  receivedAt: at('received_at').notNull().defaultNow(),
})

export const alertComments = pgTable('monitoring_alert_comments', {
  id: uuid('id').primaryKey(),
  alertId: uuid('alert_id').notNull(),
  userId: uuid('user_id'),
  action: text('action').notNull(),
  comment: text('comment').notNull(),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const inventoryFacts = pgTable('monitoring_inventory_facts', {
  id: uuid('id').primaryKey(),
  serverId: uuid('server_id').notNull(),
  companyId: uuid('company_id').notNull(),
  agentId: uuid('agent_id'),
  facts: jsonb('facts').$type<Readonly<Record<string, unknown>>>().notNull(),
  factsHash: text('facts_hash').notNull(),
  reportedAt: at('reported_at').notNull(),
})

export const settings = pgTable('monitoring_settings', {
  companyId: uuid('company_id').primaryKey(),
  defaultInterval: integer('default_interval').notNull().default(30),
  autoCreateServer: boolean('auto_create_server').notNull().default(false),
  groupDownMin: integer('group_down_min'),
  groupDownRatio: doublePrecision('group_down_ratio'),
  groupDownWindowSeconds: integer('group_down_window_seconds'),
  retentionNote: text('retention_note'),
  alertEventRetentionDays: integer('alert_event_retention_days'),
  metricsRetentionEffectiveDays: integer('metrics_retention_effective_days'),
  metricsRetentionPreviousDays: integer('metrics_retention_previous_days'),
  metricsRetentionGraceUntil: at('metrics_retention_grace_until'),
  metricsRetentionChangedAt: at('metrics_retention_changed_at'),
})

export const files = pgTable('files', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  name: text('name').notNull(),
  description: text('description'),
  type: text('type').notNull(),
  bytes: bigint('bytes', { mode: 'number' }).notNull(),
  sha256: text('sha256').notNull(),
  objectId: uuid('object_id').notNull(),
  uploadedBy: uuid('uploaded_by'),
  version: integer('version').notNull().default(1),
  createdAt: at('created_at').notNull().defaultNow(),
  updatedAt: at('updated_at').notNull().defaultNow(),
})

export const commandRuns = pgTable('system_command_runs', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  level: text('level').$type<'company' | 'system'>().notNull(),
  command: text('command').notNull(),
  parameters: jsonb('parameters').$type<Readonly<Record<string, unknown>>>().notNull().default({}),
  state: text('state').$type<'queued' | 'running' | 'done' | 'failed' | 'cancelled'>().notNull().default('queued'),
  startedBy: uuid('started_by'),
  createdAt: at('created_at').notNull().defaultNow(),
  startedAt: at('started_at'),
  finishedAt: at('finished_at'),
  cancelAsked: boolean('cancel_asked').notNull().default(false),
  hubId: uuid('hub_id'),
  progressDone: integer('progress_done').notNull().default(0),
  progressTotal: integer('progress_total'),
  output: text('output').notNull().default(''),
  error: text('error'),
})

export const exports = pgTable('exports', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  resource: text('resource').notNull(),
  format: text('format').$type<'csv' | 'json' | 'jsonl'>().notNull(),
  filters: jsonb('filters').$type<Readonly<Record<string, unknown>>>().notNull().default({}),
  columns: text('columns').array(),
  options: jsonb('options').$type<{ delimiter: string; bom: boolean; raw: boolean }>().notNull(),
  state: text('state').$type<'queued' | 'running' | 'ready' | 'failed' | 'expired'>().notNull().default('queued'),
  scheduleId: uuid('schedule_id'),
  requestedBy: uuid('requested_by'),
  permissions: text('permissions').array().notNull(),
  recipients: uuid('recipients').array().notNull().default([]),
  objectId: uuid('object_id'),
  rowCount: integer('row_count').notNull().default(0),
  bytes: bigint('bytes', { mode: 'number' }),
  sha256: text('sha256'),
  error: text('error'),
  createdAt: at('created_at').notNull().defaultNow(),
  finishedAt: at('finished_at'),
  expiresAt: at('expires_at'),
})

export const exportSchedules = pgTable('export_schedules', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  name: text('name').notNull(),
  resource: text('resource').notNull(),
  format: text('format').$type<'csv' | 'json' | 'jsonl'>().notNull(),
  filters: jsonb('filters').$type<Readonly<Record<string, unknown>>>().notNull().default({}),
  columns: text('columns').array(),
  every: text('every').$type<'day' | 'week' | 'month'>().notNull(),
  atTime: time('at_time').notNull(),
  weekday: integer('weekday'),
  day: integer('day'),
  timeZone: text('time_zone').notNull(),
  recipients: uuid('recipients').array().notNull().default([]),
  enabled: boolean('enabled').notNull().default(true),
  disabledReason: text('disabled_reason'),
  failuresInARow: integer('failures_in_a_row').notNull().default(0),
  ownerId: uuid('owner_id'),
  nextRunAt: at('next_run_at'),
  lastRunAt: at('last_run_at'),
  createdAt: at('created_at').notNull().defaultNow(),
})
