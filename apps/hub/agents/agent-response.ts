// The agent as the API answers it (decision G-25), and what it says of itself (decision G-40). No token and no hash is
// in it.
import { Type } from '@sinclair/typebox'
import { agentStates } from '../../../core/lifecycle/agent.ts'
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

export const agentResponse = named('Agent', {
  id: id(),
  company_id: id(),
  server: nullable(serverReference),
  collector: nullable(reference),
  license_id: nullable(id()),
  machine_id: nullable(string()),
  hostname: nullable(string()),
  os_family: nullable(string()),
  os_version: nullable(string()),
  arch: nullable(string()),
  agent_version: nullable(string()),
  proto_version: nullable(Type.Integer()),
  state: oneOf(agentStates),
  online: Type.Boolean(),
  last_seen_at: nullable(time()),
  enrolled_at: time(),
  revoked_at: nullable(time()),
  revoked_reason: nullable(string()),
  /** What waits in its buffer, and its last warning; null: it has said nothing. */
  buffer_bytes: nullable(amount()),
  buffer_batches: nullable(amount()),
  last_warning: nullable(string()),
  last_warning_at: nullable(time()),
  version: Type.Integer(),
})
