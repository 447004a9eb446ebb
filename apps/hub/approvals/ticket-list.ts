// Tickets as people see them: one, and the list of a company (resources.md §7). Those that wait for a person: inbox.ts.
import { type AnyColumn, and, desc, eq, type SQL, sql } from 'drizzle-orm'
import { manifestKindNames } from '../../../core/iac/kind-names.ts'
import { slaDueAtMs, slaStateOf } from '../../../core/lifecycle/approval-clock.ts'
import { isBlocked, mayDecide } from '../../../core/lifecycle/may-decide-on-ticket.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { approvalTickets } from '../platform/db/schema-iac.ts'
import { uuidList } from '../platform/db/transaction.ts'
import { collectionReadBy } from '../platform/http/collection.ts'
import { flagOf, oneOf, uuid } from '../platform/http/request-schema.ts'
import { PeopleLookup } from './approvers.ts'
import { slaStates, ticketResponse, ticketStates } from './ticket-response.ts'
import { type EventRow, type LoadedTicket, loadTickets, peopleOf, type TicketRow } from './ticket-store.ts'

/** More tickets than anybody decides; what is beyond is found when some are decided. */
const PENDING_MAX = 5_000

type Person = { readonly id: string; readonly name: string } | null

/** A ticket with what lookups tell of it. */
export type ShownTicket = LoadedTicket & {
  readonly isBlocked: boolean
  readonly mayDecide: boolean
  readonly personOf: (id: string | null) => Person
}

const idsIn = ({ row, events }: LoadedTicket): (string | null)[] => [
  row.requestedBy,
  ...events.flatMap(({ userId, originId, fromId, toId }) => [userId, originId, fromId, toId]),
]

async function namesOf(db: Executor, companyId: string, loaded: readonly LoadedTicket[]) {
  const ids = new Set(loaded.flatMap(idsIn).filter(id => id !== null))
  const rows = await db.execute<{ id: string; name: string }>(sql`
    select id, name from users where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])`)
  const byId = new Map(rows.map(row => [row.id, row]))
  return (id: string | null): Person => (id === null ? null : (byId.get(id) ?? null))
}

/** Looks up the people of tickets, and what the user may do with them. */
export async function showTickets(
  db: Executor,
  companyId: string,
  userId: string,
  rows: readonly TicketRow[],
): Promise<ShownTicket[]> {
  const loaded = await loadTickets(db, rows)
  const lookup = new PeopleLookup(db, companyId)
  const personOf = await namesOf(db, companyId, loaded)
  const shown: ShownTicket[] = []
  for (const each of loaded) {
    const people = each.ticket.state === 'pending' ? await peopleOf(lookup, each.ticket) : null
    shown.push({
      ...each,
      personOf,
      isBlocked: people !== null && isBlocked(each.ticket, people),
      mayDecide: people !== null && 'say' in mayDecide(each.ticket, people, userId),
    })
  }
  return shown
}

const decisionsOf = ({ events, personOf }: ShownTicket) =>
  events
    .filter(event => event.type === 'decided')
    .map(event => ({
      user: personOf(event.userId),
      on_behalf_of: personOf(event.originId),
      decision: event.decision ?? 'rejected',
      comment: event.comment,
      at: event.at,
      step: event.step + 1,
    }))

const presentComment = (event: EventRow, personOf: ShownTicket['personOf']) => ({
  id: event.commentId ?? '',
  user: personOf(event.userId),
  comment: event.comment ?? '',
  at: event.at,
})

const givenAt = ({ ticket }: LoadedTicket, step: number): number =>
  ticket.decisions.filter(each => each.step === step && each.decision === 'approved').length

export const presentTicket = (shown: ShownTicket, { hub }: { readonly hub: Hub }) => {
  const { row, ticket, events, personOf } = shown
  const { workflow } = row
  const current = workflow.steps[row.step]
  return {
    id: row.id,
    company_id: row.companyId,
    workflow: { id: row.workflowId, name: workflow.name, version: workflow.version },
    subject: {
      type: 'iac_item',
      id: row.itemId,
      run_id: row.runId,
      kind: row.kind,
      name: row.name,
      action: row.action,
      diff: row.diff,
    },
    state: row.state,
    step: {
      position: row.step + 1,
      name: current?.name ?? '',
      required: current?.required ?? 0,
      given: givenAt(shown, row.step),
      sla_due_at: new Date(slaDueAtMs(ticket)),
      sla_state: slaStateOf(ticket, row.closedAt?.getTime() ?? hub.now()),
    },
    steps: workflow.steps.map((step, index) => ({
      position: index + 1,
      name: step.name,
      required: step.required,
      given: givenAt(shown, index),
      approver_role: step.approvers.role,
      team_id: step.approvers.team,
      user_ids: step.approvers.users,
      sla_hours: step.slaHours,
      on_overdue: step.onOverdue,
      escalate_to:
        step.escalateTo === null
          ? null
          : { role: step.escalateTo.role, team_id: step.escalateTo.team, user_ids: step.escalateTo.users },
    })),
    decisions: decisionsOf(shown),
    delegations: events
      .filter(event => event.type === 'delegated')
      .map(event => ({
        from: personOf(event.fromId),
        to: personOf(event.toId),
        by: personOf(event.userId),
        comment: event.comment,
        at: event.at,
      })),
    comments: events.filter(event => event.type === 'commented').map(event => presentComment(event, personOf)),
    blocked: shown.isBlocked ? 'not_enough_approvers' : null,
    escalated: row.isEscalated,
    requested_by: personOf(row.requestedBy),
    expires_at: row.expiresAt,
    may_decide: shown.mayDecide,
    created_at: row.createdAt,
    closed_at: row.closedAt,
  }
}

