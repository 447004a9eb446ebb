// POST /scan/v1/enroll: a code becomes a scan host (MAT-030, MAT-037, MAT-038). The hub decides; the host is known here
// before it is answered, and needs not wait for the feed.
import { type Static, Type } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { ENROLLED_OS_FIELDS, isPublicKey } from '../../../core/matching/scan-protocol.ts'
import { isUuid } from '../../../core/series/uuid.ts'
import { ApiError, badRequest, unavailable } from '../../http/api-error.ts'
import { discardBody, readBody } from '../../http/body-limits.ts'
import type { IncomingRequest } from '../../http/http-request.ts'
import { describeResponse, type HubResponse } from '../../hub-link/hub-connection.ts'
import { isOwnTokenRefused } from '../../hub-link/own-token-refused.ts'
import { PACED } from '../hub-link/matcher-hub.ts'
import type { ScanHost } from '../state/state-types.ts'
import { skewFault } from './clock-skew.ts'
import { inflateBody, parseObject, shownPath } from './read-body.ts'
import type { ScanContext } from './scan-context.ts'
import { isProven, pathWithQuery, type SignedHeaders, signedHeaders, unauthorized } from './signed-call.ts'
import { scanSettings } from './when-to-report.ts'

const RETRY_SECONDS_DEFAULT = 30
const MACHINE_ID_HASH = /^[0-9a-f]{64}$/

const bodySchema = Type.Object({
  code: Type.String({ minLength: 1 }),
  public_key: Type.String(),
  hostname: Type.String(),
  ip_addresses: Type.Optional(Type.Array(Type.String())),
  machine_id_hash: Type.String(),
  os: Type.Record(Type.String(), Type.Unknown()),
})
type EnrollBody = Static<typeof bodySchema>
const compiled = TypeCompiler.Compile(bodySchema)

const limitsOf = { code: 256, hostname: 253, addresses: 32, address: 64, os: 128 } as const

const invalid = (path: string, message: string): ApiError => new ApiError(422, 'invalid', `${path} ${message}`)

/** The first field that is over its limit (decision G-159). */
function limitFault(body: EnrollBody): ApiError | null {
  const addresses = body.ip_addresses ?? []
  if (body.code.length > limitsOf.code) return invalid('/code', `has more than ${limitsOf.code} characters`)
  if (body.hostname === '' || body.hostname.length > limitsOf.hostname)
    return invalid('/hostname', `must have 1 to ${limitsOf.hostname} characters`)
  if (addresses.length > limitsOf.addresses)
    return invalid('/ip_addresses', `has more than ${limitsOf.addresses} items`)
  if (addresses.some(address => address.length > limitsOf.address))
    return invalid('/ip_addresses', `has an item of more than ${limitsOf.address} characters`)
  if (!MACHINE_ID_HASH.test(body.machine_id_hash)) return invalid('/machine_id_hash', 'must be 64 characters of hex')
  const long = ENROLLED_OS_FIELDS.find(field => String(body.os[field] ?? '').length > limitsOf.os)
  return long === undefined ? null : invalid(`/os/${long}`, `has more than ${limitsOf.os} characters`)
}

function parseBody(bytes: Uint8Array): EnrollBody | ApiError {
  const value = parseObject(bytes)
  if (value instanceof ApiError) return value
  if (!compiled.Check(value)) {
    const first = compiled.Errors(value).First()
    return badRequest(`${shownPath(first?.path ?? '')} is not valid: ${first?.message ?? 'it is no enrollment'}`)
  }
  const wrong = ENROLLED_OS_FIELDS.find(field => value.os[field] !== undefined && typeof value.os[field] !== 'string')
  if (wrong !== undefined) return badRequest(`/os/${wrong} is not valid: Expected string`)
  return isPublicKey(value.public_key) ? value : badRequest('/public_key must be base64 of the 32 bytes of a key')
}

/** The body of an enrollment that is signed by the key that it brings. */
async function readEnrollment(
  context: ScanContext,
  request: IncomingRequest,
  headers: SignedHeaders,
): Promise<EnrollBody | ApiError> {
  const { config, nowMs } = context
  const body = await readBody(request, config['limits.max_body_bytes'])
  if (body instanceof ApiError) return body
  const bytes = inflateBody(body, request.headers.get('content-encoding'), config['limits.max_inflated_bytes'])
  if (bytes instanceof ApiError) return bytes
  const parsed = parseBody(bytes)
  if (parsed instanceof ApiError) return parsed
  const call = { method: request.method, pathWithQuery: pathWithQuery(request), headers, body }
  if (!isProven(call, parsed.public_key)) return unauthorized()
  return skewFault(headers, nowMs()) ?? limitFault(parsed) ?? parsed
}

