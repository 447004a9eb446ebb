// What the dialog of a check is given; apart from it, since pages load it late.
import type { CheckType } from '../../../../platform/db/schema.ts'

export const checkTypes = ['http', 'tcp', 'cert', 'service', 'port'] as const satisfies readonly CheckType[]

export type CheckDialogProps = {
  /** Null: a new one; else the check that is changed, or that is copied with a target of its own. */
  readonly of: { readonly id: string; readonly act: 'edit' | 'duplicate' } | null
  readonly onClose: () => void
  readonly onDone: () => void
}