const SLA_STATE = sql`case when now() >= sla_due_at then 'overdue' when now() > due_soon_at then 'due_soon' else 'ok' end`

const filterSchemas = {
  state: oneOf(ticketStates),
  workflow_id: uuid(),
  run_id: uuid(),
  requested_by: uuid(),
  decided_by: uuid(),
  kind: oneOf(manifestKindNames),
  sla_state: oneOf(slaStates),
  blocked: oneOf(['0', '1', 'true', 'false']),
}
type GivenFilters = { readonly [K in keyof typeof filterSchemas]?: string | undefined }

const is = (column: AnyColumn, value: string | undefined): SQL | undefined =>
  value === undefined ? undefined : eq(column, value)

function conditionOf(companyId: string, given: GivenFilters): SQL | undefined {
  const { decided_by: decider, sla_state: sla } = given
  return and(
    eq(approvalTickets.companyId, companyId),
    is(approvalTickets.state, given.state),
    is(approvalTickets.workflowId, given.workflow_id),
    is(approvalTickets.runId, given.run_id),
    is(approvalTickets.requestedBy, given.requested_by),
    is(approvalTickets.kind, given.kind),
    decider === undefined
      ? undefined
      : sql`exists (select 1 from approval_events e
          where e.ticket_id = ${approvalTickets.id} and e.type = 'decided' and e.user_id = ${decider})`,
    sla === undefined ? undefined : sql`${approvalTickets.state} = 'pending' and ${SLA_STATE} = ${sla}`,
  )
}

/** Whether too few are left changes with people, not with tickets: it is looked up for those that are pending. */
async function blockedIds(db: Executor, companyId: string): Promise<string[]> {
  const pending = await pendingTickets(db, companyId)
  const lookup = new PeopleLookup(db, companyId)
  const ids: string[] = []
  for (const { row, ticket } of await loadTickets(db, pending))
    if (isBlocked(ticket, await peopleOf(lookup, ticket))) ids.push(row.id)
  return ids
}

export const pendingTickets = (db: Executor, companyId: string): Promise<TicketRow[]> =>
  db
    .select()
    .from(approvalTickets)
    .where(and(eq(approvalTickets.companyId, companyId), eq(approvalTickets.state, 'pending')))
    .orderBy(approvalTickets.slaDueAt, approvalTickets.id)
    .limit(PENDING_MAX)

const NEWEST = [desc(approvalTickets.createdAt), desc(approvalTickets.id)]
const idsOf = (db: Executor, where: SQL | undefined) =>
  db
    .select({ id: approvalTickets.id })
    .from(approvalTickets)
    .where(where)
    .orderBy(...NEWEST)

/** All tickets of a company, newest first. */
export const ticketCollection = collectionReadBy({
  filters: filterSchemas,
  within: {},
  async read({ hub, companyId, caller }, given, { limit, offset }) {
    const { db } = hub.database
    const wantsBlocked = flagOf(given.blocked as '0' | '1' | undefined)
    const ids = wantsBlocked === undefined ? null : uuidList(await blockedIds(db, companyId))
    const where = and(
      conditionOf(companyId, given),
      ids === null ? undefined : sql`(${approvalTickets.id} = any(${ids}::uuid[])) = ${wantsBlocked ?? false}`,
    )
    const [rows, [count]] = await Promise.all([
      db
        .select()
        .from(approvalTickets)
        // Rows are wide: those that a page skips are counted off in an index.
        .where(sql`${approvalTickets.id} = any(array(${idsOf(db, where).limit(limit).offset(offset)}))`)
        .orderBy(...NEWEST),
      db.select({ total: sql<number>`count(*)::int` }).from(approvalTickets).where(where),
    ])
    return { rows: await showTickets(db, companyId, caller.user.id, rows), total: count?.total ?? 0 }
  },
  response: ticketResponse,
  present: presentTicket,
})
