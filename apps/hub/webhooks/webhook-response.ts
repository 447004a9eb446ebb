// Webhooks as the API answers them (decision G-105).
import { Type } from '@sinclair/typebox'
import { severities } from '../../../core/alerting/rules/rule.ts'
import {
  amount,
  anyObject,
  id,
  listed,
  named,
  nullable,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'

export const webhookResponse = named('Webhook', {
  id: id(),
  company_id: id(),
  name: string(),
  url: string(),
  events: listed(string()),
  min_severity: wordOf(severities),
  scope: anyObject(),
  enabled: Type.Boolean(),
  failures_in_a_row: amount(),
  disabled_reason: nullable(string()),
  created_at: time(),
})
