// POST /scan/v1/rotate: a host gets a new key (decision G-193). The call is signed by the old key, and so is its body,
// which goes to the hub as it is.
import { isPublicKey, rotationText } from '../../../core/matching/scan-protocol.ts'
import { ApiError, badRequest, unavailable } from '../../http/api-error.ts'
import type { IncomingRequest } from '../../http/http-request.ts'
import { describeResponse } from '../../hub-link/hub-connection.ts'
import { proveCall } from './prove-call.ts'
import { inflateBody, parseObject } from './read-body.ts'
import type { ScanContext } from './scan-context.ts'
import { isSignedBy, unauthorized } from './signed-call.ts'

const RETRY_SECONDS_DEFAULT = 30

type Rotation = { readonly publicKey: string; readonly signature: string }

function parseRotation(bytes: Uint8Array): Rotation | ApiError {
  const value = parseObject(bytes)
  if (value instanceof ApiError) return value
  const { public_key: publicKey, signature } = value
  if (typeof publicKey !== 'string' || !isPublicKey(publicKey))
    return badRequest('/public_key must be base64 of the 32 bytes of a key')
  if (typeof signature !== 'string') return badRequest('/signature is not valid: Expected string')
  return { publicKey, signature }
}

export async function rotate(context: ScanContext, request: IncomingRequest): Promise<Response | ApiError> {
  const call = await proveCall(context, request)
  if (call instanceof ApiError) return call
  const { config, hub, log } = context
  const bytes = inflateBody(call.body, request.headers.get('content-encoding'), config['limits.max_inflated_bytes'])
  const rotation = bytes instanceof ApiError ? bytes : parseRotation(bytes)
  if (rotation instanceof ApiError) return rotation
  const { host } = call
  if (!isSignedBy(host.publicKey, rotationText(host.hostId, rotation.publicKey), rotation.signature))
    return new ApiError(422, 'invalid', '/signature is not that of the old key over the new one')
  if (!hub) return unavailable('a rotation needs the hub, and none is configured')
  const body = { public_key: rotation.publicKey, signature: rotation.signature }
  const response = await hub.rotate(host.hostId, body)
  if (response.kind === 'ok') {
    // The feed brings the new key, so that the next call can be signed with it.
    await context.syncHosts()
    log.info({ host_id: host.hostId }, 'a scan host has a new key')
    return Response.json({ server_time_ms: Math.floor(context.nowMs()) })
  }
  if (response.kind === 'refused' && response.status === 404) return unauthorized()
  if (response.kind === 'refused' && response.status === 422)
    return new ApiError(422, 'invalid', 'the hub refuses the new key')
  log.warn({ reason: describeResponse(response), host_id: host.hostId }, 'cannot give a scan host a new key')
  const seconds = response.kind === 'refused' ? response.retryAfterSeconds : null
  return unavailable('the hub cannot answer now', seconds ?? RETRY_SECONDS_DEFAULT)
}
