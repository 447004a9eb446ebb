// Who may decide on an approval ticket now (resources.md; decision G-128): whom the step names, or to
// whom their say went, once each, and not who submitted the run unless the workflow allows that.
import { approvedAtStep, type Decision, ofStep, type StepPeople, stepOf, type Ticket } from './approval-ticket.ts'

/** Through whose hands the say of a person went, that person first. */
export function chainOf(ticket: Pick<Ticket, 'delegations'>, originId: string): string[] {
  let chain = [originId]
  for (const { originId: origin, fromId, toId } of ticket.delegations) {
    const at = origin === originId ? chain.indexOf(fromId) : -1
    if (at >= 0) chain = [...chain.slice(0, at + 1), toId]
  }
  return chain
}

const lastOf = (chain: readonly string[]): string => chain.at(-1) ?? ''

/** Everybody who may come to decide: to be looked up together with those whom the step names. */
export const delegatesOf = (ticket: Pick<Ticket, 'delegations'>): string[] =>
  ticket.delegations.map(delegation => delegation.toId)

const sayOf = (decision: Decision): string | null => decision.onBehalfOf ?? decision.userId

/** The says that a person has at the current step and that are not used: their own first. */
export function saysOf(ticket: Ticket, named: readonly string[], userId: string): string[] {
  const used = new Set(ofStep(ticket).map(sayOf))
  const held = named.filter(origin => origin === userId || lastOf(chainOf(ticket, origin)) === userId)
  return held.filter(origin => !used.has(origin)).sort((a, b) => Number(b === userId) - Number(a === userId))
}

export const isRequester = (ticket: Ticket, userId: string): boolean =>
  !ticket.workflow.allowSelf && ticket.requesterIds.includes(userId)

/** Somebody who decided counts once a step, and with distinct approvers once a ticket. */
const hasDecided = (ticket: Ticket, userId: string): boolean =>
  (ticket.workflow.distinctApprovers ? ticket.decisions : ofStep(ticket)).some(each => each.userId === userId)

export type Refusal = 'self_approval' | 'state' | 'decision' | 'not_approver'

/** Whether a person may decide now: the say that it would use, or why not. */
export function mayDecide(
  ticket: Ticket,
  people: StepPeople,
  userId: string,
): { readonly say: string } | { readonly refused: Refusal } {
  if (isRequester(ticket, userId)) return { refused: 'self_approval' }
  if (ticket.state !== 'pending') return { refused: 'state' }
  if (hasDecided(ticket, userId)) return { refused: 'decision' }
  const [say] = people.able.has(userId) ? saysOf(ticket, people.named, userId) : []
  return say === undefined ? { refused: 'not_approver' } : { say }
}

/** Everybody who may decide at the current step. */
export function deciders(ticket: Ticket, people: StepPeople): string[] {
  if (ticket.state !== 'pending') return []
  const candidates = new Set([...people.named, ...people.named.map(origin => lastOf(chainOf(ticket, origin)))])
  return [...candidates].filter(userId => 'say' in mayDecide(ticket, people, userId))
}

/** True when fewer people could still decide than the step needs. */
export const isBlocked = (ticket: Ticket, people: StepPeople): boolean =>
  ticket.state === 'pending' && deciders(ticket, people).length < stepOf(ticket).required - approvedAtStep(ticket)
