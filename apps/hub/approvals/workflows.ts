// Workflows and their steps (resources.md §7). A change raises the version; tickets that are open keep the workflow as
// it was.
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { eq, sql } from 'drizzle-orm'
import type { Approvers } from '../../../core/lifecycle/approval-ticket.ts'
import { recorded, UNCHANGED } from '../audit/change-with-audit.ts'
import { rolesFor } from '../identity/role-list.ts'
import { type Executor, violatedUniqueIndex } from '../platform/db/connect.ts'
import { approvalSteps, approvalWorkflows } from '../platform/db/schema-iac.ts'
import { roles, teams, users } from '../platform/db/schema-identity.ts'
import { isAnyOf, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { ApiError, invalid, invalidField, notFound } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { checkVersion } from '../resources/row-version.ts'
import { STEPS_MAX, WORKFLOWS_MAX, workflowActions } from './workflow-limits.ts'
import { type StepRow, type WorkflowRow, workflowCollection } from './workflow-list.ts'

const REFERRERS_SHOWN = 20

type PeopleInput = {
  readonly team_id?: string | null | undefined
  readonly user_ids?: readonly string[] | null | undefined
}
type StepInput = PeopleInput & {
  readonly name?: string | null | undefined
  readonly position?: number | null | undefined
  readonly approver_role?: string | null | undefined
  readonly required?: number | null | undefined
  readonly sla_hours?: number | null | undefined
  readonly on_overdue?: 'notify' | 'escalate' | 'reject' | null | undefined
  readonly escalate_to?: (PeopleInput & { readonly role?: string | null | undefined }) | null | undefined
}
type WorkflowInput = {
  readonly name?: string | undefined
  readonly kinds?: readonly string[] | null | undefined
  readonly actions?: readonly string[] | null | undefined
  readonly match?:
    | {
        readonly environments?: readonly string[] | null | undefined
        readonly tags?: readonly string[] | null | undefined
        readonly companies?: readonly string[] | null | undefined
      }
    | null
    | undefined
  readonly priority?: number | null | undefined
  readonly enabled?: boolean | null | undefined
  readonly allow_self?: boolean | null | undefined
  readonly distinct_approvers?: boolean | null | undefined
  readonly expire_hours?: number | null | undefined
}

const changes = recorded({
  type: 'approval_workflow',
  of: workflowCollection,
  named: ({ workflow }: WorkflowRow) => ({ id: workflow.id, name: workflow.name }),
})

/** The actions as they are stored, of which none and all are the same. */
const actionsOf = (given: readonly string[] | null | undefined): string[] => {
  const chosen = workflowActions.filter(action => given?.includes(action))
  return chosen.length === workflowActions.length ? [] : chosen
}

/** A role that the company may use, by id or name; null when there is none. */
async function roleId(db: Executor, companyId: string, role: string): Promise<string | null> {
  const rows = await db
    .select({ id: roles.id, name: roles.name })
    .from(roles)
    .where(
      sql`${rolesFor(companyId)} and (${roles.id}::text = ${role.toLowerCase()} or lower(${roles.name}) = lower(${role}))`,
    )
    .orderBy(sql`${roles.companyId} is null`)
    .for('key share')
  return (rows.find(row => row.id === role.toLowerCase()) ?? rows[0])?.id ?? null
}

type Group = { readonly role: string | null; readonly team: string | null; readonly users: readonly string[] }

/**
 * The group of people that an input names; what it names and the company does not have becomes a fault. Roles and teams
 * are kept from being deleted meanwhile (`leaveSteps`).
 */
async function groupOf(
  db: Executor,
  companyId: string,
  input: PeopleInput & { readonly role?: string | null | undefined },
  field: (name: string) => string,
  faults: Map<string, Words>,
): Promise<Group> {
  const role = input.role == null ? null : await roleId(db, companyId, input.role)
  if (input.role != null && role === null) faults.set(field('role'), words('unknown_reference'))
  const team = input.team_id?.toLowerCase() ?? null
  if (team !== null) {
    const found = await db
      .select({ id: teams.id })
      .from(teams)
      .where(sql`${teams.companyId} = ${companyId} and ${teams.id} = ${team}`)
      .for('key share')
    if (found.length === 0) faults.set(field('team_id'), words('unknown_reference'))
  }
  const ids = [...new Set((input.user_ids ?? []).map(id => id.toLowerCase()))]
  const people = await db
    .select({ id: users.id })
    .from(users)
    .where(sql`${users.companyId} = ${companyId} and ${users.kind} = 'person' and ${isAnyOf(users.id, ids)}`)
  const known = new Set(people.map(person => person.id))
  const unknown = ids.findIndex(id => !known.has(id))
  if (unknown >= 0) faults.set(`${field('user_ids')}.${unknown}`, words('unknown_reference'))
  return { role, team, users: ids }
}

export const isEmpty = (group: Group): boolean => group.role === null && group.team === null && group.users.length === 0

type StepColumns = Omit<typeof approvalSteps.$inferInsert, 'id' | 'workflowId' | 'position'>

/** The columns of a step; faults by field below `prefix`. */
async function stepColumns(
  db: Executor,
  companyId: string,
  input: StepInput,
  prefix: string,
  faults: Map<string, Words>,
): Promise<StepColumns> {
  const at = (name: string): string => `${prefix}${name === 'role' ? 'approver_role' : name}`
  const approvers = await groupOf(db, companyId, { ...input, role: input.approver_role }, at, faults)
  const required = input.required ?? 1
  const isOnlyUsers = approvers.role === null && approvers.team === null
  const namesNobody = input.approver_role == null && isEmpty(approvers)
  if (namesNobody) faults.set(`${prefix}required`, words('no_approvers'))
  else if (input.approver_role == null && isOnlyUsers && required > approvers.users.length)
    faults.set(`${prefix}required`, words('maximum', { max: approvers.users.length }))
  const escalateTo: Approvers | null =
    input.escalate_to == null
      ? null
      : await groupOf(db, companyId, input.escalate_to, name => `${prefix}escalate_to.${name}`, faults)
  if (input.on_overdue === 'escalate' && (escalateTo === null || isEmpty(escalateTo)))
    if (![...faults.keys()].some(key => key.startsWith(`${prefix}escalate_to`)))
      faults.set(`${prefix}escalate_to`, words('required'))
  return {
    name: input.name ?? 'approval',
    roleId: approvers.role,
    roleByName: input.approver_role != null && !isUuid(input.approver_role),
    teamId: approvers.team,
    userIds: [...approvers.users],
    required,
    slaHours: input.sla_hours ?? 24,
    onOverdue: input.on_overdue ?? 'notify',
    escalateTo,
  }
}

const failOn = (faults: ReadonlyMap<string, Words>): void => {
  if (faults.size > 0) throw invalid(Object.fromEntries(faults))
}

async function refuseTakenName<T>(act: Promise<T>): Promise<T> {
  try {
    return await act
  } catch (error) {
    if (violatedUniqueIndex(error) === 'approval_workflows_name') throw invalidField('name', 'taken')
    throw error
  }
}

function matchOf(match: WorkflowInput['match']) {
  const { environments, tags, companies } = match ?? {}
  return {
    ...(environments ? { environments } : {}),
    ...(tags ? { tags } : {}),
    ...(companies ? { companies } : {}),
  }
}

export async function createWorkflow(
  context: RouteContext,
  input: WorkflowInput & { readonly name: string; readonly steps?: readonly StepInput[] | null | undefined },
): Promise<WorkflowRow> {
  const { companyId, caller } = context
  const enabled = input.enabled ?? true
  return changes.create(context, async (tx, id) => {
    await lockCompany(tx, companyId)
    const faults = new Map<string, Words>()
    const given = input.steps ?? []
    if (enabled && given.length === 0) faults.set('steps', words('list_min', { min: 1 }))
    const steps: StepColumns[] = []
    const ordered = [...given.entries()].sort(
      ([a, one], [b, other]) => (one.position ?? a + 1) - (other.position ?? b + 1) || a - b,
    )
    for (const [index, step] of ordered)
      steps.push(await stepColumns(tx.db, companyId, step, `steps.${index}.`, faults))
    failOn(faults)
    await refuseTakenName(
      tx.db
        .insert(approvalWorkflows)
        .values({
          id,
          companyId,
          name: input.name,
          kinds: [...(input.kinds ?? [])],
          actions: actionsOf(input.actions),
          match: matchOf(input.match),
          priority: input.priority ?? 100,
          enabled,
          allowSelf: input.allow_self ?? false,
          distinctApprovers: input.distinct_approvers ?? false,
          expireHours: input.expire_hours ?? null,
          createdBy: caller.user.id,
          updatedBy: caller.user.id,
        })
        .execute(),
    )
    const [row] = await tx.db.execute<{ count: number }>(
      sql`select count(*)::int as count from approval_workflows where company_id = ${companyId}`,
    )
    if ((row?.count ?? 0) > WORKFLOWS_MAX) throw invalidField('limit', 'list_max', { max: WORKFLOWS_MAX })
    for (const [index, step] of steps.entries())
      await tx.db.insert(approvalSteps).values({ ...step, id: randomUUID(), workflowId: id, position: index + 1 })
  })
}

/** Raises the version with a change of the workflow or of its steps. */
export async function touch(tx: Tx, context: RouteContext, { workflow }: WorkflowRow): Promise<void> {
  await tx.db
    .update(approvalWorkflows)
    .set({ version: workflow.version + 1, updatedAt: new Date(context.hub.now()), updatedBy: context.caller.user.id })
    .where(eq(approvalWorkflows.id, workflow.id))
}

const requireStep = (row: WorkflowRow): void => {
  if (row.steps.length === 0) throw invalidField('steps', 'list_min', { min: 1 })
}

/**
 * How long tickets stay open after a change. One without hours of its own is answered with those of the company; sent
 * back they stay the company's.
 */
const expireHoursAfter = ({ workflow, hours }: WorkflowRow, given: number | null | undefined): number | null =>
  given === undefined || (workflow.expireHours === null && given === hours) ? workflow.expireHours : given

/** The columns of a workflow after a change. */
function columnsAfter(before: WorkflowRow, input: WorkflowInput) {
  const { workflow } = before
  return {
    name: input.name ?? workflow.name,
    kinds: input.kinds === undefined ? workflow.kinds : [...(input.kinds ?? [])],
    actions: input.actions === undefined ? workflow.actions : actionsOf(input.actions),
    match: input.match === undefined ? workflow.match : matchOf(input.match),
    priority: input.priority ?? workflow.priority,
    enabled: input.enabled ?? workflow.enabled,
    allowSelf: input.allow_self ?? workflow.allowSelf,
    distinctApprovers: input.distinct_approvers ?? workflow.distinctApprovers,
    expireHours: expireHoursAfter(before, input.expire_hours),
  }
}

/** Throws 412 or 409 for one that is another version than the caller knows. */
export const updateWorkflow = (
  context: RouteContext,
  { workflow: { id } }: WorkflowRow,
  { version, ...input }: WorkflowInput & { readonly version?: number | null | undefined },
): Promise<WorkflowRow> =>
  changes.change(context, id, async (tx, before) => {
    const { workflow } = before
    checkVersion(workflow, { ifMatch: context.header('if-match'), version: version ?? null })
    if (input.enabled === true) requireStep(before)
    const columns = columnsAfter(before, input)
    if (isDeepStrictEqual({ ...workflow, ...columns }, workflow)) return UNCHANGED
    await refuseTakenName(tx.db.update(approvalWorkflows).set(columns).where(eq(approvalWorkflows.id, id)).execute())
    return touch(tx, context, before)
  })

export const setWorkflowEnabled = (context: RouteContext, row: WorkflowRow, enabled: boolean): Promise<WorkflowRow> =>
  row.workflow.enabled === enabled
    ? Promise.resolve(row)
    : changes.change(
        context,
        row.workflow.id,
        async (tx, before) => {
          if (enabled) requireStep(before)
          await tx.db.update(approvalWorkflows).set({ enabled }).where(eq(approvalWorkflows.id, before.workflow.id))
          await touch(tx, context, before)
        },
        enabled ? 'enable' : 'disable',
      )

/** Throws 409 while tickets of it are pending. */
export const deleteWorkflow = (context: RouteContext, { workflow }: WorkflowRow): Promise<void> =>
  changes.delete(context, workflow.id, async tx => {
    const pending = await tx.db.execute<{ id: string; name: string; total: number }>(sql`
      select id, kind || ' ' || name as name, (count(*) over ())::int as total from approval_tickets
      where workflow_id = ${workflow.id} and state = 'pending' order by created_at, id limit ${REFERRERS_SHOWN}`)
    const [first] = pending
    if (first)
      throw new ApiError(409, 'conflict', words('in_use'), {
        reason: 'in_use',
        members: {
          referrers: pending.map(({ id, name }) => ({ kind: 'approval', id, name, field: 'workflow' })),
          referrers_total: first.total,
        },
      })
    await tx.db.delete(approvalWorkflows).where(eq(approvalWorkflows.id, workflow.id))
  })

/** The step of a path. Throws 404. */
export function stepOf({ steps }: WorkflowRow, id: string): StepRow {
  const step = steps.find(each => each.id === id.toLowerCase())
  if (!step) throw notFound()
  return step
}

/** Puts steps into this order. */
async function setOrder(tx: Tx, ids: readonly string[]): Promise<void> {
  for (const [index, id] of ids.entries())
    await tx.db
      .update(approvalSteps)
      .set({ position: index + 1 })
      .where(eq(approvalSteps.id, id))
}

const idsWithout = ({ steps }: WorkflowRow, id: string): string[] =>
  steps.map(step => step.id).filter(each => each !== id)

const stepOfWorkflow = async (context: RouteContext, { workflow }: WorkflowRow, id: string): Promise<StepRow> =>
  stepOf(await workflowCollection.find(context.hub.database.db, context.companyId, workflow.id), id)

export async function addStep(context: RouteContext, row: WorkflowRow, input: StepInput): Promise<StepRow> {
  const id = randomUUID()
  await changes.change(
    context,
    row.workflow.id,
    async (tx, before) => {
      if (before.steps.length >= STEPS_MAX) throw invalidField('steps', 'list_max', { max: STEPS_MAX })
      const faults = new Map<string, Words>()
      const columns = await stepColumns(tx.db, context.companyId, input, '', faults)
      failOn(faults)
      const ids = before.steps.map(step => step.id)
      const position = Math.min(input.position ?? ids.length + 1, ids.length + 1)
      await tx.db
        .insert(approvalSteps)
        .values({ ...columns, id, workflowId: before.workflow.id, position: ids.length + 1 })
      await setOrder(tx, ids.toSpliced(position - 1, 0, id))
      await touch(tx, context, before)
    },
    'step_add',
  )
  return stepOfWorkflow(context, row, id)
}

/** The columns of a step as it is. */
const columnsOf = (step: StepRow): StepColumns => ({
  name: step.name,
  roleId: step.role_id,
  roleByName: step.role_by_name,
  teamId: step.team_id,
  userIds: [...step.user_ids],
  required: step.required,
  slaHours: step.sla_hours,
  onOverdue: step.on_overdue,
  escalateTo: step.escalate_to,
})

/** What a step is, as a request would give it. */
const inputOf = (step: StepRow): StepInput => ({
  name: step.name,
  approver_role: step.role_by_name ? step.role_name : step.role_id,
  team_id: step.team_id,
  user_ids: step.user_ids,
  required: step.required,
  sla_hours: step.sla_hours,
  on_overdue: step.on_overdue,
  escalate_to: step.escalate_to && {
    role: step.escalate_to.role,
    team_id: step.escalate_to.team,
    user_ids: step.escalate_to.users,
  },
})

export async function updateStep(
  context: RouteContext,
  row: WorkflowRow,
  id: string,
  input: StepInput,
): Promise<StepRow> {
  await changes.change(
    context,
    row.workflow.id,
    async (tx, before) => {
      const step = stepOf(before, id)
      const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))
      const faults = new Map<string, Words>()
      const columns = await stepColumns(tx.db, context.companyId, { ...inputOf(step), ...given }, '', faults)
      // Whom it names since before, and who is gone by now, is no fault of a change of something else.
      const isOwn = ([field, { key }]: [string, Words]) =>
        key !== 'unknown_reference' || Object.hasOwn(given, field.split('.')[0] ?? '')
      failOn(new Map([...faults].filter(isOwn)))
      const order = before.steps.map(each => each.id)
      const moved =
        input.position == null ? order : idsWithout(before, step.id).toSpliced(input.position - 1, 0, step.id)
      if (isDeepStrictEqual(columns, columnsOf(step)) && isDeepStrictEqual(moved, order)) return UNCHANGED
      await tx.db.update(approvalSteps).set(columns).where(eq(approvalSteps.id, step.id))
      await setOrder(tx, moved)
      return touch(tx, context, before)
    },
    'step_update',
  )
  return stepOfWorkflow(context, row, id)
}

export async function deleteStep(context: RouteContext, row: WorkflowRow, id: string): Promise<void> {
  await changes.change(
    context,
    row.workflow.id,
    async (tx, before) => {
      const step = stepOf(before, id)
      if (before.workflow.enabled && before.steps.length === 1) throw invalidField('steps', 'list_min', { min: 1 })
      await tx.db.delete(approvalSteps).where(eq(approvalSteps.id, step.id))
      await setOrder(tx, idsWithout(before, step.id))
      await touch(tx, context, before)
    },
    'step_remove',
  )
}
