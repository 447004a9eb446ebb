// A rule of the feed with every field, for tests that keep or replay rules.
import type { RawRule } from '../../core/alerting/rules/rule.ts'

export const company = 'c0000000-0000-4000-8000-000000000001'
export const RULE_ID = '10000000-0000-4000-8000-000000000001'

export const ruleRecord = (fields: Partial<RawRule>): RawRule => ({
  id: RULE_ID,
  version: fields.sync_version ?? 1,
  sync_version: 1,
  company_id: company,
  name: 'cpu',
  kind: 'threshold',
  scope: { all: true, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] },
  resolved_server_ids: [],
  metric: 'cpu_usage_percent',
  matchers: {},
  operator: '>',
  threshold: 90,
  for_seconds: 0,
  recover_threshold: null,
  recover_for_seconds: 0,
  severity: 'warning',
  no_data: 'ignore',
  renotify_seconds: 0,
  enabled: true,
  deleted: false,
  ...fields,
})
