// Who made a bundle (MAT-067, 068): Ed25519 over its header. Keys are PEM files, as
// `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write them.
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { compareText } from './rules-text.ts'
import { SourceRefused } from './source-refused.ts'

/** JSON with the keys of every object sorted: one text for one meaning, whoever wrote it. */
export function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => compareText(a, b)))
      : item,
  )
}

const signedBytes = (header: object): Buffer => Buffer.from(`svc-vulndb-v1\n${sortedJson(header)}`)

function ed25519(read: () => KeyObject, what: string): KeyObject {
  let key: KeyObject | null = null
  try {
    key = read()
  } catch {
    // Said below, without what the file holds.
  }
  if (key?.asymmetricKeyType !== 'ed25519') throw new SourceRefused(`${what} is not an Ed25519 key in PEM`)
  return key
}

/** Names a public key in few characters: the first half of the SHA-256 of its 32 bytes. */
function keyIdOf(key: KeyObject): string {
  const der = key.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(der.subarray(-32)).digest('hex').slice(0, 32)
}

/** `header` has no signature yet. */
export function signHeader(
  header: object,
  privateKeyPem: string,
): { readonly key_id: string; readonly signature: string } {
  const key = ed25519(() => createPrivateKey(privateKeyPem), 'the file of --key')
  const keyId = keyIdOf(createPublicKey(key))
  return { key_id: keyId, signature: sign(null, signedBytes({ ...header, key_id: keyId }), key).toString('base64') }
}

/** Throws unless the header, without `signature`, is signed by the key. */
export function verifyHeader(header: object, signature: string, publicKeyPem: string): void {
  const key = ed25519(() => createPublicKey(publicKeyPem), 'the file of db.public_key_file')
  if (signature === '') throw new SourceRefused('the bundle is not signed, and db.public_key_file asks for a signature')
  if (!verify(null, signedBytes(header), key, Buffer.from(signature, 'base64')))
    throw new SourceRefused('the bundle is signed by another key, or was changed after it was signed')
}
