// The licence as the API answers it (decision G-21).
import { Type } from '@sinclair/typebox'
import { licenseStatuses } from '../../../core/lifecycle/license.ts'
import { oneOf } from '../platform/http/request-schema.ts'
import {
  amount,
  id,
  named,
  nullable,
  reference,
  serverReference,
  string,
  time,
} from '../platform/http/response-schema.ts'

export const licenseResponse = named('License', {
  id: id(),
  name: string(),
  company_id: id(),
  token_hint: string(),
  status: oneOf(licenseStatuses),
  max_uses: Type.Integer({ minimum: 1 }),
  used_count: amount(),
  server: nullable(serverReference),
  server_id: nullable(id()),
  collector_id: nullable(id()),
  expires_at: nullable(time()),
  last_used_at: nullable(time()),
  revoked_at: nullable(time()),
  supersedes: nullable(id()),
  superseded_by: nullable(id()),
  migrate_until: nullable(time()),
  created_by: nullable(reference),
  created_at: time(),
})

/** The clear token stands beside the licence, once. */
export const licenseToken = { token: Type.String({ examples: ['lic_0QvX…'] }) }

export const quotaResponse = named('LicenseQuota', {
  plan: string(),
  agent_quota: nullable(amount()),
  licensed_uses: amount(),
  remaining: nullable(amount()),
  agents: amount(),
})
