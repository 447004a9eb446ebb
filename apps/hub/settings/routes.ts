// REST: /monitoring/settings (decision G-117): per company, with the retention columns to read only.

import { Type } from '@sinclair/typebox'
import { limits } from '../../../core/limits.ts'
import { boolean, integer, optional, text } from '../platform/http/request-schema.ts'
import { amount, answer, id, named, nullable, string, time } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { presentSettings, retentionOf, settingsOf, updateSettings } from './monitoring-settings.ts'

const TAG = 'Monitoring overview and settings'
const COUNT_MAX = 1_000_000
const WINDOW_SECONDS_MAX = 86_400

const body = Type.Object({
  default_interval: Type.Optional(integer(limits.intervalSecondsMin, limits.intervalSecondsMax)),
  auto_create_server: Type.Optional(boolean()),
  group_down_min: optional(integer(1, COUNT_MAX)),
  group_down_ratio: optional(Type.Number({ exclusiveMinimum: 0, maximum: 1 })),
  group_down_window_seconds: optional(integer(1, WINDOW_SECONDS_MAX)),
  retention_note: optional(text(1000)),
  alert_event_retention_days: Type.Optional(integer(1, 3650)),
})

const retention = {
  metrics_retention_effective_days: nullable(amount()),
  metrics_retention_previous_days: nullable(amount()),
  metrics_retention_grace_until: nullable(time()),
  metrics_retention_changed_at: nullable(time()),
}
const settingsResponse = named('MonitoringSettings', {
  company_id: id(),
  default_interval: amount(),
  auto_create_server: Type.Boolean(),
  group_down_min: nullable(amount()),
  group_down_ratio: nullable(Type.Number()),
  group_down_window_seconds: nullable(amount()),
  retention_note: nullable(string()),
  alert_event_retention_days: amount(),
  ...retention,
})
const retentionResponse = named('Retention', { plan: string(), ...retention, retention_note: nullable(string()) })

export const settingsRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/monitoring/settings',
    tag: TAG,
    summary: 'Show the settings',
    permissions: ['monitoring.view'],
    answer: answer(settingsResponse),
    handle: async ({ hub, companyId }) => ({
      data: presentSettings(hub, await settingsOf(hub.database.db, companyId)),
    }),
  }),
  route({
    method: 'PATCH',
    path: '/monitoring/settings',
    tag: TAG,
    summary: 'Change the settings',
    permissions: ['monitoring.manage'],
    body,
    answer: answer(settingsResponse),
    handle: async context => ({ data: presentSettings(context.hub, await updateSettings(context, context.body)) }),
  }),
  route({
    method: 'GET',
    path: '/monitoring/settings/retention',
    tag: TAG,
    summary: 'Effective retention and a running grace',
    permissions: ['monitoring.view'],
    answer: answer(retentionResponse),
    handle: async ({ hub, companyId }) => ({ data: await retentionOf(hub, companyId) }),
  }),
]
