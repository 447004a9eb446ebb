// Responses of the agent API (document 3 "Errors"): errors are always JSON with a code; successes are protobuf, or JSON
// when the request was JSON and debug.accept_json is on.
import { type DescMessage, type MessageShape, toBinary, toJson } from '@bufbuild/protobuf'
import { limits } from '../../../../core/limits.ts'

/** An error that becomes a response. `retryAfterSeconds` becomes the Retry-After header. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(message)
  }
}

export const badRequest = (message: string): ApiError => new ApiError(400, 'bad_request', message)
export const tooLarge = (message: string): ApiError => new ApiError(413, 'too_large', message)
export const unauthorized = (): ApiError =>
  new ApiError(401, 'unauthorized', 'the agent token is missing, wrong or expired')
export const agentRevoked = (): ApiError =>
  new ApiError(403, 'agent_revoked', 'this agent was revoked; enroll it again')
export const unavailable = (message: string, retryAfterSeconds = 30): ApiError =>
  new ApiError(503, 'unavailable', message, retryAfterSeconds)
export const rateLimited = (seconds: number): ApiError =>
  new ApiError(429, 'rate_limited', `too many requests; the next one is taken in ${seconds} s`, seconds)

/** The response of an error. */
export function errorResponse(error: ApiError): Response {
  const headers: Record<string, string> = {}
  if (error.retryAfterSeconds !== null) headers['retry-after'] = String(error.retryAfterSeconds)
  if (error.status === 401) headers['www-authenticate'] = 'Bearer'
  return Response.json({ error: { code: error.code, message: error.message } }, { status: error.status, headers })
}

export const protobufHeaders = { 'content-type': 'application/x-protobuf' } as const

/** A message as protobuf, or in the proto3 JSON mapping with the field names of the contract. */
export function messageResponse<D extends DescMessage>(
  schema: D,
  message: MessageShape<D>,
  isJson: boolean,
  headers: Readonly<Record<string, string>> = {},
): Response {
  if (isJson)
    return Response.json(toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true }), { headers })
  return new Response(toBinary(schema, message), { headers: { ...protobufHeaders, ...headers } })
}

const INTEGER = /^[+-]?\d{1,15}$/

/** The protocol version and the software version of an agent. */
export type AgentProtocol = { readonly version: number; readonly agentVersion: string }

/** Reads both headers, which every call but ping must have. An unsupported protocol version is 426 (decision G-50). */
export function protocolOf(headers: { get(name: string): string | null }): AgentProtocol | ApiError {
  const proto = headers.get('x-svc-proto')
  const agentVersion = headers.get('x-svc-agent-version')
  if (proto === '1' && agentVersion) return { version: 1, agentVersion }
  if (proto === null || !INTEGER.test(proto.trim()))
    return badRequest('header X-SVC-Proto is missing or no whole number')
  if (!agentVersion) return badRequest('header X-SVC-Agent-Version is missing')
  const version = Number(proto)
  if (version >= limits.protoMin && version <= limits.protoMax) return { version, agentVersion }
  const spoken =
    limits.protoMin === limits.protoMax
      ? `version ${limits.protoMax}`
      : `versions ${limits.protoMin} to ${limits.protoMax}`
  return new ApiError(426, 'upgrade_required', `protocol version ${version} is not spoken here, only ${spoken}`)
}

/** The form of a body by its Content-Type. None counts as protobuf. */
export function bodyForm(contentType: string | null, acceptsJson: boolean): 'protobuf' | 'json' | ApiError {
  if (contentType === 'application/x-protobuf' || contentType === null) return 'protobuf'
  const type = contentType.split(';', 1)[0]!.trim().toLowerCase()
  if (type === 'application/x-protobuf' || type === '') return 'protobuf'
  if (type === 'application/json' && acceptsJson) return 'json'
  return badRequest('the Content-Type must be application/x-protobuf')
}
