// Parts of pages that are loaded when they are needed. Who loads files (pages/all-pages.ts) says how: the bundler's own
// code for that would else be a further file of every page.
import type { ComponentType } from 'preact'

/** The charts of a company's only server. */
type FirstCharts = ComponentType<{ readonly serverId: string }>

export const lateParts: { firstCharts: (() => Promise<FirstCharts>) | null } = { firstCharts: null }
