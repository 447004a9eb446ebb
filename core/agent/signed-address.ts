// The address of another collector, as remote configuration may set it (document 3 "Agent to collector": over https,
// with an Ed25519 signature). The signature travels in the fragment of the address, which no request ever carries:
// https://collector.example.net:8443#ed25519=<base64url>&signed_at_ms=<milliseconds>

/** The first line of what is signed: a signature made for anything else cannot pass for one of an address. */
const ADDRESS_SIGNATURE_PREFIX = 'svc-agent-collector-url-v1'

export type SignedAddress = {
  /** The address without its fragment. */
  readonly url: string
  readonly signedAtMs: number
  /** 86 characters of base64url: 64 bytes. */
  readonly signature: string
}

/** The text under the signature: UTF-8 lines joined by newline. */
export const signedAddressText = (url: string, signedAtMs: number): string =>
  [ADDRESS_SIGNATURE_PREFIX, url, String(signedAtMs)].join('\n')

/** The address in the form that a collector is configured with. */
export const formatSignedAddress = ({ url, signedAtMs, signature }: SignedAddress): string =>
  `${url}#ed25519=${signature}&signed_at_ms=${signedAtMs}`

/**
 * The parts of a signed address; null for an address without a fragment, which is information only; else what is wrong
 * with it.
 */
export function parseSignedAddress(text: string): SignedAddress | { readonly fault: string } | null {
  const at = text.indexOf('#')
  if (at < 0) return null
  const found = /^ed25519=([A-Za-z0-9_-]{86})&signed_at_ms=(\d{1,15})$/.exec(text.slice(at + 1))
  if (!found) return { fault: 'its signature is not in the form #ed25519=…&signed_at_ms=…' }
  return { url: text.slice(0, at), signature: found[1]!, signedAtMs: Number(found[2]) }
}

/** The newest signed address that an agent has seen. */
export type SeenAddress = Pick<SignedAddress, 'url' | 'signedAtMs'>

/**
 * Why an agent does not move to the new collector; null when it may try. `newest` is the newest address with a valid
 * signature that it has ever received, whether it moved there or not: an address that was signed earlier is a replay.
 * The same address may be tried again until its collector answers.
 */
export function moveFault(
  address: SignedAddress,
  agent: { readonly isSignatureValid: boolean; readonly newest: SeenAddress | null },
): string | null {
  const { newest } = agent
  if (!/^https:\/\/[^\s/@?#]+(?:\/[^\s?#]*)?$/i.test(address.url)) return 'it is not an https address'
  if (!agent.isSignatureValid) return 'its signature does not verify'
  const isOlder =
    newest !== null &&
    (address.signedAtMs < newest.signedAtMs || (address.signedAtMs === newest.signedAtMs && address.url !== newest.url))
  if (isOlder) return 'its signature is older than that of another address that this agent was told'
  return null
}
