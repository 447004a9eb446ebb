// Digests by which contents are found that many hosts share.

/** The first 16 bytes of the SHA-256. */
export function digestOf(content: string | Uint8Array): Uint8Array {
  const hasher = new Bun.CryptoHasher('sha256')
  hasher.update(content)
  return new Uint8Array(hasher.digest().buffer, 0, 16)
}
