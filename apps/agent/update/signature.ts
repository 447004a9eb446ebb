// Ed25519 signatures of releases and of moves to another collector: one key, two texts that cannot pass for each other.
import { createPublicKey, verify } from 'node:crypto'

/** Whether the signature is the key's over the text; false for any key or signature that cannot be used. */
export function isSigned(text: string, signature: Uint8Array, publicKeyPem: string): boolean {
  try {
    const key = createPublicKey(publicKeyPem)
    return key.asymmetricKeyType === 'ed25519' && verify(null, Buffer.from(text), key, signature)
  } catch {
    return false
  }
}
