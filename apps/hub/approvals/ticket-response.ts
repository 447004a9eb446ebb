// Tickets as the API answers them (resources.md §7 "Ticket").
import { Type } from '@sinclair/typebox'
import { oneOf } from '../platform/http/request-schema.ts'
import {
  amount,
  id,
  listed,
  named,
  nullable,
  reference,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'

export const ticketStates = ['pending', 'approved', 'rejected', 'cancelled', 'expired'] as const
export const slaStates = ['ok', 'due_soon', 'overdue'] as const
export const overdueActs = ['notify', 'escalate', 'reject'] as const

const anyValue = () => Type.Unsafe<unknown>({})
export const fieldDiff = named('FieldDiff', { field: string(), old: anyValue(), new: anyValue() })

const approversResponse = named('Approvers', {
  role: nullable(id()),
  team_id: nullable(id()),
  user_ids: listed(id()),
})

const ticketStep = named('TicketStep', {
  position: amount(),
  name: string(),
  required: amount(),
  given: amount(),
  approver_role: nullable(id()),
  team_id: nullable(id()),
  user_ids: listed(id()),
  sla_hours: amount(),
  on_overdue: oneOf(overdueActs),
  escalate_to: nullable(approversResponse),
})

export const ticketComment = named('TicketComment', {
  id: id(),
  user: nullable(reference),
  comment: string(),
  at: time(),
})

export const ticketResponse = named('ApprovalTicket', {
  id: id(),
  company_id: id(),
  workflow: Type.Object({ id: id(), name: string(), version: amount() }),
  subject: Type.Object({
    type: wordOf(['iac_item']),
    id: id(),
    run_id: id(),
    kind: string(),
    name: string(),
    action: string(),
    diff: listed(fieldDiff),
  }),
  state: oneOf(ticketStates),
  /** The current step; of a ticket that is closed, the last one that it came to. */
  step: Type.Object({
    position: amount(),
    name: string(),
    required: amount(),
    given: amount(),
    sla_due_at: time(),
    sla_state: oneOf(slaStates),
  }),
  steps: listed(ticketStep),
  decisions: listed(
    Type.Object({
      user: nullable(reference),
      on_behalf_of: nullable(reference),
      decision: wordOf(['approved', 'rejected']),
      comment: nullable(string()),
      at: time(),
      step: amount(),
    }),
  ),
  delegations: listed(
    Type.Object({
      from: nullable(reference),
      to: nullable(reference),
      by: nullable(reference),
      comment: nullable(string()),
      at: time(),
    }),
  ),
  comments: listed(ticketComment),
  blocked: nullable(wordOf(['not_enough_approvers'])),
  escalated: Type.Boolean(),
  requested_by: nullable(reference),
  expires_at: time(),
  may_decide: Type.Boolean(),
  created_at: time(),
  closed_at: nullable(time()),
})
