// What people do with tickets: approve, reject, delegate, comment (resources.md §7). Each act locks its ticket, so that
// of two decisions at once the second sees the first.
import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { decide, delegation } from '../../../core/lifecycle/approval-steps.ts'
import type { Decision, Ticket } from '../../../core/lifecycle/approval-ticket.ts'
import { mayDecide, type Refusal } from '../../../core/lifecycle/may-decide-on-ticket.ts'
import { auditRequest } from '../audit/audit.ts'
import { approvalTickets } from '../platform/db/schema-iac.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { ApiError, invalidField, notFound, permissionDenied } from '../platform/http/api-error.ts'
import { render, words } from '../platform/http/api-texts.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { canDecide, PeopleLookup } from './approvers.ts'
import { tickDue } from './ticket-clock.ts'
import { type ShownTicket, showTickets } from './ticket-list.ts'
import { addEvent, type LoadedTicket, lockTicket, peopleOf, type TicketRow } from './ticket-store.ts'
import { Notices, settle } from './who-is-told.ts'

type Verdict = Decision['decision']

async function rowOf({ hub, companyId }: RouteContext, id: string): Promise<TicketRow> {
  const [row] = isUuid(id)
    ? await hub.database.db
        .select()
        .from(approvalTickets)
        .where(and(eq(approvalTickets.companyId, companyId), eq(approvalTickets.id, id)))
    : []
  if (!row) throw notFound()
  return row
}

/** A ticket for who has one of the permissions, and for whoever asked for it. Throws 404, and 403 for others. */
async function openTicket(context: RouteContext, permissions: readonly [string, ...string[]]): Promise<TicketRow> {
  const { caller, params } = context
  const isPermitted = permissions.some(each => caller.permissions.has(each))
  const row = await rowOf(context, params.ticket ?? '').catch(error => {
    // Without the permission nobody is told which tickets there are.
    throw isPermitted ? error : permissionDenied(permissions[0])
  })
  // A token for other things does not show what its person asked for.
  const isOwn = row.requesterIds.includes(caller.user.id) && caller.accountPermissions?.has('iac.submit') !== false
  if (!isPermitted && !isOwn) throw permissionDenied(permissions[0])
  return row
}

export async function viewTicket(context: RouteContext): Promise<ShownTicket> {
  const { hub, companyId, caller } = context
  const row = await openTicket(context, ['approvals.view'])
  const [shown] = await showTickets(hub.database.db, companyId, caller.user.id, [row])
  if (!shown) throw notFound()
  return shown
}

/** A ticket for whoever may have something to say about it, which its people show. */
export const ticketToComment = (context: RouteContext): Promise<TicketRow> =>
  openTicket(context, ['approvals.decide', 'approvals.manage'])

/** The ticket of a path, for those who act on it. Throws 404. */
export const findTicket = (context: RouteContext): Promise<TicketRow> => rowOf(context, context.params.ticket ?? '')

async function locked(tx: Tx, { companyId }: RouteContext, id: string): Promise<LoadedTicket> {
  const loaded = await lockTicket(tx, companyId, id)
  if (!loaded) throw notFound()
  return loaded
}

const refusalError = (refusal: Refusal, { state }: Ticket): ApiError => {
  if (refusal === 'state') return invalidField('state', 'state_refused', { state })
  if (refusal === 'decision') return invalidField('decision', 'decided_already')
  const text = refusal === 'self_approval' ? words('own_approval') : words('not_approver')
  return new ApiError(403, 'forbidden', text, { reason: refusal })
}

async function decideOne(
  tx: Tx,
  context: RouteContext,
  loaded: LoadedTicket,
  verdict: Verdict,
  comment: string | null,
  notices: Notices,
): Promise<void> {
  const { hub, caller, companyId } = context
  const { row, ticket } = loaded
  const people = await peopleOf(new PeopleLookup(tx.db, companyId), ticket)
  const allowed = mayDecide(ticket, people, caller.user.id)
  if ('refused' in allowed) throw refusalError(allowed.refused, ticket)
  const onBehalfOf = allowed.say === caller.user.id ? null : allowed.say
  const person = { userId: caller.user.id, userName: caller.user.name }
  await addEvent(tx, row.id, {
    ...person,
    type: 'decided',
    step: row.step,
    decision: verdict,
    originId: onBehalfOf,
    comment,
  })
  const moved = decide(ticket, { userId: caller.user.id, onBehalfOf, decision: verdict }, hub.now())
  await settle(hub, tx, loaded, moved, notices)
  await auditRequest(
    tx,
    context,
    'approval.decide',
    { type: 'approval', id: row.id, name: `${row.kind} ${row.name}` },
    {
      decision: { old: null, new: verdict },
      on_behalf_of: { old: null, new: onBehalfOf },
      state: { old: ticket.state, new: moved.ticket.state },
      run: { old: null, new: row.runId },
    },
  )
}

export async function decideTicket(
  context: RouteContext,
  row: TicketRow,
  verdict: Verdict,
  comment: string | null,
): Promise<ShownTicket> {
  const { hub, caller } = context
  const { id } = row
  await tickDue(hub, row, false)
  await inTransaction(hub.database.db, async tx => {
    const notices = new Notices()
    await decideOne(tx, context, await locked(tx, context, id), verdict, comment, notices)
    await notices.tell(hub, tx, { name: caller.user.name, comment: comment ?? '' })
  })
  return shownAgain(context, id)
}

