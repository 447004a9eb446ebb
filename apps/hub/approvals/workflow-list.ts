// Workflows as people see them, with their steps.
import { asc, eq, type SQL, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/pg-core'
import { manifestKindNames } from '../../../core/iac/kind-names.ts'
import type { Approvers } from '../../../core/lifecycle/approval-ticket.ts'
import { approvalWorkflows } from '../platform/db/schema-iac.ts'
import { users } from '../platform/db/schema-identity.ts'
import { collection, filter, isOn, ofCompany, search } from '../platform/http/collection.ts'
import { oneOf } from '../platform/http/request-schema.ts'
import { defaultOf } from '../system-state/setting-definitions.ts'
import { workflowActions } from './workflow-limits.ts'
import { workflowResponse } from './workflow-response.ts'

export type StepRow = {
  readonly id: string
  readonly position: number
  readonly name: string
  readonly role_id: string | null
  readonly role_name: string | null
  readonly role_by_name: boolean
  readonly team_id: string | null
  readonly user_ids: readonly string[]
  readonly required: number
  readonly sla_hours: number
  readonly on_overdue: 'notify' | 'escalate' | 'reject'
  readonly escalate_to: Approvers | null
}

const STEPS: SQL<readonly StepRow[]> =
  sql`(select coalesce(jsonb_agg(jsonb_build_object('id', s.id, 'position', s.position,
    'name', s.name, 'role_id', s.role_id, 'role_name', r.name, 'role_by_name', s.role_by_name, 'team_id', s.team_id,
    'user_ids', s.user_ids, 'required', s.required, 'sla_hours', s.sla_hours, 'on_overdue', s.on_overdue,
    'escalate_to', s.escalate_to) order by s.position), '[]')
  from approval_steps s left join roles r on r.id = s.role_id where s.workflow_id = approval_workflows.id)`

/** The hours of a workflow, else those of the setting: the company's own, or that for all. */
const HOURS: SQL<number> = sql`coalesce(${approvalWorkflows.expireHours}, (select (v.value #>> '{}')::int
  from setting_values v where v.key = 'approvals.expire_hours'
    and (v.company_id = ${approvalWorkflows.companyId} or v.company_id is null) order by v.company_id limit 1),
  ${sql.raw(String(defaultOf('approvals.expire_hours')))})`

const creator = alias(users, 'creator')
const updater = alias(users, 'updater')

export const presentStep = (step: StepRow) => ({
  id: step.id,
  position: step.position,
  name: step.name,
  approver_role: step.role_by_name ? step.role_name : step.role_id,
  team_id: step.team_id,
  user_ids: step.user_ids,
  required: step.required,
  sla_hours: step.sla_hours,
  on_overdue: step.on_overdue,
  escalate_to:
    step.escalate_to === null
      ? null
      : { role: step.escalate_to.role, team_id: step.escalate_to.team, user_ids: step.escalate_to.users },
})

export const workflowCollection = collection({
  table: approvalWorkflows,
  scope: ofCompany(approvalWorkflows.companyId),
  filters: {
    enabled: isOn(approvalWorkflows.enabled),
    // A workflow without kinds is for every kind.
    kind: filter(
      oneOf(manifestKindNames),
      kind => sql`(${kind} = any(${approvalWorkflows.kinds}) or cardinality(${approvalWorkflows.kinds}) = 0)`,
    ),
    search: search(approvalWorkflows.name),
  },
  select: db =>
    db
      .select({
        workflow: approvalWorkflows,
        steps: STEPS,
        hours: HOURS,
        creator: { id: creator.id, name: creator.name },
        updater: { id: updater.id, name: updater.name },
      })
      .from(approvalWorkflows)
      .leftJoin(creator, eq(creator.id, approvalWorkflows.createdBy))
      .leftJoin(updater, eq(updater.id, approvalWorkflows.updatedBy)),
  order: [asc(approvalWorkflows.priority), asc(sql`lower(${approvalWorkflows.name})`), asc(approvalWorkflows.id)],
  pageBy: 'ids',
  response: workflowResponse,
  present: ({ workflow, steps, hours, creator, updater }) => ({
    id: workflow.id,
    company_id: workflow.companyId,
    name: workflow.name,
    kinds: workflow.kinds,
    actions: workflow.actions.length === 0 ? workflowActions : workflow.actions,
    match: workflow.match,
    priority: workflow.priority,
    enabled: workflow.enabled,
    allow_self: workflow.allowSelf,
    distinct_approvers: workflow.distinctApprovers,
    expire_hours: hours,
    version: workflow.version,
    steps: steps.map(presentStep),
    created_by: creator,
    updated_by: updater,
    created_at: workflow.createdAt,
    updated_at: workflow.updatedAt,
  }),
})

export type WorkflowRow = Awaited<ReturnType<typeof workflowCollection.find>>
