// The Ed25519 keys of a scan host, and the 32 bytes and the signatures that leave of them (MAT-030).
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'

/** A new private key in PEM form. */
export const makeScanKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()

/** Whether text is a private key that can sign. */
export function isScanKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'ed25519'
  } catch {
    return false
  }
}

/** Base64 of the 32 bytes of the public half. */
export function publicKeyOf(privateKeyPem: string): string {
  // The last 32 bytes of the DER form (RFC 8410).
  return createPublicKey(privateKeyPem).export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')
}

/** Base64 of the signature over UTF-8 text. */
export const signText = (privateKeyPem: string, text: string): string =>
  sign(null, Buffer.from(text), privateKeyPem).toString('base64')
