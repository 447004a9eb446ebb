// Workflows as the API answers them, and what requests may give (resources.md §7 "Workflow").
import { Type } from '@sinclair/typebox'
import { manifestKindNames } from '../../../core/iac/kind-names.ts'
import { boolean, integer, listOf, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { amount, id, listed, named, nullable, reference, string, time } from '../platform/http/response-schema.ts'
import { overdueActs } from './ticket-response.ts'

export const STEPS_MAX = 10
const USERS_MAX = 50
const NAMES_MAX = 50
const HOURS_MAX = 8760
export const workflowActions = ['create', 'update', 'delete'] as const

const people = {
  team_id: optional(uuid()),
  user_ids: optional(listOf(uuid(), USERS_MAX)),
}

export const stepFields = {
  name: optional(text(255)),
  position: optional(integer(1, STEPS_MAX)),
  approver_role: optional(text(255)),
  ...people,
  required: optional(integer(1, USERS_MAX)),
  sla_hours: optional(integer(1, HOURS_MAX)),
  on_overdue: optional(oneOf(overdueActs)),
  escalate_to: optional(Type.Object({ role: optional(text(255)), ...people })),
}

const names = () => optional(listOf(text(255), NAMES_MAX))

export const workflowFields = {
  kinds: optional(listOf(oneOf(manifestKindNames), manifestKindNames.length)),
  actions: optional(listOf(oneOf(workflowActions), workflowActions.length)),
  match: optional(Type.Object({ environments: names(), tags: names(), companies: names() })),
  priority: optional(integer(0, 1000)),
  enabled: optional(boolean()),
  allow_self: optional(boolean()),
  distinct_approvers: optional(boolean()),
  expire_hours: optional(integer(1, HOURS_MAX)),
}

export const stepResponse = named('ApprovalStep', {
  id: id(),
  position: amount(),
  name: string(),
  approver_role: nullable(string()),
  team_id: nullable(id()),
  user_ids: listed(id()),
  required: amount(),
  sla_hours: amount(),
  on_overdue: oneOf(overdueActs),
  escalate_to: nullable(Type.Object({ role: nullable(string()), team_id: nullable(id()), user_ids: listed(id()) })),
})

export const workflowResponse = named('ApprovalWorkflow', {
  id: id(),
  company_id: id(),
  name: string(),
  kinds: listed(string()),
  actions: listed(string()),
  match: Type.Object({
    environments: Type.Optional(listed(string())),
    tags: Type.Optional(listed(string())),
    companies: Type.Optional(listed(string())),
  }),
  priority: amount(),
  enabled: Type.Boolean(),
  allow_self: Type.Boolean(),
  distinct_approvers: Type.Boolean(),
  expire_hours: nullable(amount()),
  version: amount(),
  steps: listed(stepResponse),
  created_by: nullable(reference),
  updated_by: nullable(reference),
  created_at: time(),
  updated_at: time(),
})
