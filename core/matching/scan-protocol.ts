// What agent and matcher must spell alike on `{matcher}/scan/v1` (MAT section 2).

export const SCAN_PROTO = 1

export const SCAN_HEADERS = {
  proto: 'X-SVC-Scan-Proto',
  host: 'X-SVC-Scan-Host',
  time: 'X-SVC-Scan-Time',
  signature: 'X-SVC-Scan-Signature',
  content: 'X-SVC-Scan-Content',
} as const

/** Fields of os that an enrollment may name; the hub keeps them. */
export const ENROLLED_OS_FIELDS = [
  'id',
  'version_id',
  'codename',
  'name',
  'version',
  'pretty_name',
  'family',
  'kernel',
  'arch',
] as const

/** What an answer tells the agent of how to go on (MAT-031). */
export type ScanSettings = {
  readonly enabled: boolean
  readonly reason: '' | 'disabled' | 'inactive' | 'plan'
  readonly interval_seconds: number
  /** How long from now until the next report is welcome: spreads the fleet (MAT-044). */
  readonly next_after_seconds: number
  readonly version: number
}

/**
 * The UTF-8 lines that a signed call signs with Ed25519. `hostId` is empty at enrollment; `bodySha256` is the hex
 * of the body as it is sent, that of the empty string when there is none.
 */
export function signedScanText(call: {
  readonly method: string
  readonly pathWithQuery: string
  readonly hostId: string
  readonly timeMs: number
  readonly bodySha256: string
}): string {
  return ['svc-scan-v1', call.method, call.pathWithQuery, call.hostId, String(call.timeMs), call.bodySha256].join('\n')
}

const BASE64_OF_32_BYTES = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

/** Whether a text is base64 of 32 bytes, as the public key of a scan host is sent. */
export const isPublicKey = (text: string): boolean => BASE64_OF_32_BYTES.test(text)

/** The text that the old key signs when a key is rotated (G-193). */
export function rotationText(hostId: string, newPublicKey: string): string {
  return `${hostId}\n${newPublicKey}`
}
