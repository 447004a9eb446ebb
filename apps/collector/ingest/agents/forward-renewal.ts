// POST /agent/v1/credentials/renew: a new token for an agent that presents its current one, or the previous one during
// the overlap (document 1 "Token rotation"; decision G-37). The record is stored before the agent gets the new token.

import { create } from '@bufbuild/protobuf'
import { RenewResponseSchema } from '../../../../proto/gen/svc/agent/v1/agent_pb.ts'
import { ApiError, rateLimited, unavailable } from '../../../http/api-error.ts'
import { discardBody } from '../../../http/body-limits.ts'
import type { IncomingRequest } from '../../../http/http-request.ts'
import { describeResponse, type HubResponse } from '../../../hub-link/hub-connection.ts'
import { isRecordFault, parseAgentRecord } from '../../store/registry/agent-record-faults.ts'
import { type IngestContext, noteAgent } from '../context.ts'
import { bodyForm, protocolOf } from '../listener/agent-protocol.ts'
import { messageResponse, unauthorized } from '../listener/responses.ts'
import { Authenticator } from './authenticate.ts'
import { hubFault } from './forward-enrollment.ts'

const RETRY_SECONDS_DEFAULT = 60

export async function renewCredentials(context: IngestContext, request: IncomingRequest): Promise<Response | ApiError> {
  const { headers } = request
  await discardBody(request)
  const protocol = protocolOf(headers)
  if (protocol instanceof ApiError) return protocol
  const header = headers.get('authorization')
  const session = await context.authenticator.authenticate(header, context.nowMs())
  if (session instanceof ApiError) return session
  noteAgent(session, protocol)
  const tokenHash = Authenticator.tokenHash(header)
  if (tokenHash === null) return unauthorized()
  if (!context.hub) return unavailable('renewal needs the hub, and none is configured')
  const answer = await context.hub.renew(session.record.agentId, tokenHash)
  if (answer.kind !== 'ok') return renewError(context, answer)

  const { agent_token: agentToken, old_token_valid_until: validUntil, agent } = answer.data
  const record = parseAgentRecord(agent, undefined, session.record)
  const validUntilMs = typeof validUntil === 'string' ? Date.parse(validUntil) : Number.NaN
  if (isRecordFault(record) || typeof agentToken !== 'string' || agentToken === '' || Number.isNaN(validUntilMs)) {
    context.log.error("the hub's answer to a renewal is not complete")
    return unavailable('the hub cannot answer now')
  }
  try {
    context.registry.apply([record])
  } catch (error) {
    // The record is in memory, so the renewal succeeds: the agent must not lose the token that the hub has just issued.
    context.log.error({ err: error }, 'cannot keep an agent record on disk')
  }
  const form = bodyForm(headers.get('content-type'), context.config['debug.accept_json'])
  return messageResponse(
    RenewResponseSchema,
    create(RenewResponseSchema, {
      agentToken,
      oldTokenValidUntilMs: BigInt(validUntilMs),
      serverTimeMs: BigInt(Math.floor(context.nowMs())),
    }),
    form === 'json',
  )
}

function renewError(context: IngestContext, answer: Exclude<HubResponse, { kind: 'ok' }>): ApiError {
  if (answer.kind === 'refused') {
    if (answer.status === 404 && answer.code === 'not_found') return unauthorized()
    if (answer.status === 429) return rateLimited(answer.retryAfterSeconds ?? RETRY_SECONDS_DEFAULT)
  }
  context.log.warn({ reason: describeResponse(answer) }, 'cannot renew the token of an agent')
  return answer.kind === 'refused' ? hubFault(answer) : unavailable('the hub cannot be reached')
}
