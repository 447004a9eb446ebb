// Responses of the agent API (document 3 "Errors"): successes are protobuf, or JSON when the request was JSON and
// debug.accept_json is on.
import { type DescMessage, type MessageShape, toBinary, toJson } from '@bufbuild/protobuf'
import { ApiError } from '../../../http/api-error.ts'

export const unauthorized = (): ApiError =>
  new ApiError(401, 'unauthorized', 'the agent token is missing, wrong or expired')
export const agentRevoked = (): ApiError =>
  new ApiError(403, 'agent_revoked', 'this agent was revoked; enroll it again')

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
