// Workflows as the API answers them (resources.md §7 "Workflow").
import { Type } from '@sinclair/typebox'
import { oneOf } from '../platform/http/request-schema.ts'
import { amount, id, listed, named, nullable, reference, string, time } from '../platform/http/response-schema.ts'
import { overdueActs } from './ticket-response.ts'

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
