// Who calls the scan API (MAT section 2): the headers of a signed call, and whether the key made the signature. Node's
// verification takes about 50 µs, so that it needs no thread.
import { createHash, createPublicKey, verify } from 'node:crypto'
import { isPublicKey, SCAN_HEADERS, SCAN_PROTO, signedScanText } from '../../../core/matching/scan-protocol.ts'
import { isUuid } from '../../../core/series/uuid.ts'
import { ApiError, badRequest } from '../../http/api-error.ts'
import type { IncomingRequest } from '../../http/http-request.ts'

/** The DER header of an Ed25519 public key (RFC 8410), before its 32 bytes. */
const SPKI_HEADER = Buffer.from('302a300506032b6570032100', 'hex')
const BASE64_OF_64_BYTES = /^[A-Za-z0-9+/]{85}[AQgw]==$/
const MILLISECONDS = /^\d{1,15}$/
/** Takes the place of the key of a host that is not known, so that the same work is done for it (MAT-035). */
const NOBODYS_KEY = Buffer.alloc(32, 7).toString('base64')

type Headers = { get(name: string): string | null }

const header = (headers: Headers, name: keyof typeof SCAN_HEADERS): string | null =>
  headers.get(SCAN_HEADERS[name].toLowerCase())

export const unauthorized = (): ApiError =>
  new ApiError(401, 'unauthorized', 'the call is not signed by the key of a known scan host')

/** What a signed call says of itself; nothing of it is proven yet. */
export type SignedHeaders = {
  /** Empty at enrollment. */
  readonly hostId: string
  readonly timeMs: number
  readonly signature: string
}

/** The protocol of a call; an ApiError for one that is not spoken here. */
function protocolFault(headers: Headers): ApiError | null {
  const proto = header(headers, 'proto')
  if (proto === null || !headers.get('x-svc-agent-version')) return unauthorized()
  if (proto.trim() === String(SCAN_PROTO)) return null
  return /^\d{1,9}$/.test(proto.trim())
    ? new ApiError(426, 'upgrade_required', `scan protocol ${Number(proto)} is not spoken here, only ${SCAN_PROTO}`)
    : badRequest('header X-SVC-Scan-Proto is no whole number')
}

/** The headers of a signed call; an ApiError when one is missing or is nothing that could have been signed. */
export function signedHeaders(headers: Headers, kind: 'of host' | 'of enrollment'): SignedHeaders | ApiError {
  const fault = protocolFault(headers)
  if (fault) return fault
  const hostId = header(headers, 'host')?.trim() ?? ''
  const time = header(headers, 'time')?.trim() ?? ''
  const signature = header(headers, 'signature')?.trim() ?? ''
  const isHost = kind === 'of host' ? isUuid(hostId) : hostId === ''
  if (!isHost || !MILLISECONDS.test(time) || !BASE64_OF_64_BYTES.test(signature)) return unauthorized()
  return { hostId, timeMs: Number(time), signature }
}

/** Whether the key, base64 of 32 bytes, made the signature, base64 of 64 bytes, of a text. */
export function isSignedBy(publicKey: string, text: string, signature: string): boolean {
  if (!isPublicKey(publicKey) || !BASE64_OF_64_BYTES.test(signature)) return false
  const der = Buffer.concat([SPKI_HEADER, Buffer.from(publicKey, 'base64')])
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' })
  return verify(null, Buffer.from(text, 'utf8'), key, Buffer.from(signature, 'base64'))
}

export const pathWithQuery = (request: IncomingRequest): string => {
  const { pathname, search } = new URL(request.url)
  return pathname + search
}

type CallToProve = {
  readonly method: string
  readonly pathWithQuery: string
  readonly headers: SignedHeaders
  /** As it was sent; empty when there is none. */
  readonly body: Uint8Array
}

/** Whether the key made the signature of the call. `publicKey` null: nobody's, for the same time and a no. */
export function isProven({ method, pathWithQuery, headers, body }: CallToProve, publicKey: string | null): boolean {
  const text = signedScanText({
    method,
    pathWithQuery,
    hostId: headers.hostId,
    timeMs: headers.timeMs,
    bodySha256: createHash('sha256').update(body).digest('hex'),
  })
  return isSignedBy(publicKey ?? NOBODYS_KEY, text, headers.signature) && publicKey !== null
}
