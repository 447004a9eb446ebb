// POST /agent/v1/inventory: facts of a server, queued for the hub (document 3; decision G-59). Company and server come
// from the registry, never from the body.

import { fromBinary, fromJson, type JsonValue } from '@bufbuild/protobuf'
import { InventoryFactsSchema } from '../../../../proto/gen/svc/agent/v1/agent_pb.ts'
import { ApiError, rateLimited } from '../../../http/api-error.ts'
import { discardBody } from '../../../http/body-limits.ts'
import type { IncomingRequest } from '../../../http/http-request.ts'
import { type IngestContext, noteAgent } from '../context.ts'
import { protocolOf } from '../listener/agent-protocol.ts'
import { readMessage } from './forward-enrollment.ts'
import { factsFault, factsForHub } from './inventory-facts.ts'

const readHeartbeat = {
  binary: (bytes: Uint8Array) => fromBinary(InventoryFactsSchema, bytes),
  json: (json: JsonValue) => fromJson(InventoryFactsSchema, json, { ignoreUnknownFields: true }),
}

async function admitCaller(context: IngestContext, headers: IncomingRequest['headers']) {
  const protocol = protocolOf(headers)
  if (protocol instanceof ApiError) return protocol
  const nowMs = context.nowMs()
  const session = await context.authenticator.authenticate(headers.get('authorization'), nowMs)
  if (session instanceof ApiError) return session
  const waitSeconds = session.inventoryRate.take(context.rates.inventory, nowMs)
  if (waitSeconds > 0) return rateLimited(waitSeconds)
  noteAgent(session, protocol)
  return session
}

/** Answers 202 once the report is queued. */
export async function receiveInventory(context: IngestContext, request: IncomingRequest): Promise<Response | ApiError> {
  const session = await admitCaller(context, request.headers)
  if (session instanceof ApiError) {
    await discardBody(request)
    return session
  }
  const read = await readMessage(context, request, readHeartbeat)
  const { record } = session
  if (read instanceof ApiError) return context.refusals.note(session, read)
  const nowMs = context.nowMs()
  const fault = factsFault(read.message, nowMs)
  if (fault) return context.refusals.note(session, new ApiError(422, 'invalid_series', fault))
  const isTaken = context.inventory.add({
    agentId: record.agentId,
    companyId: record.companyId,
    serverId: record.serverId,
    reportedAtMs: nowMs,
    facts: factsForHub(read.message),
  })
  if (!isTaken)
    return context.refusals.note(session, new ApiError(413, 'too_large', 'the facts are too large to be handed on'))
  return new Response(null, { status: 202 })
}
