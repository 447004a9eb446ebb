// Silences as the API answers them (decision G-121).
import { Type } from '@sinclair/typebox'
import { alertResponse } from '../alerts/alert-response.ts'
import { oneOf } from '../platform/http/request-schema.ts'
import {
  amount,
  id,
  listed,
  named,
  nullable,
  reference,
  scopeResponse,
  string,
  time,
} from '../platform/http/response-schema.ts'

export const silenceStatuses = ['scheduled', 'active', 'expired', 'cancelled'] as const
export type SilenceStatus = (typeof silenceStatuses)[number]

export const silenceResponse = named('Silence', {
  id: id(),
  company_id: id(),
  scope: scopeResponse,
  resolved_server_count: nullable(amount()),
  starts_at: time(),
  ends_at: time(),
  reason: string(),
  status: oneOf(silenceStatuses),
  created_by: nullable(reference),
  created_at: time(),
})

/** What a silence would cover, before it is saved. */
export const silencePreview = named('SilencePreview', {
  matched_servers: amount(),
  servers: listed(reference),
  open_alerts: Type.Object({
    total: amount(),
    by_severity: Type.Object({ info: amount(), warning: amount(), critical: amount() }),
  }),
  // The newest of them.
  alerts: listed(alertResponse),
})
