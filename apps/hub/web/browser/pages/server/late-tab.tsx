// Tabs whose file comes when the first of them is opened: most who look at a server never do.
import { lateParts } from '../../late-parts.ts'
import { latePart } from '../../parts/late-part.tsx'
import type { TabProps } from './tab.ts'

const lateTab = (name: 'SecurityTab' | 'PackagesTab') =>
  latePart<TabProps>(() => lateParts.serverTabs?.().then(tabs => tabs[name])).LatePart

export const SecurityTab = lateTab('SecurityTab')
export const PackagesTab = lateTab('PackagesTab')
