// Which tickets wait for a person, and in which order: the most urgent first, never what they asked for themselves.
import { manifestKindNames } from '../../../core/iac/kind-names.ts'
import { slaStateOf } from '../../../core/lifecycle/approval-clock.ts'
import { deciders } from '../../../core/lifecycle/may-decide-on-ticket.ts'
import type { Asker } from '../platform/http/collection.ts'
import { oneOf, uuid } from '../platform/http/request-schema.ts'
import { PeopleLookup } from './approvers.ts'
import { pendingTickets, type ShownTicket, showTickets } from './ticket-list.ts'
import { slaStates } from './ticket-response.ts'
import { loadTickets, peopleOf, type TicketRow } from './ticket-store.ts'

type InboxFilters = {
  readonly sla_state?: string | undefined
  readonly kind?: string | undefined
  readonly run_id?: string | undefined
}
export const inboxFilters = { sla_state: oneOf(slaStates), kind: oneOf(manifestKindNames), run_id: uuid() }

const URGENCY = ['overdue', 'due_soon', 'ok']

/** The tickets that wait for the caller, most urgent first; never what the caller asked for. */
export async function inboxOf({ hub, companyId, caller }: Asker, given: InboxFilters): Promise<ShownTicket[]> {
  const { db } = hub.database
  const userId = caller.user.id
  const rows = (await pendingTickets(db, companyId)).filter(
    row =>
      !row.requesterIds.includes(userId) &&
      (given.kind === undefined || row.kind === given.kind) &&
      (given.run_id === undefined || row.runId === given.run_id),
  )
  const lookup = new PeopleLookup(db, companyId)
  const waiting: TicketRow[] = []
  for (const { row, ticket } of await loadTickets(db, rows))
    if (deciders(ticket, await peopleOf(lookup, ticket)).includes(userId)) waiting.push(row)
  const nowMs = hub.now()
  const stateOf = ({ ticket }: ShownTicket): string => slaStateOf(ticket, nowMs)
  const shown = await showTickets(db, companyId, userId, waiting)
  return shown
    .filter(each => given.sla_state === undefined || stateOf(each) === given.sla_state)
    .sort(
      (a, b) =>
        URGENCY.indexOf(stateOf(a)) - URGENCY.indexOf(stateOf(b)) ||
        a.row.slaDueAt.getTime() - b.row.slaDueAt.getTime() ||
        (a.row.id < b.row.id ? -1 : 1),
    )
}
