// What every tab of a server is given.
import type { ServerHead } from '../../../views/server/head.ts'

export type TabProps = {
  readonly server: ServerHead
  readonly serverId: string
  /** Asks for the head again, as after a change. */
  readonly onChanged: () => void
}
