// The tabs of a server that come in a file of their own, when one of them is first opened. The charts are there by
// then: what they share with a tab stays in their file.
import './metric-chart.tsx'
import '../findings/findings-kit.ts'
import type { ComponentType } from 'preact'
import { AlertsTab } from './alerts-tab.tsx'
import { InventoryTab } from './inventory-tab.tsx'
import type { LateTab, LateTabProps, TabProps } from './late-props.ts'
import { PackagesTab } from './packages-tab.tsx'
import { AgentsTab, ChecksTab, HistoryTab } from './record-tabs.tsx'
import { SecurityTab } from './security-tab.tsx'

const content: Readonly<Record<LateTab, ComponentType<TabProps>>> = {
  alerts: AlertsTab,
  checks: ChecksTab,
  inventory: InventoryTab,
  agents: AgentsTab,
  security: SecurityTab,
  packages: PackagesTab,
  history: HistoryTab,
}

export function LateTabs({ tab, ...props }: LateTabProps) {
  const Content = content[tab]
  return <Content {...props} />
}
