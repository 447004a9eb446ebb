// When a code makes this host a scan host, and when one that the matcher refused is tried again (MAT section 2).
import { sha256Hex } from '../../../core/series/hash.ts'
import type { ScanReply } from './scan-client.ts'
import type { ScanHost } from './scan-store.ts'

/** Refusals of a code that may end: a plan may get room, a clock be set right, the server's older host be revoked. */
const MENDED_ELSEWHERE: ReadonlySet<string> = new Set(['quota_exceeded', 'clock_skew', 'server_taken'])

export const codeHashOf = (code: string): string => (code === '' ? '' : sha256Hex(code))

/** The host when the matcher takes its reports, as far as is known; else null. */
export const activeHost = (host: ScanHost | null): ScanHost | null =>
  host !== null && host.hostId !== '' && host.refused === '' ? host : null

/** Whether the code may make this host a scan host: it has none, or one that is refused, and the code is another. */
export function canEnroll(host: ScanHost | null, code: string, refusedCodeHash: string): boolean {
  const codeHash = codeHashOf(code)
  const isNew = host === null || host.hostId === '' || host.codeHash !== codeHash
  return activeHost(host) === null && codeHash !== '' && codeHash !== refusedCodeHash && isNew
}

/** Answers that say that the enrollment itself is wrong. */
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 409, 413, 422])

/** What an answer to an enrollment means; `for_good`: for this code, whatever is waited for. */
export function enrollmentRefusal(reply: ScanReply): 'no_refusal' | 'for_now' | 'for_good' {
  if (reply.kind !== 'answer' || !REFUSALS.has(reply.status)) return 'no_refusal'
  return MENDED_ELSEWHERE.has(reply.code ?? '') ? 'for_now' : 'for_good'
}
