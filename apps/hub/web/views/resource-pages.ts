// What the pages of resources are sent, apart from what makes it: the script of the pages knows these types alone.
import type { BothLanguages } from '../../resources/kind-info.ts'

type ShownHealth = 'ok' | 'warning' | 'critical' | 'unknown'
type KindTitle = { readonly one: BothLanguages; readonly many: BothLanguages }

export type KindCounts = {
  readonly kind: string
  readonly title: BothLanguages
  /** It is seen within what it is a part of. */
  readonly isPart: boolean
  readonly total: number
  readonly ok: number
  readonly warning: number
  readonly critical: number
  readonly unknown: number
}

export type ResourceProblem = {
  readonly kind: string
  readonly id: string
  readonly name: string
  readonly severity: 'warning' | 'critical'
  readonly message: BothLanguages
  readonly sinceMs: number
}

export type InfrastructureView = {
  readonly kinds: readonly KindCounts[]
  /** The worst and newest. */
  readonly problems: readonly ResourceProblem[]
}

export type NamedResource = { readonly id: string; readonly kind: string; readonly name: string }
export type ResourceChoicesView = { readonly choices: readonly NamedResource[] }

/** How a value is shown, and typed into a form. */
export type FieldForm =
  | 'text'
  | 'long_text'
  | 'choice'
  | 'boolean'
  | 'number'
  | 'time'
  | 'texts'
  | 'reference'
  | 'references'
  | 'secret'
  | 'percent'
  | 'json'

export type ResourceField = {
  readonly name: string
  readonly form: FieldForm
  readonly isRequired: boolean
  /** Given at creation and never changed. */
  readonly isImmutable: boolean
  /** The kind that it names. */
  readonly to: string | null
  readonly choices: readonly string[]
  readonly charsMax: number | null
  /** What one has for which none is given. */
  readonly fallback: unknown
}

export type ResourceColumn = {
  readonly name: string
  readonly form: FieldForm
  readonly to: string | null
  readonly sort: boolean
}

export type ResourceRow = {
  readonly id: string
  readonly name: string
  readonly status: string
  readonly health: ShownHealth
  readonly origin: string
  readonly isDrifted: boolean
  readonly updatedAtMs: number
  /** One for each column. */
  readonly values: readonly unknown[]
}

export type ResourcesView = {
  readonly kind: string
  readonly title: KindTitle
  /** What they are parts of. */
  readonly parent: NamedResource | null
  /** Where they are created, below /api/v1; null: not here, or not by this viewer. */
  readonly createPath: string | null
  readonly form: readonly ResourceField[]
  readonly statuses: readonly string[]
  readonly isTrash: boolean
  readonly mayManage: boolean
  readonly matching: number
  readonly offset: number
  readonly columns: readonly ResourceColumn[]
  readonly rows: readonly ResourceRow[]
  readonly names: readonly NamedResource[]
}

export type ResourceCondition = {
  readonly code: string
  readonly severity: 'info' | 'warning' | 'critical'
  readonly message: BothLanguages
  readonly sinceMs: number
}

export type ResourceChange = {
  readonly id: string
  readonly atMs: number
  readonly actor: string | null
  readonly action: string
  readonly fields: readonly string[]
}

type ResourceRun = {
  readonly id: string
  readonly action: string
  readonly state: string
  readonly queuedAtMs: number
  readonly error: string | null
}

export type ResourceView = {
  readonly id: string
  readonly kind: string
  readonly title: KindTitle
  readonly name: string
  readonly parent: NamedResource | null
  readonly version: number
  readonly status: string
  readonly health: ShownHealth
  readonly origin: string
  readonly createdAtMs: number
  readonly updatedAtMs: number
  readonly isDeleted: boolean
  /** Where it is, below /api/v1. */
  readonly path: string
  readonly mayManage: boolean
  readonly mayDelete: boolean
  /** Fields of the kind, those of a request, and their values. */
  readonly fields: readonly ResourceField[]
  readonly form: readonly ResourceField[]
  readonly values: Readonly<Record<string, unknown>>
  /** What the hub knows beside what was given, by name. */
  readonly derived: Readonly<Record<string, unknown>>
  readonly drift: readonly unknown[]
  readonly names: readonly NamedResource[]
  readonly conditions: readonly ResourceCondition[]
  readonly runs: readonly ResourceRun[]
  readonly parts: readonly { readonly kind: string; readonly title: BothLanguages }[]
  /** What the viewer may have done with it: POST of these names below its path. */
  readonly acts: readonly string[]
  /** Newest first; null where the viewer may not read the audit log. */
  readonly changes: readonly ResourceChange[] | null
}
