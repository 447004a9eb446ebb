// What the endpoints of the scan API stand on, and what every signed call goes through: headers, then the host, then
// the signature over the body as it was sent (MAT-030 to MAT-041).
import type { Logger } from 'pino'
import type { TrustedProxies } from '../../../core/network/trusted-proxies.ts'
import { ApiError, unavailable } from '../../http/api-error.ts'
import { discardBody, readBody } from '../../http/body-limits.ts'
import type { IncomingRequest } from '../../http/http-request.ts'
import type { MatcherConfig } from '../config.ts'
import type { MatcherHub } from '../hub-link/matcher-hub.ts'
import type { CompanySettings, KnownHost, MatcherState } from '../state/state-types.ts'
import type { MatcherMetrics } from '../telemetry.ts'
import type { ScanLimits } from './scan-limits.ts'
import { isProven, type SignedHeaders, signedHeaders, skewFault, unauthorized } from './signed-call.ts'

export type ScanContext = {
  readonly config: MatcherConfig
  readonly state: MatcherState
  readonly hub: MatcherHub | null
  readonly limits: ScanLimits
  readonly proxies: TrustedProxies
  /** The settings of a company as last known, asked for where they are old; null for one never seen. */
  readonly settingsOf: (companyId: string) => Promise<CompanySettings | null>
  /** A host has reported: the hub is told, now and then. */
  readonly onSeen: (hostId: string, scannerVersion: string, atMs: number) => void
  /** Reads the feed of scan hosts now. */
  readonly syncHosts: () => Promise<unknown>
  readonly metrics: MatcherMetrics
  readonly log: Logger
  readonly nowMs: () => number
}

export const pathWithQuery = (request: IncomingRequest): string => {
  const { pathname, search } = new URL(request.url)
  return pathname + search
}

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
