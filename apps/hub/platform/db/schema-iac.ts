// Tables of manifests and approvals (sql/hub/0028, 0029) as drizzle sees them.
import { bigint, boolean, integer, jsonb, pgTable, primaryKey, text, timestamp, uuid } from 'drizzle-orm/pg-core'
import type { ItemAction, ItemStatus, RunStatus } from '../../../../core/iac/run-status.ts'
import type { FieldDiff } from '../../../../core/iac/spec-diff.ts'
import type { Unchecked } from '../../../../core/json-object.ts'
import type { Approvers, StepRule, TicketState, WorkflowRule } from '../../../../core/lifecycle/approval-ticket.ts'
import type { WorkflowMatch } from '../../../../core/lifecycle/workflows-needed.ts'

const at = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' })

export type RunFile = { readonly path: string; readonly contents: string; readonly sha256: string }
export type RunError = { readonly path: string; readonly line: number | null; readonly message: string }
export type FieldDrift = { readonly field: string; readonly intended: unknown; readonly actual: unknown }

export const iacRuns = pgTable('iac_runs', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  submitterId: uuid('submitter_id'),
  submitterName: text('submitter_name').notNull(),
  replannedBy: uuid('replanned_by'),
  title: text('title').notNull(),
  description: text('description'),
  status: text('status').$type<RunStatus>().notNull(),
  files: jsonb('files').$type<readonly RunFile[]>().notNull(),
  filesCount: integer('files_count').notNull(),
  kinds: jsonb('kinds').$type<Readonly<Record<string, number>>>().notNull(),
  errors: jsonb('errors').$type<readonly RunError[]>().notNull(),
  untried: text('untried').array().$type<readonly string[]>().notNull().default([]),
  queuedAt: at('queued_at'),
  appliedBy: uuid('applied_by'),
  applyLanguage: text('apply_language').$type<'en' | 'vi'>().notNull().default('en'),
  applierHolds: text('applier_holds').array().notNull().default([]),
  workedAt: at('worked_at'),
  appliedAt: at('applied_at'),
  applyError: text('apply_error'),
  cancelledAt: at('cancelled_at'),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const iacItems = pgTable('iac_items', {
  id: uuid('id').primaryKey(),
  runId: uuid('run_id').notNull(),
  position: integer('position').notNull(),
  path: text('path').notNull(),
  companyId: uuid('company_id').notNull(),
  company: text('company').notNull(),
  kind: text('kind').notNull(),
  name: text('name').notNull(),
  action: text('action').$type<ItemAction>().notNull(),
  adopts: boolean('adopts').notNull(),
  diff: jsonb('diff').$type<readonly FieldDiff[]>().notNull(),
  diffHash: text('diff_hash').notNull(),
  spec: jsonb('spec').$type<Unchecked | null>(),
  resourceId: uuid('resource_id'),
  baseVersion: bigint('base_version', { mode: 'number' }),
  refersTo: jsonb('refers_to').$type<readonly string[]>().notNull(),
  requires: text('requires').notNull(),
  forbidden: boolean('forbidden').notNull(),
  status: text('status').$type<ItemStatus>().notNull().default('planned'),
  error: text('error'),
  appliedAt: at('applied_at'),
})

export const iacBindings = pgTable(
  'iac_bindings',
  {
    companyId: uuid('company_id').notNull(),
    kind: text('kind').notNull(),
    slug: text('slug').notNull(),
    resourceKind: text('resource_kind').notNull(),
    resourceId: uuid('resource_id').notNull(),
    appliedSpec: jsonb('applied_spec').$type<Unchecked>().notNull(),
    runId: uuid('run_id'),
    drift: jsonb('drift').$type<readonly FieldDrift[]>().notNull().default([]),
    driftedSince: at('drifted_since'),
    isStale: boolean('is_stale').notNull().default(false),
    updatedAt: at('updated_at').notNull().defaultNow(),
  },
  table => [primaryKey({ columns: [table.companyId, table.kind, table.slug] })],
)

export const iacRunEvents = pgTable('iac_run_events', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  runId: uuid('run_id').notNull(),
  at: at('at').notNull().defaultNow(),
  type: text('type').notNull(),
  itemId: uuid('item_id'),
  actorId: uuid('actor_id'),
  actorName: text('actor_name'),
  message: text('message').notNull().default(''),
})

