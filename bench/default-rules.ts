// The company of the benchmarks, and the default rules of a new company.
import type { RawRule } from '../core/alerting/rules/rule.ts'

export const company = '0a000000-0000-4000-8000-000000000001'
export const uuid = (kind: string, index: number): string =>
  `${kind}0000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`

const rule = (
  index: number,
  metric: string,
  operator: RawRule['operator'],
  threshold: number,
  forSeconds: number,
  severity: RawRule['severity'],
  recover: number | null,
): RawRule => ({
  id: uuid('1', index),
  version: 1,
  sync_version: index,
  company_id: company,
  name: metric,
  kind: metric === 'cert_days_left' ? 'check' : 'threshold',
  scope: { all: true, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] },
  resolved_server_ids: [],
  metric,
  matchers: {},
  operator,
  threshold,
  for_seconds: forSeconds,
  recover_threshold: recover,
  recover_for_seconds: 0,
  severity,
  no_data: 'ignore',
  renotify_seconds: 0,
  enabled: true,
  deleted: false,
})
/** The default rules of document 2, as the hub serves them. */
export const defaultRules = [
  rule(1, 'cpu_usage_percent', '>', 90, 600, 'warning', 80),
  rule(2, 'mem_used_percent', '>', 90, 600, 'warning', 85),
  rule(3, 'disk_used_percent', '>', 85, 300, 'warning', null),
  rule(4, 'disk_used_percent', '>', 95, 300, 'critical', null),
  rule(5, 'load_per_core_5m', '>', 2, 900, 'warning', null),
  rule(6, 'cert_days_left', '<', 14, 0, 'warning', null),
  rule(7, 'cert_days_left', '<', 3, 0, 'critical', null),
]
