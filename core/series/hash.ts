// Identities that must be the same in every process and for ever, in a browser too: `#sha256` (package.json) is
// sha256.ts, and sha256-in-browser.ts in what is bundled for browsers.
import { sha256Hex } from '#sha256'

export { sha256Hex, sha256Words } from '#sha256'

/** A UUID (version 8, RFC 9562: content made by a hash) derived from text: the same text, the same UUID. */
export function uuidFromText(text: string): string {
  const hex = sha256Hex(text)
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
