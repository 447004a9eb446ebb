// What the pages of manifests and approvals are sent, apart from what makes it: the script knows these types alone.

type RunState = 'planned' | 'invalid' | 'applied' | 'partially-applied'
type FieldDiff = { readonly field: string; readonly old: unknown; readonly new: unknown }

export type RunSummary = {
  readonly id: string
  readonly title: string
  readonly state: RunState
  readonly submitter: string | null
  readonly submitterId: string | null
  readonly files: number
  /** Kinds of manifests and how many of each. */
  readonly kinds: Readonly<Record<string, number>>
  readonly createdAtMs: number
  readonly isQueued: boolean
  readonly isCancelled: boolean
  readonly error: string | null
}

export type IacRunsView = {
  readonly matching: number
  readonly offset: number
  readonly rows: readonly RunSummary[]
}

export type RunItem = {
  readonly id: string
  readonly path: string
  readonly kind: string
  readonly name: string
  readonly action: 'create' | 'update' | 'delete' | 'none'
  readonly state: 'planned' | 'applied' | 'skipped' | 'failed'
  readonly adopts: boolean
  readonly error: string | null
  readonly diff: readonly FieldDiff[]
  readonly approvalsRequired: number
  readonly approvalsGiven: number
  /** The key that its applier needs; whether the submitter lacks it. */
  readonly requires: string
  readonly isForbidden: boolean
}

export type RunStep = {
  readonly flow: string
  readonly step: string
  readonly item: string
  readonly decision: string | null
  readonly decidedBy: string | null
  readonly decidedAtMs: number | null
  readonly dueAtMs: number | null
}

export type IacRunView = RunSummary & {
  readonly isStale: boolean
  readonly items: readonly RunItem[]
  readonly steps: readonly RunStep[]
  readonly faults: readonly { readonly path: string; readonly line: number | null; readonly message: string }[]
  /** Manifests that were judged but not tried out. */
  readonly untried: readonly string[]
}

export type ApprovalRow = {
  readonly id: string
  readonly state: 'pending' | 'approved' | 'rejected' | 'cancelled' | 'expired'
  readonly runId: string
  readonly kind: string
  readonly name: string
  readonly action: string
  readonly diff: readonly FieldDiff[]
  readonly workflow: string
  /** The step at which it stands, how many of its approvals there are, and how many it needs. */
  readonly step: string
  readonly given: number
  readonly required: number
  readonly requester: string | null
  /** The people who may decide now. */
  readonly deciderIds: readonly string[]
  readonly dueAtMs: number
  readonly closedAtMs: number | null
}

export type ApprovalsView = {
  readonly total: number
  readonly offset: number
  readonly rows: readonly ApprovalRow[]
}
