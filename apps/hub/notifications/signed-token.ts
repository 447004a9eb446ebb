// JSON web tokens by which push services know who sends (RFC 7515, RFC 7519).
import { type KeyObject, sign } from 'node:crypto'

type Claims = Readonly<Record<string, string | number>>

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A signed token: ES256 with a key of P-256, RS256 with an RSA key. */
export function signedToken(alg: 'ES256' | 'RS256', head: Claims, claims: Claims, key: KeyObject): string {
  const signed = `${part({ ...head, alg })}.${part(claims)}`
  const bytes = Buffer.from(signed)
  const signature =
    alg === 'ES256' ? sign('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }) : sign('sha256', bytes, key)
  return `${signed}.${signature.toString('base64url')}`
}
