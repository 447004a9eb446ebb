// How secrets that the hub must read again are sealed, and which keys open them.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'

/** Seals and opens secrets with AES-256-GCM. */
export type Sealer = {
  seal(secret: string): string
  open(sealed: string): string | null
  /** The same for bytes; what was sealed for one place opens for no other. */
  sealBytes(content: Uint8Array, place: string): Uint8Array
  openBytes(sealed: Uint8Array, place: string): Uint8Array | null
  /** The key that seals: the second part of what is sealed as text, the bytes after the first of what is bytes. */
  readonly keyId: string
  /** All that open, that one first. */
  readonly keyIds: readonly string[]
}

const keyId = (key: Buffer): string => createHash('sha256').update(key).digest('hex').slice(0, 8)

const IV_BYTES = 12
const TAG_BYTES = 16
const ID_BYTES = 4
const FORM = 1

/** The first key seals; every key opens what it sealed. Keys are any text; 32 bytes are derived from each. */
export function createSealer(keyTexts: readonly string[]): Sealer {
  const keys = keyTexts.map(text => createHash('sha256').update(`hub secrets\n${text}`).digest())
  const [first] = keys
  if (!first) throw new Error('assertion failed: a sealer has at least one key')

  /** Form, key, initialization vector, tag, and the body. */
  const sealBytes = (content: Uint8Array, place: string): Buffer => {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv('aes-256-gcm', first, iv).setAAD(Buffer.from(place))
    const body = [cipher.update(content), cipher.final()]
    return Buffer.concat([Buffer.of(FORM), Buffer.from(keyId(first), 'hex'), iv, cipher.getAuthTag(), ...body])
  }

  const openBytes = (sealed: Uint8Array, place: string): Buffer | null => {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
    const ivAt = 1 + ID_BYTES
    const tagAt = ivAt + IV_BYTES
    const bodyAt = tagAt + TAG_BYTES
    if (bytes[0] !== FORM || bytes.byteLength < bodyAt) return null
    const id = bytes.subarray(1, ivAt).toString('hex')
    const key = keys.find(item => keyId(item) === id)
    if (!key) return null
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(ivAt, tagAt))
      decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(tagAt, bodyAt))
      return Buffer.concat([decipher.update(bytes.subarray(bodyAt)), decipher.final()])
    } catch {
      return null
    }
  }

  return {
    sealBytes,
    openBytes,
    keyId: keyId(first),
    keyIds: keys.map(keyId),
    seal(secret) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', first, iv)
      const body = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
      return [
        'v1',
        keyId(first),
        iv.toString('base64url'),
        cipher.getAuthTag().toString('base64url'),
        body.toString('base64url'),
      ].join('.')
    },
    open(sealed) {
      const [form, id, iv, tag, body] = sealed.split('.')
      const key = keys.find(item => keyId(item) === id)
      if (form !== 'v1' || !key || !iv || !tag || body === undefined) return null
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64url'))
        decipher.setAuthTag(Buffer.from(tag, 'base64url'))
        return Buffer.concat([decipher.update(Buffer.from(body, 'base64url')), decipher.final()]).toString('utf8')
      } catch {
        return null
      }
    },
  }
}
