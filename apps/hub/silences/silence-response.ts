// Silences as the API answers them (decisions G-121, G-178, G-179).
import { Type } from '@sinclair/typebox'
import { frequencies } from '../../../core/lifecycle/silence-windows.ts'
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
  /** Empty: the events of all rules. */
  rule_ids: listed(id()),
  recurrence: nullable(
    Type.Object({
      frequency: oneOf(frequencies),
      weekdays: listed(Type.Integer({ minimum: 1, maximum: 7 })),
      until: nullable(time()),
      time_zone: string(),
    }),
  ),
  // The window that holds, else the next one; null when all are over.
  current_window: nullable(Type.Object({ starts_at: time(), ends_at: time() })),
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
