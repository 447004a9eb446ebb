// Tokens that the hub issues: how they look, and what is kept and shown of them (decisions G-01, G-12, G-21).
import { randomBytes } from 'node:crypto'
import { sha256Hex } from '../../../core/series/hash.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `byteCount` random bytes as base62, padded to the length that the largest value needs. */
function randomBase62(byteCount: number): string {
  let value = BigInt(`0x${randomBytes(byteCount).toString('hex')}`)
  let text = ''
  while (value > 0n) {
    text = BASE62[Number(value % 62n)] + text
    value /= 62n
  }
  return text.padStart(Math.ceil((byteCount * 8) / Math.log2(62)), '0')
}

const randomChars = (count: number): string => randomBase62(count).slice(-count)

export const newApiToken = (): string => `hub_${randomChars(40)}`
export const newLicenseToken = (): string => `lic_${randomBase62(32)}`
export const newAgentToken = (): string => `agt_${randomBase62(32)}`
export const newAdminToken = (): string => `adm_${randomBase62(32)}`
export const newWebhookSecret = (): string => `whs_${randomChars(40)}`
export const newInvitationToken = (): string => `inv_${randomBase62(32)}`
export const newAddressToken = (): string => `adr_${randomBase62(32)}`
export const newSessionToken = (): string => `ses_${randomBase62(32)}`
export const newScanCode = (): string => `scn_${randomBase62(32)}`
export const newPassword = (): string => randomChars(24)

export const tokenHash = (token: string): string => sha256Hex(token)
/** The first 8 and the last 4 characters: enough to recognise a token, too little to use it. */
export const tokenHint = (token: string): string => `${token.slice(0, 8)}...${token.slice(-4)}`
