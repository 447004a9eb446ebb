// The life of a licence: its status is computed from its dates and counts, never stored (document 1 "License status",
// decisions G-17, G-18), and whether it may still enroll a server (decisions G-26, G-27). An enrolled agent works on
// when its licence ends; only a regenerated one ends its agents (G-19, apps/hub/licenses/license-migrations.ts).

export const licenseStatuses = ['active', 'expired', 'exhausted', 'revoked', 'superseded'] as const
export type LicenseStatus = (typeof licenseStatuses)[number]

export type LicenseDates = {
  readonly revokedAtMs: number | null
  readonly supersededAtMs: number | null
  readonly expiresAtMs: number | null
  readonly usedCount: number
  readonly maxUses: number
}

/** The status at `nowMs`: revoked and superseded take precedence over expired and exhausted. */
export function licenseStatus(license: LicenseDates, nowMs: number): LicenseStatus {
  if (license.revokedAtMs !== null) return 'revoked'
  if (license.supersededAtMs !== null) return 'superseded'
  if (license.expiresAtMs !== null && license.expiresAtMs <= nowMs) return 'expired'
  if (license.usedCount >= license.maxUses) return 'exhausted'
  return 'active'
}

/** A revoked or superseded licence is final: it can be neither edited nor regenerated. */
export const isEditable = (status: LicenseStatus): boolean => status !== 'revoked' && status !== 'superseded'

type EnrollRefusal = {
  readonly status: 401 | 409
  readonly code: 'token_revoked' | 'token_expired' | 'token_used' | 'invalid_token'
}

/**
 * Why a licence does not enroll a server for `collectorId`, or null when it does. The order of checks is revocation,
 * expiry, use count, collector pin; a superseded key answers like a revoked one.
 */
export function enrollRefusal(
  license: LicenseDates & { readonly collectorId: string | null },
  collectorId: string | null,
  nowMs: number,
): EnrollRefusal | null {
  const status = licenseStatus(license, nowMs)
  if (status === 'revoked' || status === 'superseded') return { status: 401, code: 'token_revoked' }
  if (status === 'expired') return { status: 401, code: 'token_expired' }
  if (status === 'exhausted') return { status: 409, code: 'token_used' }
  if (license.collectorId !== null && license.collectorId !== collectorId) return { status: 401, code: 'invalid_token' }
  return null
}
