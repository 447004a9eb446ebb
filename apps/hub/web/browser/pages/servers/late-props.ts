// What parts of the page of servers are given that are loaded late.
import type { HostMapView } from '../../../views/host-map.ts'
import type { ServerRow } from '../../../views/servers.ts'

export type MapProps = { readonly data: HostMapView }

export type ServerAct = 'status' | 'tags'
export type ServerBefore = Pick<ServerRow, 'id' | 'status' | 'tags'>

export type ServerActProps = {
  readonly act: ServerAct
  readonly ids: readonly string[]
  readonly names: readonly string[]
  /** What is known of servers: an act on others cannot be taken back. */
  readonly rows: readonly ServerBefore[]
  readonly onClose: () => void
  readonly onDone: () => void
}
