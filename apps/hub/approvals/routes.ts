// REST: /approvals (resources.md §7).
import { Type } from '@sinclair/typebox'
import { list } from '../platform/http/list.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { boolean, listOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { amount, answer, answerPage, listed, string } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { inboxFilters, inboxOf } from './inbox.ts'
import { presentTicket, ticketCollection } from './ticket-list.ts'
import { ticketComment, ticketResponse } from './ticket-response.ts'
import {
  approveAllOfRun,
  commentTicket,
  decideTicket,
  delegateTicket,
  findTicket,
  ticketToComment,
  viewTicket,
} from './tickets.ts'
import { STEPS_MAX, stepFields, workflowFields } from './workflow-limits.ts'
import { presentStep, workflowCollection } from './workflow-list.ts'
import { stepResponse } from './workflow-response.ts'
import {
  addStep,
  createWorkflow,
  deleteStep,
  deleteWorkflow,
  setWorkflowEnabled,
  stepOf,
  updateStep,
  updateWorkflow,
} from './workflows.ts'

const TAG = 'Approvals'
const VIEW = ['approvals.view']
const DECIDE = ['approvals.decide']
const MANAGE = ['approvals.manage']
const COMMENT_MAX = 2000
const comment = optional(text(COMMENT_MAX))
const inboxPage = answerPage(ticketResponse)

const tickets: readonly Route[] = [
  route({
    method: 'GET',
    path: '/approvals/inbox',
    tag: TAG,
    summary: 'Tickets that wait for the caller, most urgent first',
    permissions: DECIDE,
    query: Type.Object({
      sla_state: Type.Optional(inboxFilters.sla_state),
      kind: Type.Optional(inboxFilters.kind),
      run_id: Type.Optional(inboxFilters.run_id),
      ...pageQuery,
    }),
    answer: Type.Object({
      ...inboxPage.properties,
      meta: Type.Object({ ...inboxPage.properties.meta.properties, overdue: amount() }),
    }),
    async handle(context) {
      const { page: number, ...given } = context.query
      const page = pageOf({ page: number })
      const all = (await inboxOf(context, given)).map(each => presentTicket(each, context))
      const answered = paged(context.url, page, all.length, all.slice(page.offset, page.offset + page.limit))
      const overdue = all.filter(each => each.step.sla_state === 'overdue').length
      return { ...answered, meta: { ...answered.meta, overdue } }
    },
  }),
  list({
    path: '/approvals/tickets',
    tag: TAG,
    summary: 'All tickets, newest first',
    permissions: VIEW,
    of: ticketCollection,
  }),
  route({
    method: 'GET',
    path: '/approvals/tickets/:ticket',
    tag: TAG,
    summary: 'Show a ticket: with approvals.view, and to whoever asked for it',
    resource: viewTicket,
    answer: answer(ticketResponse),
    handle: async context => ({ data: presentTicket(context.resource, context) }),
  }),
  route({
    method: 'POST',
    path: '/approvals/tickets/:ticket/approve',
    tag: TAG,
    summary: 'Approve a ticket, or all of its run that wait for the caller',
    permissions: DECIDE,
    resource: findTicket,
    body: Type.Object({ comment, all_of_run: optional(boolean()) }),
    answer: Type.Object({
      data: Type.Union([ticketResponse, listed(ticketResponse)]),
      refused: Type.Optional(listed(Type.Object({ id: string(), reason: string(), message: string() }))),
    }),
    async handle(context) {
      const { body, resource } = context
      if (body.all_of_run !== true)
        return {
          data: presentTicket(await decideTicket(context, resource, 'approved', body.comment ?? null), context),
        }
      const { data, refused } = await approveAllOfRun(context, resource, body.comment ?? null)
      return { data: data.map(each => presentTicket(each, context)), refused }
    },
  }),
  route({
    method: 'POST',
    path: '/approvals/tickets/:ticket/reject',
    tag: TAG,
    summary: 'Reject a ticket, saying why',
    permissions: DECIDE,
    resource: findTicket,
    body: Type.Object({ comment: text(COMMENT_MAX) }),
    answer: answer(ticketResponse),
    handle: async context => ({
      data: presentTicket(await decideTicket(context, context.resource, 'rejected', context.body.comment), context),
    }),
  }),
  route({
    method: 'POST',
    path: '/approvals/tickets/:ticket/delegate',
    tag: TAG,
    summary: "Hand the caller's say on a ticket to somebody else; a manager that of somebody who is missing",
    permissions: DECIDE,
    resource: findTicket,
    body: Type.Object({ user_id: uuid(), comment, from_user_id: optional(uuid()) }),
    answer: answer(ticketResponse),
    handle: async context => ({
      data: presentTicket(await delegateTicket(context, context.resource.id, context.body), context),
    }),
  }),
  route({
    method: 'POST',
    path: '/approvals/tickets/:ticket/comments',
    tag: TAG,
    summary: 'Comment on a ticket: its approvers, whoever asked for it, and managers of approvals',
    resource: ticketToComment,
    status: 201,
    body: Type.Object({ comment: text(COMMENT_MAX) }),
    answer: answer(ticketComment),
    handle: async context => ({ data: await commentTicket(context, context.resource, context.body.comment) }),
  }),
]

