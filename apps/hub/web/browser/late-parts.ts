// Parts of pages that are loaded when they are needed. Who loads files (pages/all-pages.ts) says how: the bundler's own
// code for that would else be a further file of every page.
import type { ComponentType } from 'preact'
import type { IncidentMap } from '../views/alert.ts'
import type { ChannelDialogProps } from './pages/administration/late-props.ts'
import type { CheckDialogProps } from './pages/checks/late-props.ts'
import type { ExceptionDialogProps } from './pages/findings/late-props.ts'
import type { LateTabProps, ServerDialogProps } from './pages/server/late-props.ts'
import type { MapProps, ServerActProps } from './pages/servers/late-props.ts'
import type { SilenceDialogProps } from './parts/silence-dialog-props.ts'

/** The servers of an incident. */
type IncidentMapProps = { readonly data: IncidentMap }

/** The charts of a company's only server. */
type FirstCharts = ComponentType<{ readonly serverId: string }>

type LateParts = {
  incidentMap?: () => Promise<ComponentType<IncidentMapProps>>
  channel?: () => Promise<ComponentType<ChannelDialogProps>>
  check?: () => Promise<ComponentType<CheckDialogProps>>
  exception?: () => Promise<ComponentType<ExceptionDialogProps>>
  silence?: () => Promise<ComponentType<SilenceDialogProps>>
  serverMap?: () => Promise<ComponentType<MapProps>>
  serverActs?: () => Promise<ComponentType<ServerActProps>>
  firstCharts?: () => Promise<FirstCharts>
  palette?: () => Promise<ComponentType>
  keys?: () => Promise<ComponentType>
  views?: () => Promise<ComponentType>
  columns?: () => Promise<ComponentType>
  serverTabs?: () => Promise<ComponentType<LateTabProps>>
  serverDialog?: () => Promise<ComponentType<ServerDialogProps>>
}

export const lateParts: LateParts = {}
