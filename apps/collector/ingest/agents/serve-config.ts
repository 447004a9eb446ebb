// GET /agent/v1/config (document 3 "Agent to collector"): what is managed of an agent, or 304 when it has that already.

import { matchesEtag } from '../../../../core/wire/agent-config.ts'
import { AgentConfigSchema } from '../../../../proto/gen/svc/agent/v1/agent_pb.ts'
import { ApiError, rateLimited } from '../../../http/api-error.ts'
import type { IncomingRequest } from '../../../http/http-request.ts'
import { type IngestContext, noteAgent } from '../context.ts'
import { protocolOf } from '../listener/agent-protocol.ts'
import { messageResponse } from '../listener/responses.ts'

/** Answers 304 when the agent has the config already. */
export async function serveConfig(context: IngestContext, request: IncomingRequest): Promise<Response | ApiError> {
  const { headers } = request
  const protocol = protocolOf(headers)
  if (protocol instanceof ApiError) return protocol
  const nowMs = context.nowMs()
  const session = await context.authenticator.authenticate(headers.get('authorization'), nowMs)
  if (session instanceof ApiError) return session
  noteAgent(session, protocol)
  const waitSeconds = session.configRate.take(context.rates.config, nowMs)
  if (waitSeconds > 0) return rateLimited(waitSeconds)
  const etag = { etag: `"${context.configs.etagOf(session).text}"` }
  if (matchesEtag(headers.get('if-none-match'), context.configs.etagOf(session).text))
    return new Response(null, { status: 304, headers: etag })
  const isJson = context.config['debug.accept_json'] && (headers.get('accept') ?? '').includes('application/json')
  return messageResponse(AgentConfigSchema, context.configs.messageOf(session.record), isJson, etag)
}
