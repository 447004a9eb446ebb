// Web push: a message that only the device can read (RFC 8291, RFC 8188), with the proof of who sends it (RFC 8292).
import {
  createCipheriv,
  createECDH,
  createPrivateKey,
  createPublicKey,
  type ECDH,
  generateKeyPairSync,
  hkdfSync,
  randomBytes,
} from 'node:crypto'
import { signedToken } from './signed-token.ts'

const CURVE = 'prime256v1'
const RECORD_BYTES = 4096
const SALT_BYTES = 16
const POINT_BYTES = 65
const PROOF_SECONDS = 12 * 3600

export type Subscription = { readonly endpoint: string; readonly p256dh: string; readonly auth: string }
/** Both as base64url: the point of the curve, and the private key as PKCS 8. */
export type PushKeys = { readonly publicKey: string; readonly privateKey: string }

const bytesOf = (text: string): Buffer => Buffer.from(text, 'base64url')
const derived = (key: Buffer, salt: Buffer, info: Buffer, bytes: number): Buffer =>
  Buffer.from(hkdfSync('sha256', key, salt, info, bytes))

export function newPushKeys(): PushKeys {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: CURVE })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  return {
    publicKey: Buffer.concat([Buffer.of(4), bytesOf(x), bytesOf(y)]).toString('base64url'),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64url'),
  }
}

/** What is wrong with what a device gave: its key is no point of the curve, or its secret not as long as it is. */
export function subscriptionFault({ p256dh, auth }: Pick<Subscription, 'p256dh' | 'auth'>): 'p256dh' | 'auth' | null {
  if (!isPoint(bytesOf(p256dh))) return 'p256dh'
  return bytesOf(auth).byteLength === SALT_BYTES ? null : 'auth'
}

function isPoint(point: Buffer): boolean {
  if (point.byteLength !== POINT_BYTES || point[0] !== 4) return false
  try {
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map(part => part.toString('base64url'))
    createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
    return true
  } catch {
    return false
  }
}

type Chance = { readonly salt: Buffer; readonly own: ECDH }

function freshChance(): Chance {
  const own = createECDH(CURVE)
  own.generateKeys()
  return { salt: randomBytes(SALT_BYTES), own }
}

/** The body of a message for a device: one record of the content coding aes128gcm. */
export function encryptPush(
  { p256dh, auth }: Pick<Subscription, 'p256dh' | 'auth'>,
  text: Buffer,
  { salt, own }: Chance = freshChance(),
): Buffer {
  const theirs = bytesOf(p256dh)
  const ours = own.getPublicKey()
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), theirs, ours])
  const secret = derived(own.computeSecret(theirs), bytesOf(auth), info, 32)
  const key = derived(secret, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16)
  const nonce = derived(secret, salt, Buffer.from('Content-Encoding: nonce\0'), 12)
  const head = Buffer.alloc(SALT_BYTES + 5)
  salt.copy(head)
  head.writeUInt32BE(RECORD_BYTES, SALT_BYTES)
  head.writeUInt8(ours.byteLength, SALT_BYTES + 4)
  const cipher = createCipheriv('aes-128-gcm', key, nonce)
  // The byte after the text says that this record is the last.
  const sealed = [cipher.update(text), cipher.update(Buffer.of(2)), cipher.final(), cipher.getAuthTag()]
  return Buffer.concat([head, ours, ...sealed])
}

/** The Authorization header for a push service: a JWT signed with the hub's key. */
export function proofFor(endpoint: URL, { publicKey, privateKey }: PushKeys, subject: string, nowMs: number): string {
  const claims = { aud: endpoint.origin, exp: Math.floor(nowMs / 1000) + PROOF_SECONDS, sub: subject }
  const key = createPrivateKey({ key: bytesOf(privateKey), type: 'pkcs8', format: 'der' })
  return `vapid t=${signedToken('ES256', { typ: 'JWT' }, claims, key)}, k=${publicKey}`
}
