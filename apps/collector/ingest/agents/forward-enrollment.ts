// POST /agent/v1/enroll: a licence becomes an agent token (document 1 "/enroll"; document 3 "Enrollment"; decisions
// G-26 to G-30, G-39). The hub decides. The collector passes its answer on, and stores the agent before it responds.

import { create, fromBinary, fromJson, type JsonValue } from '@bufbuild/protobuf'
import { sha256Hex } from '../../../../core/series/hash.ts'
import { isUuid } from '../../../../core/series/uuid.ts'
import {
  type EnrollRequest,
  EnrollRequestSchema,
  EnrollResponseSchema,
} from '../../../../proto/gen/svc/agent/v1/agent_pb.ts'
import { ApiError, badRequest, rateLimited, unavailable } from '../../../http/api-error.ts'
import { discardBody, inflate, readBody } from '../../../http/body-limits.ts'
import type { IncomingRequest } from '../../../http/http-request.ts'
import { describeResponse, type HubRefusal, type HubResponse } from '../../../hub-link/hub-connection.ts'
import { isOwnTokenRefused } from '../../../hub-link/own-token-refused.ts'
import { type AgentRecord, emptyRecord, isJsonObject, type JsonObject } from '../../store/registry/agent-record.ts'
import type { IngestContext } from '../context.ts'
import { bodyForm, protocolOf } from '../listener/agent-protocol.ts'
import { messageResponse } from '../listener/responses.ts'

const RETRY_SECONDS_DEFAULT = 60

/** Reads a small message of a request: protobuf, or JSON where that is on. */
export async function readMessage<T>(
  context: IngestContext,
  request: IncomingRequest,
  parse: { readonly binary: (bytes: Uint8Array) => T; readonly json: (json: JsonValue) => T },
): Promise<{ readonly message: T; readonly isJson: boolean } | ApiError> {
  const { config } = context
  const form = bodyForm(request.headers.get('content-type'), config['debug.accept_json'])
  if (form instanceof ApiError) {
    await discardBody(request)
    return form
  }
  const body = await readBody(request, config['ingest.limits.max_body_bytes'])
  if (body instanceof ApiError) return body
  const bytes = inflate(body, request.headers.get('content-encoding'), config['ingest.limits.max_inflated_bytes'])
  if (bytes instanceof ApiError) return bytes
  const isJson = form === 'json'
  try {
    const json: JsonValue = isJson ? JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) : null
    return { message: isJson ? parse.json(json) : parse.binary(bytes), isJson }
  } catch {
    return badRequest('the body is not the message that this endpoint takes')
  }
}

const readEnroll = {
  binary: (bytes: Uint8Array) => fromBinary(EnrollRequestSchema, bytes),
  json: (json: JsonValue) => fromJson(EnrollRequestSchema, json, { ignoreUnknownFields: true }),
}

/** `peer`: the address at the other end of the connection. */
export async function enroll(
  context: IngestContext,
  request: IncomingRequest,
  peer: string,
): Promise<Response | ApiError> {
  const { headers } = request
  const protocol = protocolOf(headers)
  if (protocol instanceof ApiError) {
    await discardBody(request)
    return protocol
  }
  const read = await readMessage(context, request, readEnroll)
  if (read instanceof ApiError) return read
  const { message, isJson } = read
  if (message.license === '') return badRequest('field license is missing')
  if (!context.hub) return unavailable('enrollment needs the hub, and none is configured')
  const clientAddress = context.proxies.clientAddress(peer, headers.get('x-forwarded-for'))
  const answer = await context.hub.enroll(enrollBody(message, protocol.version), clientAddress)
  if (answer.kind !== 'ok') return enrollError(context, answer)
  return finish(context, answer.data, isJson)
}

function enrollBody(message: EnrollRequest, protoVersion: number) {
  return {
    license: message.license,
    hostname: message.hostname,
    ip_addresses: message.ipAddresses,
    machine_id: message.machineId || undefined,
    os: osOf(message),
    agent_version: message.agentVersion || undefined,
    proto_version: protoVersion,
  }
}

/** Empty fields are left out, since the hub refuses an empty text. */
function osOf({ os }: EnrollRequest): Record<string, string> {
  const { family = '', name = '', version = '', kernel = '', arch = '' } = os ?? {}
  return Object.fromEntries(Object.entries({ family, name, version, kernel, arch }).filter(([, text]) => text !== ''))
}

/** Translates a refusal of the hub into an error of the agent API (decision G-27). */
function enrollError(context: IngestContext, answer: Exclude<HubResponse, { kind: 'ok' }>): ApiError {
  if (answer.kind === 'unreachable') {
    context.log.warn({ reason: describeResponse(answer) }, 'cannot enroll an agent')
    return unavailable('the hub cannot be reached')
  }
  const { status, code } = answer
  if (status === 401 && !isOwnTokenRefused(status, code))
    return new ApiError(401, code, 'the licence is not valid, was revoked, or has expired')
  if (status === 409 && (code === 'already_enrolled' || code === 'token_used'))
    return new ApiError(
      409,
      code,
      code === 'token_used' ? 'every use of the licence is taken' : 'this host is enrolled already',
    )
  if (status === 422)
    return code === 'quota_exceeded'
      ? new ApiError(422, code, "the plan's number of agents is reached")
      : new ApiError(422, 'binding_failed', 'no server could be paired with this host')
  if (status === 429) return rateLimited(answer.retryAfterSeconds ?? RETRY_SECONDS_DEFAULT)
  context.log.error({ reason: describeResponse(answer) }, 'cannot enroll an agent')
  return hubFault(answer)
}

/** A refusal that is not about the agent, which may try again. */
export const hubFault = (answer: HubRefusal): ApiError =>
  unavailable('the hub cannot answer now', answer.retryAfterSeconds ?? RETRY_SECONDS_DEFAULT)

async function finish(context: IngestContext, data: JsonObject, isJson: boolean): Promise<Response | ApiError> {
  const { agent_id: agentId, company_id: companyId, server_id: serverId, agent_token: agentToken } = data
  const isComplete =
    typeof agentId === 'string' &&
    isUuid(agentId) &&
    typeof companyId === 'string' &&
    typeof serverId === 'string' &&
    typeof agentToken === 'string' &&
    agentToken !== ''
  if (!isComplete) {
    context.log.error("the hub's answer to an enrollment is not complete")
    return unavailable('the hub cannot answer now')
  }
  const tokenHash = sha256Hex(agentToken)
  // The record says whether the agent is active or pending. If it cannot be fetched now, the first batch fetches it.
  if (!context.registry.byTokenHash(tokenHash, context.nowMs())) await context.lookup.fetchIssued(tokenHash)
  const record = context.registry.byAgent(agentId) ?? provisional(agentId, companyId, serverId, data)
  context.log.info({ agent_id: agentId, company_id: companyId, server_id: serverId }, 'an agent is enrolled')
  const config = context.configs.messageOf(record)
  return messageResponse(
    EnrollResponseSchema,
    create(EnrollResponseSchema, {
      agentId,
      agentToken,
      collectorUrl: config.collectorUrl,
      config,
      serverTimeMs: BigInt(Math.floor(context.nowMs())),
    }),
    isJson,
  )
}

/** A record only for the config in the response; it is not stored in the registry. */
function provisional(agentId: string, companyId: string, serverId: string, data: JsonObject): AgentRecord {
  const seconds = isJsonObject(data.config) ? data.config.interval_seconds : 0
  return {
    ...emptyRecord(agentId),
    companyId,
    serverId,
    state: 'pending',
    intervalSeconds: typeof seconds === 'number' ? seconds : 0,
  }
}