const workflow = resourceRoutes({
  path: '/approvals/workflows',
  parameter: 'workflow',
  tag: TAG,
  versioned: ({ workflow: { id, version } }) => ({ id, version }),
  of: workflowCollection,
})
const findStep = async (context: RouteContext) => {
  const row = await workflow.resource(context)
  return { row, step: stepOf(row, context.params.step ?? '') }
}

const workflows: readonly Route[] = [
  list({
    path: '/approvals/workflows',
    tag: TAG,
    summary: 'List workflows by priority',
    permissions: VIEW,
    of: workflowCollection,
  }),
  workflow.create({
    summary: 'Create a workflow with its steps',
    permissions: MANAGE,
    body: Type.Object({
      name: text(255),
      ...workflowFields,
      steps: optional(listOf(Type.Object(stepFields), STEPS_MAX)),
    }),
    act: createWorkflow,
  }),
  workflow.show({ summary: 'Show a workflow', permissions: VIEW }),
  workflow.change({
    summary: 'Change a workflow; open tickets keep it as it was',
    permissions: MANAGE,
    body: Type.Object({ name: Type.Optional(text(255)), ...workflowFields, version: optional(Type.Integer()) }),
    refusals: [409, 412],
    act: updateWorkflow,
  }),
  workflow.delete({
    summary: 'Delete a workflow without pending tickets',
    permissions: MANAGE,
    refusals: [409],
    act: deleteWorkflow,
  }),
  workflow.act('enable', {
    summary: 'Enable a workflow',
    permissions: MANAGE,
    act: (context, row) => setWorkflowEnabled(context, row, true),
  }),
  workflow.act('disable', {
    summary: 'Disable a workflow; open tickets go on',
    permissions: MANAGE,
    act: (context, row) => setWorkflowEnabled(context, row, false),
  }),
  route({
    method: 'POST',
    path: '/approvals/workflows/:workflow/steps',
    tag: TAG,
    summary: 'Insert a step',
    permissions: MANAGE,
    resource: workflow.resource,
    status: 201,
    body: Type.Object(stepFields),
    answer: answer(stepResponse),
    handle: async context => ({ data: presentStep(await addStep(context, context.resource, context.body)) }),
  }),
  route({
    method: 'PATCH',
    path: '/approvals/workflows/:workflow/steps/:step',
    tag: TAG,
    summary: 'Change a step',
    permissions: MANAGE,
    resource: findStep,
    body: Type.Object(stepFields),
    answer: answer(stepResponse),
    handle: async context => {
      const { row, step } = context.resource
      return { data: presentStep(await updateStep(context, row, step.id, context.body)) }
    },
  }),
  route({
    method: 'DELETE',
    path: '/approvals/workflows/:workflow/steps/:step',
    tag: TAG,
    summary: 'Remove a step',
    permissions: MANAGE,
    resource: findStep,
    handle: async context => {
      await deleteStep(context, context.resource.row, context.resource.step.id)
      return undefined
    },
  }),
]

export const approvalRoutes: readonly Route[] = [...tickets, ...workflows]
