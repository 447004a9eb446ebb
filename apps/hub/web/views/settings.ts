// What holds for all servers of a company: its settings, how long samples are kept, and what its plan allows.

import { quotaOf } from '../../licenses/licenses.ts'
import { presentSettings, settingsOf } from '../../settings/monitoring-settings.ts'
import { sitePages } from '../address/site-map.ts'
import type { SettingsView } from './administration-pages.ts'
import type { View } from './view.ts'

export const settingsView: View<SettingsView> = {
  permissions: ['monitoring.view'],
  params: sitePages.settings.takes,
  async make({ hub, companyId }) {
    const { db } = hub.database
    const [row, quota] = await Promise.all([settingsOf(db, companyId), quotaOf(db, companyId)])
    const shown = presentSettings(hub, row)
    return {
      intervalSeconds: shown.default_interval,
      isServerMade: shown.auto_create_server,
      groupDownMin: shown.group_down_min,
      groupDownRatio: shown.group_down_ratio,
      groupDownWindowSeconds: shown.group_down_window_seconds,
      retentionNote: shown.retention_note,
      alertEventDays: shown.alert_event_retention_days,
      sampleDays: shown.metrics_retention_effective_days,
      previousSampleDays: shown.metrics_retention_previous_days,
      graceUntilMs: shown.metrics_retention_grace_until?.getTime() ?? null,
      plan: quota.plan,
      agents: quota.agents,
      agentQuota: quota.agent_quota,
    }
  },
}