export const iacAttachments = pgTable('iac_attachments', {
  id: uuid('id').primaryKey(),
  runId: uuid('run_id').notNull(),
  fileId: uuid('file_id').notNull(),
  name: text('name').notNull(),
  size: integer('size').notNull(),
  sha256: text('sha256').notNull(),
  createdBy: uuid('created_by'),
  createdAt: at('created_at').notNull().defaultNow(),
})

export const approvalWorkflows = pgTable('approval_workflows', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  name: text('name').notNull(),
  version: integer('version').notNull().default(1),
  kinds: text('kinds').array().notNull(),
  actions: text('actions').array().notNull(),
  match: jsonb('match').$type<WorkflowMatch>().notNull(),
  priority: integer('priority').notNull(),
  enabled: boolean('enabled').notNull(),
  allowSelf: boolean('allow_self').notNull(),
  distinctApprovers: boolean('distinct_approvers').notNull(),
  expireHours: integer('expire_hours'),
  createdBy: uuid('created_by'),
  updatedBy: uuid('updated_by'),
  createdAt: at('created_at').notNull().defaultNow(),
  updatedAt: at('updated_at').notNull().defaultNow(),
})

export const approvalSteps = pgTable('approval_steps', {
  id: uuid('id').primaryKey(),
  workflowId: uuid('workflow_id').notNull(),
  position: integer('position').notNull(),
  name: text('name').notNull(),
  roleId: uuid('role_id'),
  roleByName: boolean('role_by_name').notNull(),
  teamId: uuid('team_id'),
  userIds: uuid('user_ids').array().notNull(),
  required: integer('required').notNull(),
  slaHours: integer('sla_hours').notNull(),
  onOverdue: text('on_overdue').$type<StepRule['onOverdue']>().notNull(),
  escalateTo: jsonb('escalate_to').$type<Approvers | null>(),
})

/** A workflow as a ticket keeps it. */
export type KeptWorkflow = WorkflowRule & { readonly name: string; readonly version: number }

export const approvalTickets = pgTable('approval_tickets', {
  id: uuid('id').primaryKey(),
  companyId: uuid('company_id').notNull(),
  workflowId: uuid('workflow_id').notNull(),
  workflow: jsonb('workflow').$type<KeptWorkflow>().notNull(),
  runId: uuid('run_id').notNull(),
  itemId: uuid('item_id').notNull(),
  kind: text('kind').notNull(),
  name: text('name').notNull(),
  action: text('action').notNull(),
  diff: jsonb('diff').$type<readonly FieldDiff[]>().notNull(),
  diffHash: text('diff_hash').notNull(),
  state: text('state').$type<TicketState>().notNull(),
  step: integer('step').notNull(),
  stepStartedAt: at('step_started_at').notNull(),
  slaDueAt: at('sla_due_at').notNull(),
  dueSoonAt: at('due_soon_at').notNull(),
  isEscalated: boolean('is_escalated').notNull().default(false),
  dueSoonTold: boolean('due_soon_told').notNull().default(false),
  overdueTold: boolean('overdue_told').notNull().default(false),
  blocked: boolean('blocked').notNull().default(false),
  requestedBy: uuid('requested_by'),
  requesterIds: uuid('requester_ids').array().notNull(),
  expiresAt: at('expires_at').notNull(),
  createdAt: at('created_at').notNull().defaultNow(),
  closedAt: at('closed_at'),
})

export const approvalEvents = pgTable('approval_events', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  ticketId: uuid('ticket_id').notNull(),
  at: at('at').notNull().defaultNow(),
  type: text('type')
    .$type<'opened' | 'decided' | 'delegated' | 'escalated' | 'commented' | 'expired' | 'cancelled'>()
    .notNull(),
  step: integer('step').notNull(),
  userId: uuid('user_id'),
  userName: text('user_name'),
  decision: text('decision').$type<'approved' | 'rejected' | null>(),
  originId: uuid('origin_id'),
  fromId: uuid('from_id'),
  toId: uuid('to_id'),
  comment: text('comment'),
  commentId: uuid('comment_id'),
})
