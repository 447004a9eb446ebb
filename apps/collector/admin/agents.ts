// PUT and DELETE /internal/v1/agents/{agent_id}: the hub's short cut beside the feed (decisions G-38 and G-42).
import type { AgentPushResponse } from '../../../core/admin-api/calls.ts'
import { isUuid } from '../../../core/series/uuid.ts'
import { AdminError, badField } from '../../admin-api/admin-error.ts'
import { type AdminCall, uuidOf } from '../../admin-api/call.ts'
import { readBody } from '../../http/body-limits.ts'
import { isRecordFault, optionalFieldFault, parseAgentRecord } from '../store/registry/agent-record-faults.ts'
import type { AdminDeps } from './deps.ts'

const BODY_BYTES_MAX = 64 * 1024

async function jsonOf(request: Request): Promise<unknown> {
  const bytes = await readBody(request, BODY_BYTES_MAX)
  if (!(bytes instanceof Uint8Array))
    throw new AdminError('bad_request', `body must be whole, and at most ${BODY_BYTES_MAX} bytes`)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new AdminError('bad_request', 'body must be a JSON object')
  }
}

/** 200 {agent_id, version, applied}; a version that is not newer gives applied=false. */
export async function pushAgent(deps: AdminDeps, { params, request }: AdminCall): Promise<AgentPushResponse> {
  const agentId = uuidOf('agent_id', params.agent_id)
  const json = await jsonOf(request)
  const record = optionalFieldFault(json) ?? parseAgentRecord(json, agentId)
  if (isRecordFault(record)) throw badField(record.field, `must be ${record.expected}`)
  const { applied, version } = await deps.registry.push(record)
  return { agent_id: agentId, version, applied }
}

/** Always 204: what is no agent's id has nothing to revoke. */
export async function revokeAgent(deps: AdminDeps, { params }: AdminCall): Promise<Response> {
  const agentId = params.agent_id?.toLowerCase() ?? ''
  if (isUuid(agentId)) await deps.registry.revoke(agentId)
  return new Response(null, { status: 204 })
}
