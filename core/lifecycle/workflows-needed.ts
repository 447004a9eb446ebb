// Which approval workflows an item of a run needs (resources.md §7 "Workflow", RES-151, RES-152). Who may then
// decide: may-decide-on-ticket.ts.

export type WorkflowMatch = {
  readonly environments?: readonly string[] | undefined
  readonly tags?: readonly string[] | undefined
  /** Ids or slugs. */
  readonly companies?: readonly string[] | undefined
}

type Matching = {
  readonly name: string
  /** Empty: every kind. */
  readonly kinds: readonly string[]
  /** Empty: every action. */
  readonly actions: readonly string[]
  readonly match: WorkflowMatch
  readonly priority: number
}

type ApprovalSubject = {
  readonly kind: string
  readonly action: string
  readonly environments: readonly string[]
  readonly tags: readonly string[]
  /** Id and slug. */
  readonly company: readonly string[]
}

const meets = (asked: readonly string[] | undefined, has: readonly string[]): boolean =>
  asked === undefined || asked.length === 0 || asked.some(each => has.includes(each))

const isFor = ({ kinds, actions, match }: Matching, subject: ApprovalSubject): boolean =>
  meets(kinds, [subject.kind]) &&
  meets(actions, [subject.action]) &&
  meets(match.environments, subject.environments) &&
  meets(match.tags, subject.tags) &&
  meets(match.companies, subject.company)

/**
 * The workflows that an item needs, all of them, the lowest number of priority first. What changes nothing needs
 * none.
 */
export const workflowsFor = <W extends Matching>(workflows: readonly W[], subject: ApprovalSubject): W[] =>
  subject.action === 'none'
    ? []
    : workflows
        .filter(workflow => isFor(workflow, subject))
        .sort((a, b) => a.priority - b.priority || (a.name < b.name ? -1 : 1))
