// What the dialog of a new silence is given; apart from it, since pages load it late.
import type { SilenceRow } from '../../views/silences.ts'

/** What a silence begins with; all may be changed but the chosen servers. */
export type SilenceStart = {
  readonly serverIds?: readonly string[]
  /** A scope of before. */
  readonly scope?: SilenceRow['scope']
  readonly rules?: readonly { readonly id: string; readonly name: string }[]
  /** Only alerts of the rules, of all servers: the scope begins with all. */
  readonly isOfRule?: boolean
  readonly hours?: number
  readonly reason?: string
}

export type SilenceDialogProps = {
  readonly start: SilenceStart
  readonly onClose: () => void
  readonly onDone: () => void
}
