// What a workflow may have, as requests give it: how many workflows, steps, approvers and names, and how many hours
// (resources.md §7 "Workflow").
import { Type } from '@sinclair/typebox'
import { manifestKindNames } from '../../../core/iac/kind-names.ts'
import { boolean, integer, listOf, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { overdueActs } from './ticket-response.ts'

export const WORKFLOWS_MAX = 100
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
