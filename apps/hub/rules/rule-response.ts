// Rules, the metric catalogue and the preview of a draft as the API answers them (decision G-66).
import { Type } from '@sinclair/typebox'
import type { RawMatchers } from '../../../core/alerting/rules/matchers.ts'
import { noDataModes, operators, ruleKinds, severities } from '../../../core/alerting/rules/rule.ts'
import { oneOf } from '../platform/http/request-schema.ts'
import {
  amount,
  collectorNote,
  id,
  listed,
  named,
  nullable,
  reference,
  scopeResponse,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'

const number = () => nullable(Type.Number())

export const ruleResponse = named('Rule', {
  id: id(),
  company_id: id(),
  version: Type.Integer({ minimum: 1 }),
  name: string(),
  kind: oneOf(ruleKinds),
  scope: scopeResponse,
  resolved_server_count: amount(),
  metric: nullable(string()),
  matchers: nullable(
    Type.Unsafe<RawMatchers>({
      type: 'object',
      additionalProperties: {
        anyOf: [
          { type: 'string' },
          { type: 'array', items: { type: 'string' } },
          { type: 'object', properties: { regex: { type: 'string' } }, required: ['regex'] },
        ],
      },
    }),
  ),
  operator: nullable(oneOf(operators)),
  threshold: number(),
  for_seconds: nullable(amount()),
  recover_threshold: number(),
  recover_for_seconds: nullable(amount()),
  severity: oneOf(severities),
  no_data: nullable(oneOf(noDataModes)),
  renotify_seconds: nullable(amount()),
  enabled: Type.Boolean(),
  is_default: Type.Boolean(),
  check_id: nullable(id()),
  firing_count: amount(),
  created_by: nullable(reference),
  created_at: time(),
  updated_at: time(),
})

export const metricResponse = named('Metric', {
  name: string(),
  labels: listed(string()),
  unit: string(),
  platform: wordOf(['all', 'linux']),
})

const previewedSeries = named('PreviewedSeries', {
  server_id: id(),
  series_key: string(),
  value: Type.Number(),
  violating: Type.Boolean(),
})

const firing = named('PreviewedFiring', {
  series_key: string(),
  opened_at: time(),
  resolved_at: nullable(time()),
  reason: nullable(string()),
  value: nullable(Type.Number()),
  peak_value: nullable(Type.Number()),
})

/** When the draft would have fired, server by server; the newest firings of each. */
const history = named('RuleHistory', {
  from: time(),
  to: time(),
  step_seconds: amount(),
  servers_read: amount(),
  servers_fired: amount(),
  alerts: amount(),
  servers: listed(
    Type.Object({
      server: reference,
      series_count: amount(),
      alerts: amount(),
      firing_seconds: amount(),
      longest_seconds: amount(),
      firing_now: Type.Boolean(),
      firings: listed(firing),
    }),
  ),
})

/** The servers that a draft would cover, and the values that violate it. */
export const previewResponse = Type.Object({
  data: named('RulePreview', {
    matched_servers: amount(),
    servers: listed(reference),
    series: listed(previewedSeries),
    violating: amount(),
    history: nullable(history),
  }),
  collector: collectorNote,
})
