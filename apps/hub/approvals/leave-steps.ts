// Teams and roles that steps of workflows name. One that a step cannot do without is not deleted: the step would have
// no approvers (RES-172). From the others it goes in the transaction of the deletion, and each workflow says so.
import { eq, sql } from 'drizzle-orm'
import type { Approvers } from '../../../core/lifecycle/approval-ticket.ts'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { approvalSteps } from '../platform/db/schema-iac.ts'
import type { Tx } from '../platform/db/transaction.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { inUse, type Referrer } from '../resources/references.ts'
import { type StepRow, type WorkflowRow, workflowCollection } from './workflow-list.ts'
import { isEmpty, touch } from './workflows.ts'

type Group = { readonly kind: 'team' | 'role'; readonly id: string }

const without = (people: Approvers, { kind, id }: Group): Approvers =>
  people[kind] === id ? { ...people, [kind]: null } : people

const approversOf = (step: StepRow): Approvers => ({ role: step.role_id, team: step.team_id, users: step.user_ids })

/** The members of steps that would be left without people. */
function neededBy({ steps }: WorkflowRow, group: Group): string[] {
  return steps.flatMap((step, index) => {
    const [approvers, escalateTo] = [approversOf(step), step.escalate_to]
    const left = without(approvers, group)
    const field = group.kind === 'team' ? 'team_id' : 'approver_role'
    const hasTooFew = left.role === null && left.team === null && left.users.length < step.required
    const isLast = escalateTo !== null && escalateTo[group.kind] === group.id && isEmpty(without(escalateTo, group))
    return [
      ...(left !== approvers && hasTooFew ? [`steps.${index}.${field}`] : []),
      ...(isLast && step.on_overdue === 'escalate'
        ? [`steps.${index}.escalate_to.${group.kind === 'team' ? 'team_id' : 'role'}`]
        : []),
    ]
  })
}

async function leave(tx: Tx, context: RouteContext, before: WorkflowRow, group: Group): Promise<void> {
  for (const step of before.steps) {
    const left = without(approversOf(step), group)
    const escalateTo = step.escalate_to && without(step.escalate_to, group)
    await tx.db
      .update(approvalSteps)
      .set({
        roleId: left.role,
        roleByName: step.role_by_name && left.role !== null,
        teamId: left.team,
        escalateTo: escalateTo && isEmpty(escalateTo) ? null : escalateTo,
      })
      .where(eq(approvalSteps.id, step.id))
  }
  await touch(tx, context, before)
  const after = await workflowCollection.find(tx.db, context.companyId, before.workflow.id)
  const subject = { type: 'approval_workflow', id: after.workflow.id, name: after.workflow.name }
  const changes = changesBetween(
    workflowCollection.present(before, context),
    workflowCollection.present(after, context),
  )
  await auditRequest(tx, context, 'approval_workflow.update', subject, changes)
}

/** Call it before the group is deleted, in the same transaction. Throws 409 with the workflows that need it. */
export async function leaveSteps(tx: Tx, context: RouteContext, group: Group): Promise<void> {
  const named = group.kind === 'team' ? sql`s.team_id` : sql`s.role_id`
  // Who writes a workflow that names it is waited for, or finds it gone.
  const groups = group.kind === 'team' ? sql`teams` : sql`roles`
  await tx.db.execute(sql`select 1 from ${groups} where id = ${group.id} for update`)
  const workflows = await tx.db.execute<{ id: string }>(sql`
    select w.id from approval_workflows w where w.company_id = ${context.companyId} and exists (
      select 1 from approval_steps s where s.workflow_id = w.id
        and (${named} = ${group.id} or s.escalate_to ->> ${group.kind} = ${group.id}))
    order by w.id for update`)
  const naming: WorkflowRow[] = []
  for (const { id } of workflows) naming.push(await workflowCollection.find(tx.db, context.companyId, id))
  const needing = naming.flatMap((row): Referrer[] =>
    neededBy(row, group).map(field => ({
      kind: 'approval_workflow',
      id: row.workflow.id,
      name: row.workflow.name,
      field,
    })),
  )
  if (needing.length > 0) throw inUse(context.caller.permissions.has('approvals.view') ? needing : [], needing.length)
  for (const row of naming) await leave(tx, context, row, group)
}
