// What the dialog of a group address is given; apart from it, since its page loads it late.
import type { ChannelRow } from '../../../views/administration-pages.ts'

export type ChannelDialogProps = {
  /** Null: a new one. */
  readonly channel: ChannelRow | null
  readonly onClose: () => void
  readonly onDone: () => void
}
