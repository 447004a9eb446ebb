// Whether a signed call is taken, and why not: headers, then the host, then the signature over the body as it was sent,
// then the clock and the rate (MAT-030 to MAT-041). Whether what it brings is taken: state/report-refusal.ts.
import { ApiError, unavailable } from '../../http/api-error.ts'
import { discardBody, readBody } from '../../http/body-limits.ts'
import type { IncomingRequest } from '../../http/http-request.ts'
import type { KnownHost } from '../state/state-types.ts'
import { skewFault } from './clock-skew.ts'
import type { ScanContext } from './scan-context.ts'
import { isProven, pathWithQuery, type SignedHeaders, signedHeaders, unauthorized } from './signed-call.ts'

/** A call whose signature is that of a known host that is not revoked, within its rate. */
export type ProvenCall = {
  readonly host: KnownHost
  readonly headers: SignedHeaders
  /** As it was sent. */
  readonly body: Uint8Array
}

export const hostRevoked = (): ApiError =>
  new ApiError(403, 'host_revoked', 'this scan host was revoked; enroll it again')

function hostFault(context: ScanContext, host: KnownHost | null): ApiError {
  const isUnsure = host === null && context.state.feed().syncedAtMs === null
  return isUnsure ? unavailable('the scan hosts are not known yet', 10) : unauthorized()
}

/** The call of a host, or why it is refused. */
export async function proveCall(context: ScanContext, request: IncomingRequest): Promise<ProvenCall | ApiError> {
  const headers = signedHeaders(request.headers, 'of host')
  if (headers instanceof ApiError) {
    await discardBody(request)
    return headers
  }
  const body = await readBody(request, context.config['limits.max_body_bytes'])
  if (body instanceof ApiError) return body
  const host = context.state.host(headers.hostId)
  const call = { method: request.method, pathWithQuery: pathWithQuery(request), headers, body }
  if (!isProven(call, host?.publicKey ?? null) || host === null) return hostFault(context, host)
  if (host.state === 'revoked') return hostRevoked()
  return skewFault(headers, context.nowMs()) ?? context.limits.callFault(host.hostId) ?? { host, headers, body }
}
