// Active checks and their results as the API answers them (decision G-119).
import { Type } from '@sinclair/typebox'
import { oneOf } from '../platform/http/request-schema.ts'
import { amount, id, listed, named, nullable, scopeResponse, string, time } from '../platform/http/response-schema.ts'
import { checkTypes } from './check-target.ts'

export const checkResponse = named('Check', {
  id: id(),
  company_id: id(),
  name: string(),
  scope: scopeResponse,
  resolved_server_count: nullable(amount()),
  type: oneOf(checkTypes),
  target: Type.Unsafe<Readonly<Record<string, string | number>>>({
    type: 'object',
    additionalProperties: { type: ['string', 'integer'] },
  }),
  interval_seconds: amount(),
  timeout_seconds: amount(),
  enabled: Type.Boolean(),
  rule_ids: listed(id()),
  managed_by: nullable(Type.Object({ kind: string(), id: id() })),
  created_at: time(),
  updated_at: time(),
})

export const checkResultResponse = named('CheckResult', {
  server: Type.Object({ id: id(), name: string() }),
  value: nullable(Type.Number()),
  sampled_at: nullable(time()),
})
