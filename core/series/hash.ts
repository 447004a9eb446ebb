// The only file of core that hashes with node:crypto: identities that must be the same in every process and for ever.
import { hash } from 'node:crypto'

/** SHA-256 of UTF-8 text, lowercase hex. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex')
}

/** The first 8 bytes of SHA-256 as (low, high) unsigned 32-bit words. */
export function sha256Words(text: string): { lo: number; hi: number } {
  const digest = hash('sha256', text, 'buffer')
  return { lo: digest.readUInt32LE(0), hi: digest.readUInt32LE(4) }
}

/** A UUID (version 8, RFC 9562: content made by a hash) derived from text: the same text, the same UUID. */
export function uuidFromText(text: string): string {
  const hex = sha256Hex(text)
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
