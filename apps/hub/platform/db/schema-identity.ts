// Tables of companies, people, tokens, audit and notifications (sql/hub/0001, 0003, 0007) as drizzle sees them.
import { bigint, boolean, integer, jsonb, pgTable, primaryKey, text, timestamp, uuid } from 'drizzle-orm/pg-core'

const at = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' })

/** Values that replace the plan's for one company; a member that is absent leaves the plan's value. */
export type PlanOverrides = { agent_quota?: number | null; metrics_retention_days?: number | null }

export const companies = pgTable('companies', {
  id: uuid('id').primaryKey(),
  name: text('name').notNull(),
  slug: text('slug').notNull(),
  parentId: uuid('parent_id'),
  planCode: text('plan_code'),
  planExpiresAt: at('plan_expires_at'),
  planOverrides: jsonb('plan_overrides').$type<PlanOverrides>().notNull().default({}),
  personal: boolean('personal').notNull().default(false),
  tokenRateMax: integer('token_rate_max'),
  suspendedAt: at('suspended_at'),
  deletedAt: at('deleted_at'),
  createdAt: at('created_at').notNull().defaultNow(),
})

type UserKind = 'person' | 'collector' | 'matcher'

export const users = pgTable('users', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id'),
  kind: text('kind').$type<UserKind>().notNull().default('person'),
  email: text('email').notNull(),
  name: text('name').notNull(),
  passwordHash: text('password_hash'),
  permissions: text('permissions').array().notNull().default([]),
  superAdmin: boolean('super_admin').notNull().default(false),
  language: text('language').notNull().default('en'),
  timeZone: text('time_zone').notNull().default('UTC'),
  avatar: text('avatar'),
  addressUnconfirmed: boolean('address_unconfirmed').notNull().default(false),
  disabledAt: at('disabled_at'),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const roles = pgTable('roles', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id'),
  name: text('name').notNull(),
  permissions: text('permissions').array().notNull(),
  builtIn: boolean('built_in').notNull().default(false),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const userRoles = pgTable(
  'user_roles',
  { userId: uuid('user_id').notNull(), roleId: uuid('role_id').notNull() },
  table => [primaryKey({ columns: [table.userId, table.roleId] })],
)

export const invitations = pgTable('invitations', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  email: text('email').notNull(),
  name: text('name'),
  permissions: text('permissions').array().notNull().default([]),
  roleIds: uuid('role_ids').array().notNull().default([]),
  language: text('language').$type<'en' | 'vi'>().notNull().default('en'),
  tokenHash: text('token_hash').notNull(),
  invitedBy: uuid('invited_by'),
  expiresAt: at('expires_at').notNull(),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const userCompanyGrants = pgTable(
  'user_company_grants',
  { userId: uuid('user_id').notNull(), companyId: uuid('company_id').notNull() },
  table => [primaryKey({ columns: [table.userId, table.companyId] })],
)

export const teams = pgTable('teams', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  name: text('name').notNull(),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const teamMembers = pgTable(
  'team_members',
  { teamId: uuid('team_id').notNull(), userId: uuid('user_id').notNull() },
  table => [primaryKey({ columns: [table.teamId, table.userId] })],
)

export const apiTokens = pgTable('api_tokens', {
  id: uuid('id').primaryKey(),
  userId: uuid('user_id').notNull(),
  name: text('name').notNull(),
  tokenHash: text('token_hash').notNull(),
  tokenHint: text('token_hint').notNull(),
  permissions: text('permissions').array(),
  ipRanges: text('ip_ranges').array(),
  ratePerMinute: integer('rate_per_minute'),
  makerId: uuid('maker_id'),
  makerPermissions: text('maker_permissions').array(),
  expiresAt: at('expires_at'),
  lastUsedAt: at('last_used_at'),
  revokedAt: at('revoked_at'),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const sessions = pgTable('sessions', {
  id: uuid('id').primaryKey(),
  tokenHash: text('token_hash').notNull(),
  csrfToken: text('csrf_token').notNull(),
  userId: uuid('user_id').notNull(),
  ip: text('ip'),
  userAgent: text('user_agent'),
  createdAt: at('created_at').notNull().defaultNow(),
  lastSeenAt: at('last_seen_at').notNull().defaultNow(),
})

export const userSecondFactors = pgTable('user_second_factors', {
  userId: uuid('user_id').primaryKey(),
  secretSealed: text('secret_sealed').notNull(),
  confirmedAt: at('confirmed_at').notNull().defaultNow(),
  lastStep: bigint('last_step', { mode: 'number' }).notNull(),
  recoveryHashes: text('recovery_hashes').array().notNull(),
  failures: integer('failures').notNull().default(0),
  failuresSince: at('failures_since'),
  refusedUntil: at('refused_until'),
})

export type AuditChanges = Readonly<Record<string, { old: unknown; new: unknown }>>

export const auditLog = pgTable('audit_log', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id'),
  actorType: text('actor_type').notNull(),
  actorId: uuid('actor_id'),
  actorName: text('actor_name'),
  action: text('action').notNull(),
  subjectType: text('subject_type').notNull(),
  subjectId: text('subject_id'),
  subjectName: text('subject_name'),
  changes: jsonb('changes').$type<AuditChanges>().notNull().default({}),
  ip: text('ip'),
  userAgent: text('user_agent'),
  tokenId: uuid('token_id'),
  createdAt: at('created_at').notNull().defaultNow(),
  position: bigint('position', { mode: 'number' }).generatedAlwaysAsIdentity(),
})

export const notifications = pgTable('notifications', {
  id: uuid('id').primaryKey(),
  userId: uuid('user_id').notNull(),
  companyId: uuid('company_id').notNull(),
  type: text('type').notNull(),
  title: text('title').notNull(),
  body: text('body').notNull(),
  link: text('link'),
  readAt: at('read_at'),
  createdAt: at('created_at').notNull().defaultNow(),
  position: bigint('position', { mode: 'number' }).generatedAlwaysAsIdentity(),
})

export const notificationPreferences = pgTable(
  'notification_preferences',
  {
    userId: uuid('user_id').notNull(),
    channel: text('channel').notNull(),
    minSeverity: text('min_severity').notNull(),
  },
  table => [primaryKey({ columns: [table.userId, table.channel] })],
)

export const notificationChannels = pgTable('notification_channels', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  name: text('name').notNull(),
  type: text('type').notNull(),
  address: text('address').notNull(),
  minSeverity: text('min_severity').notNull().default('info'),
  scope: jsonb('scope').$type<Readonly<Record<string, unknown>>>().notNull().default({ all: true }),
  enabled: boolean('enabled').notNull().default(true),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const notificationTemplates = pgTable(
  'notification_templates',
  {
    companyId: uuid('company_id').notNull(),
    template: text('template').notNull(),
    language: text('language').notNull(),
    title: text('title').notNull(),
    body: text('body').notNull(),
  },
  table => [primaryKey({ columns: [table.companyId, table.template, table.language] })],
)

export const webhooks = pgTable('webhooks', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  name: text('name').notNull(),
  url: text('url').notNull(),
  secretSealed: text('secret_sealed').notNull(),
  events: text('events').array().notNull().default([]),
  minSeverity: text('min_severity').notNull().default('info'),
  scope: jsonb('scope').$type<Readonly<Record<string, unknown>>>().notNull().default({ all: true }),
  enabled: boolean('enabled').notNull().default(true),
  failuresInARow: integer('failures_in_a_row').notNull().default(0),
  disabledReason: text('disabled_reason'),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const notificationDeliveries = pgTable('notification_deliveries', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  channel: text('channel').notNull(),
  target: text('target').notNull(),
  webhookId: uuid('webhook_id'),
  type: text('type').notNull(),
  payload: jsonb('payload').$type<Readonly<Record<string, unknown>>>().notNull(),
  state: text('state').notNull().default('waiting'),
  tries: integer('tries').notNull().default(0),
  responseCode: integer('response_code'),
  lastError: text('last_error'),
  createdAt: at('created_at').notNull().defaultNow(),
  finishedAt: at('finished_at'),
  alertId: uuid('alert_id'),
  position: bigint('position', { mode: 'number' }).generatedAlwaysAsIdentity(),
})

export const mobileDevices = pgTable('mobile_devices', {
  id: uuid('id').primaryKey(),
  userId: uuid('user_id').notNull(),
  platform: text('platform').$type<'webpush' | 'fcm' | 'apns'>().notNull(),
  name: text('name').notNull(),
  tokenSealed: text('token_sealed').notNull(),
  tokenHash: text('token_hash').notNull(),
  appVersion: text('app_version'),
  language: text('language').$type<'en' | 'vi'>().notNull().default('en'),
  timeZone: text('time_zone').notNull().default('UTC'),
  enabled: boolean('enabled').notNull().default(true),
  disabledReason: text('disabled_reason'),
  lastSeenAt: at('last_seen_at').notNull().defaultNow(),
  lastPushAt: at('last_push_at'),
  createdAt: at('created_at').notNull().defaultNow(),
})
