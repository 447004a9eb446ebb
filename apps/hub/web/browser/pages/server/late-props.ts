// What parts of the page of a server are given, tabs and dialogs, most of which are loaded late.
import type { ServerHead } from '../../../views/server/head.ts'

export type TabProps = {
  readonly server: ServerHead
  readonly serverId: string
  /** Asks for the head again, as after a change. */
  readonly onChanged: () => void
}

/** Tabs that come in a file of their own: who looks at the charts does without it. */
export type LateTab = 'alerts' | 'checks' | 'inventory' | 'agents' | 'security' | 'packages' | 'history'
export type LateTabProps = TabProps & { readonly tab: LateTab }

export type ServerDialogProps = {
  readonly shown: 'maintenance' | 'edit' | 'delete'
  readonly server: ServerHead
  readonly onClose: () => void
  readonly onDone: () => void
}
