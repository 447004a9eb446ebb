// What the operator of an agent is told of why it was not enrolled.
import type { RefusalReason } from '../licenses/refusals.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { type TextKey, words } from '../platform/http/api-texts.ts'

/** Why an enrollment is refused, with a message that the agent's operator can act on. */
const REFUSALS = {
  invalid_token: 'license_invalid',
  token_revoked: 'license_revoked',
  token_expired: 'license_expired',
  token_used: 'license_used',
  already_enrolled: 'already_enrolled',
  binding_failed: 'binding_failed',
  quota_exceeded: 'quota_exceeded',
} as const satisfies Readonly<Record<RefusalReason, TextKey>>

export const refused = (status: number, code: RefusalReason): ApiError =>
  new ApiError(status, code, words(REFUSALS[code]))
