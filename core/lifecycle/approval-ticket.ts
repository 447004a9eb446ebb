// An approval ticket, its workflow and the decisions of its steps (resources.md; decision G-128). Who
// may decide: may-decide-on-ticket.ts; what a decision makes of it: approval-steps.ts; what time does:
// approval-clock.ts.
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

/** What was decided at the current step. */
export const ofStep = (ticket: Ticket): readonly Decision[] =>
  ticket.decisions.filter(decision => decision.step === ticket.step)

export const approvedAtStep = (ticket: Ticket): number =>
  ofStep(ticket).filter(each => each.decision === 'approved').length
