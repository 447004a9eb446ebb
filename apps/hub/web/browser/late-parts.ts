// Parts of pages that are loaded when they are needed. Who loads files (pages/all-pages.ts) says how: the bundler's own
// code for that would else be a further file of every page.
import type { ComponentType } from 'preact'
import type { SilenceDialogProps } from './parts/silence-start.ts'

/** The charts of a company's only server. */
type FirstCharts = ComponentType<{ readonly serverId: string }>

type LateParts = {
  silence: (() => Promise<ComponentType<SilenceDialogProps>>) | null
  firstCharts: (() => Promise<FirstCharts>) | null
  palette: (() => Promise<ComponentType>) | null
  keys: (() => Promise<ComponentType>) | null
  views: (() => Promise<ComponentType>) | null
  columns: (() => Promise<ComponentType>) | null
}

export const lateParts: LateParts = {
  silence: null,
  firstCharts: null,
  palette: null,
  keys: null,
  views: null,
  columns: null,
}