const forHub = (body: EnrollBody) => ({
  code: body.code,
  public_key: body.public_key,
  hostname: body.hostname,
  ip_addresses: body.ip_addresses ?? [],
  machine_id_hash: body.machine_id_hash,
  os: Object.fromEntries(ENROLLED_OS_FIELDS.flatMap(field => (body.os[field] ? [[field, body.os[field]]] : []))),
})

/** A refusal of the hub as the agent is told. */
function refusalOf(context: ScanContext, response: Exclude<HubResponse, { kind: 'ok' }>, address: string): ApiError {
  if (response.kind === 'refused') {
    const { status, code, message, retryAfterSeconds } = response
    if (status === 401 && !isOwnTokenRefused(status, code)) {
      context.limits.countWrongCode(address)
      return new ApiError(401, 'invalid_code', 'the code is not known, was used, or has expired')
    }
    if (status === 422 && code === 'quota_exceeded')
      return new ApiError(422, code, "the plan's number of scan hosts is reached")
    // The agent names no server, the code does.
    if (status === 422 && message.startsWith('server_id:'))
      return new ApiError(422, 'server_taken', 'the server of this code has a scan host, which must be revoked first')
    if (status === 422) return new ApiError(422, 'invalid', 'the hub refuses what is said of this host')
    context.log.warn({ reason: describeResponse(response) }, 'cannot enroll a scan host')
    if (code === PACED)
      return unavailable('too many enrollments at one time', retryAfterSeconds ?? RETRY_SECONDS_DEFAULT)
    return unavailable('the hub cannot answer now', retryAfterSeconds ?? RETRY_SECONDS_DEFAULT)
  }
  context.log.warn({ reason: describeResponse(response) }, 'cannot enroll a scan host')
  return unavailable('the hub cannot be reached', RETRY_SECONDS_DEFAULT)
}

/** `peer`: the address at the other end of the connection. */
export async function enroll(
  context: ScanContext,
  request: IncomingRequest,
  peer: string,
): Promise<Response | ApiError> {
  const headers = signedHeaders(request.headers, 'of enrollment')
  const address = context.proxies.clientAddress(peer, request.headers.get('x-forwarded-for'))
  const fault = headers instanceof ApiError ? headers : context.limits.enrollmentFault(address)
  if (fault || headers instanceof ApiError) {
    await discardBody(request)
    return fault ?? unauthorized()
  }
  const body = await readEnrollment(context, request, headers)
  if (body instanceof ApiError) return body
  if (!context.hub) return unavailable('enrollment needs the hub, and none is configured')
  const response = await context.hub.enroll(forHub(body), address)
  return response.kind === 'ok' ? finish(context, body, response.data) : refusalOf(context, response, address)
}

async function finish(
  context: ScanContext,
  body: EnrollBody,
  data: Readonly<Record<string, unknown>>,
): Promise<Response | ApiError> {
  const { host_id: hostId, company_id: companyId, server_id: serverId } = data
  const isWhole = typeof hostId === 'string' && isUuid(hostId) && typeof companyId === 'string' && isUuid(companyId)
  if (!isWhole) {
    context.log.error("the hub's response to an enrollment is not whole")
    return unavailable('the hub cannot answer now')
  }
  const host: ScanHost = {
    hostId,
    companyId,
    serverId: typeof serverId === 'string' && isUuid(serverId) ? serverId : null,
    publicKey: body.public_key,
    state: 'active',
    isInactive: false,
    version: 0,
  }
  // A repeated enrollment answers a host that the feed may have told more of.
  const known = context.state.host(hostId)
  if (known === null) await context.state.enrolled(host, body.machine_id_hash)
  const settings = await context.settingsOf(companyId)
  context.log.info({ host_id: hostId, company_id: companyId }, 'a scan host is enrolled')
  const nowMs = context.nowMs()
  return Response.json(
    {
      host_id: hostId,
      server_time_ms: Math.floor(nowMs),
      settings: scanSettings(known ?? host, settings, nowMs, true),
    },
    { status: 201 },
  )
}
