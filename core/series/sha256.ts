// SHA-256 of text by the native library. In a browser `#sha256` is sha256-in-browser.ts: there the native one cannot be
// called synchronously, while here the native one takes a third of the time.
import { hash } from 'node:crypto'

/** SHA-256 of UTF-8 text, lowercase hex. */
export const sha256Hex = (text: string): string => hash('sha256', text, 'hex')

/** The first 8 bytes of SHA-256 as (low, high) unsigned 32-bit words. */
export function sha256Words(text: string): { lo: number; hi: number } {
  const digest = hash('sha256', text, 'buffer')
  return { lo: digest.readUInt32LE(0), hi: digest.readUInt32LE(4) }
}
