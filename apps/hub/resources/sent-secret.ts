// A secret that is kept is sent to the address beside it, and its reader is whoever answers there. Who changes the
// address alone would be sent what he may not read: he gives the secret again, or removes it.
import { type Words, words } from '../platform/http/api-texts.ts'
import type { Fields, Values } from './field.ts'

/** Scheme, host and port. Every path leads to the same program; a scheme that is not of the web keeps its letters. */
function originOf(address: unknown): string | null {
  const url = typeof address === 'string' ? URL.parse(address) : null
  return url && `${url.protocol}//${url.host}`.toLowerCase()
}

/** What is wrong with secrets that stay while what they are sent to does not, by field. */
export function sentSecretFaults(fields: Fields, before: Values, next: Values): Map<string, Words> {
  const faults = new Map<string, Words>()
  for (const [name, { sentTo }] of Object.entries(fields)) {
    const column = `${name}_sealed`
    // Sealed anew the same secret has another text.
    const isKept = before[column] !== null && before[column] === next[column]
    if (!sentTo || !isKept || next[sentTo.address] === null) continue
    const { address, verifies } = sentTo
    const origin = originOf(next[address])
    if (origin === null || origin !== originOf(before[address])) faults.set(name, words('secret_address'))
    else if (verifies && origin.startsWith('https:') && before[verifies] === true && next[verifies] === false)
      faults.set(name, words('secret_unverified'))
  }
  return faults
}
