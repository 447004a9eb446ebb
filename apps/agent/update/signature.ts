// Ed25519 signatures of releases and of moves to another collector: one key, two texts that cannot pass for each other.
import { createPublicKey, verify } from 'node:crypto'

/** Whether a PEM carries a private key, encrypted or not: it would pass for its public half, or stands beside it. */
export const hasPrivateKey = (pem: string): boolean => pem.includes('PRIVATE KEY')

/** Whether a PEM is the public half of an Ed25519 key, and nothing that a host has no business to hold. */
export function isReleaseKey(pem: string): boolean {
  try {
    return !hasPrivateKey(pem) && createPublicKey(pem).asymmetricKeyType === 'ed25519'
  } catch {
    return false
  }
}

export const RELEASE_KEY_WANTED = 'must hold an Ed25519 public key in PEM form'

/** Whether the signature is the key's over the text; false for any key or signature that cannot be used. */
export function isSigned(text: string, signature: Uint8Array, publicKeyPem: string): boolean {
  try {
    const key = createPublicKey(publicKeyPem)
    return key.asymmetricKeyType === 'ed25519' && verify(null, Buffer.from(text), key, signature)
  } catch {
    return false
  }
}