async function shownAgain(context: RouteContext, id: string): Promise<ShownTicket> {
  const { hub, companyId, caller } = context
  const [shown] = await showTickets(hub.database.db, companyId, caller.user.id, [await rowOf(context, id)])
  if (!shown) throw notFound()
  return shown
}

type RefusedTicket = { readonly id: string; readonly reason: string; readonly message: string }

/**
 * Approves every ticket of the run that waits for the caller, and names those that do not. Where none does, this throws
 * what the ticket itself would answer.
 */
export async function approveAllOfRun(
  context: RouteContext,
  asked: TicketRow,
  comment: string | null,
): Promise<{ readonly data: readonly ShownTicket[]; readonly refused: readonly RefusedTicket[] }> {
  const { hub, caller, language } = context
  const { id: askedId, runId, companyId } = asked
  await tickDue(hub, asked, true)
  const { done, refused } = await inTransaction(hub.database.db, async tx => {
    const rows = await tx.db.execute<{ id: string }>(sql`
      select id from approval_tickets where company_id = ${companyId} and run_id = ${runId} and state = 'pending'
      order by created_at, id for update`)
    const notices = new Notices()
    const outcome = { done: [] as string[], refused: [] as RefusedTicket[] }
    for (const { id } of rows)
      try {
        await decideOne(tx, context, await locked(tx, context, id), 'approved', comment, notices)
        outcome.done.push(id)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        const [[field, texts] = []] = Object.entries(error.more.errors ?? {})
        // As answers to one decision say it: their reason, or the field at which they refuse.
        const reason = error.more.reason ?? field ?? error.code
        outcome.refused.push({ id, reason, message: render(texts?.[0] ?? error.text, language) })
      }
    if (outcome.done.length === 0)
      await decideOne(tx, context, await locked(tx, context, askedId), 'approved', comment, notices)
    await notices.tell(hub, tx, { name: caller.user.name, comment: comment ?? '' })
    return outcome
  })
  const data = await Promise.all(done.map(id => shownAgain(context, id)))
  return { data, refused }
}

/** Hands on a say: the caller's, or with approvals.manage that of somebody who is missing. */
export async function delegateTicket(
  context: RouteContext,
  id: string,
  given: {
    readonly user_id: string
    readonly comment?: string | null | undefined
    readonly from_user_id?: string | null | undefined
  },
): Promise<ShownTicket> {
  const { hub, caller, companyId } = context
  const isManager = given.from_user_id != null
  if (isManager && !caller.permissions.has('approvals.manage')) throw permissionDenied('approvals.manage')
  const [toId, fromId] = [given.user_id.toLowerCase(), (given.from_user_id ?? caller.user.id).toLowerCase()]
  await inTransaction(hub.database.db, async tx => {
    const loaded = await locked(tx, context, id)
    const { row, ticket } = loaded
    if (ticket.state !== 'pending') throw invalidField('state', 'state_refused', { state: ticket.state })
    const people = await peopleOf(new PeopleLookup(tx.db, companyId), ticket)
    const isAble = await canDecide(tx.db, companyId, toId)
    const made = delegation(ticket, people.named, { fromId, toId, isManager }, isAble)
    if ('refused' in made) {
      if (made.refused === 'user_id') throw invalidField('user_id', 'no_delegate')
      if (isManager) throw invalidField('from_user_id', 'not_approver')
      throw refusalError('not_approver', ticket)
    }
    const person = { userId: caller.user.id, userName: caller.user.name, comment: given.comment ?? null }
    await addEvent(tx, row.id, { ...person, ...made, type: 'delegated', step: row.step })
    const delegated = { ...ticket, delegations: [...ticket.delegations, made] }
    const notices = new Notices()
    notices.add({ type: 'approval.requested', row, userIds: [toId], dueAtMs: row.slaDueAt.getTime() })
    await settle(hub, tx, loaded, { ticket: delegated, effects: [] }, notices)
    await notices.tell(hub, tx, { name: caller.user.name, comment: given.comment ?? '' })
    await auditRequest(
      tx,
      context,
      'approval.delegate',
      { type: 'approval', id, name: `${row.kind} ${row.name}` },
      {
        from: { old: null, new: fromId },
        to: { old: null, new: toId },
        run: { old: null, new: row.runId },
      },
    )
  })
  return shownAgain(context, id)
}

/** A comment of an approver, the requester, or a holder of approvals.manage. */
export async function commentTicket(context: RouteContext, row: TicketRow, comment: string) {
  const { hub, caller, companyId } = context
  const { id, name } = caller.user
  return inTransaction(hub.database.db, async tx => {
    const loaded = await locked(tx, context, row.id)
    const people = await peopleOf(new PeopleLookup(tx.db, companyId), loaded.ticket)
    const isConcerned =
      caller.permissions.has('approvals.manage') ||
      row.requesterIds.includes(id) ||
      people.named.includes(id) ||
      loaded.ticket.delegations.some(each => each.toId === id) ||
      loaded.ticket.decisions.some(each => each.userId === id)
    if (!isConcerned) throw refusalError('not_approver', loaded.ticket)
    const commentId = randomUUID()
    const at = await addEvent(tx, row.id, {
      type: 'commented',
      step: row.step,
      userId: id,
      userName: name,
      comment,
      commentId,
    })
    const subject = { type: 'approval', id: row.id, name: `${row.kind} ${row.name}` }
    await auditRequest(tx, context, 'approval.comment', subject)
    return { id: commentId, user: { id, name }, comment, at }
  })
}
