// The life of an approval ticket (resources.md; decision G-128): steps one after the other, as many
// different people as a step asks for, and delegation of one person's say. What time does to it: approval-clock.ts.

const LINKS_MAX = 3

export type Approvers = {
  /** The id of a role. */
  readonly role: string | null
  readonly team: string | null
  readonly users: readonly string[]
}

export type StepRule = {
  readonly name: string
  readonly approvers: Approvers
  /** How many different people must approve. */
  readonly required: number
  readonly slaHours: number
  readonly onOverdue: 'notify' | 'escalate' | 'reject'
  readonly escalateTo: Approvers | null
}

/** A workflow as it was when the ticket was opened. */
export type WorkflowRule = {
  readonly allowSelf: boolean
  /** Nobody approves at two steps. */
  readonly distinctApprovers: boolean
  readonly steps: readonly StepRule[]
}

export type Decision = {
  /** The place of the step, from 0. */
  readonly step: number
  /** Null for what the clock decided. */
  readonly userId: string | null
  /** Whose say it was, when that is somebody else. */
  readonly onBehalfOf: string | null
  readonly decision: 'approved' | 'rejected'
}

/** `fromId` hands on the say of `originId`, which is their own when the two are the same. */
export type Delegation = { readonly originId: string; readonly fromId: string; readonly toId: string }

export type TicketState = 'pending' | 'approved' | 'rejected' | 'cancelled' | 'expired'

export type Ticket = {
  readonly workflow: WorkflowRule
  readonly state: TicketState
  readonly step: number
  readonly stepStartedAtMs: number
  readonly isEscalated: boolean
  readonly dueSoonTold: boolean
  readonly overdueTold: boolean
  readonly expiresAtMs: number
  /** Who submitted the run, and who planned it again. */
  readonly requesterIds: readonly string[]
  readonly decisions: readonly Decision[]
  readonly delegations: readonly Delegation[]
}

/** The people of the current step, looked up now: who it names, and who of all people can decide at all. */
export type StepPeople = {
  readonly named: readonly string[]
  /** Not disabled, and holders of approvals.decide; among those named and those who were delegated to. */
  readonly able: ReadonlySet<string>
}

/**
 * Stands for a step that the kept workflow does not have, as a restored or hand-made row may say: nobody can decide
 * there, so that the ticket is blocked until it expires. Throwing would fail the lists and the clock of all others.
 */
const MISSING_STEP: StepRule = {
  name: '',
  approvers: { role: null, team: null, users: [] },
  required: 1,
  slaHours: 0,
  onOverdue: 'notify',
  escalateTo: null,
}

/** The step that a ticket waits at. */
export const stepOf = (ticket: Ticket): StepRule => ticket.workflow.steps[ticket.step] ?? MISSING_STEP

/** Through whose hands the say of a person went, that person first. */
function chainOf(ticket: Pick<Ticket, 'delegations'>, originId: string): string[] {
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

const ofStep = (ticket: Ticket): readonly Decision[] =>
  ticket.decisions.filter(decision => decision.step === ticket.step)
const sayOf = (decision: Decision): string | null => decision.onBehalfOf ?? decision.userId

/** The says that a person has at the current step and that are not used: their own first. */
function saysOf(ticket: Ticket, named: readonly string[], userId: string): string[] {
  const used = new Set(ofStep(ticket).map(sayOf))
  const held = named.filter(origin => origin === userId || lastOf(chainOf(ticket, origin)) === userId)
  return held.filter(origin => !used.has(origin)).sort((a, b) => Number(b === userId) - Number(a === userId))
}

const isRequester = (ticket: Ticket, userId: string): boolean =>
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

const approvedAtStep = (ticket: Ticket): number => ofStep(ticket).filter(each => each.decision === 'approved').length

/** True when fewer people could still decide than the step needs. */
export const isBlocked = (ticket: Ticket, people: StepPeople): boolean =>
  ticket.state === 'pending' && deciders(ticket, people).length < stepOf(ticket).required - approvedAtStep(ticket)

export type TicketEffect = 'step_began' | 'approved' | 'rejected' | 'expired' | 'escalated' | 'due_soon' | 'overdue'
export type Moved = { readonly ticket: Ticket; readonly effects: readonly TicketEffect[] }

/** The ticket after a decision that `mayDecide` allows. */
export function decide(ticket: Ticket, made: Omit<Decision, 'step'>, nowMs: number): Moved {
  const decided = { ...ticket, decisions: [...ticket.decisions, { ...made, step: ticket.step }] }
  if (made.decision === 'rejected') return { ticket: { ...decided, state: 'rejected' }, effects: ['rejected'] }
  if (approvedAtStep(decided) < stepOf(decided).required) return { ticket: decided, effects: [] }
  if (decided.step + 1 === decided.workflow.steps.length)
    return { ticket: { ...decided, state: 'approved' }, effects: ['approved'] }
  const clock = { stepStartedAtMs: nowMs, isEscalated: false, dueSoonTold: false, overdueTold: false }
  return { ticket: { ...decided, ...clock, step: decided.step + 1 }, effects: ['step_began'] }
}

/**
 * The delegation of a say to somebody, or null when it may not be: to the requester, to somebody without the right,
 * back
 * along the chain, or over more than three links. `originId` is given where a manager acts for somebody who is missing.
 */
export function delegation(
  ticket: Ticket,
  named: readonly string[],
  { fromId, toId, isManager }: { readonly fromId: string; readonly toId: string; readonly isManager: boolean },
  canDecide: boolean,
): Delegation | { readonly refused: 'user_id' | 'not_approver' } {
  const [origin] = saysOf(ticket, named, fromId)
  if (origin === undefined || (!isManager && isRequester(ticket, fromId))) return { refused: 'not_approver' }
  const whole = chainOf(ticket, origin)
  const chain = whole.slice(0, whole.indexOf(fromId) + 1)
  const isAllowed =
    canDecide && !ticket.requesterIds.includes(toId) && !chain.includes(toId) && chain.length <= LINKS_MAX
  return isAllowed ? { originId: origin, fromId, toId } : { refused: 'user_id' }
}
