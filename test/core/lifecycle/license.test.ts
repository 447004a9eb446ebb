import { describe, expect, test } from 'bun:test'
import { enrollRefusal, isEditable, type LicenseDates, licenseStatus } from '../../../core/lifecycle/license.ts'

const NOW = 1_800_000_000_000
const license = (more: Partial<LicenseDates> = {}): LicenseDates => ({
  revokedAtMs: null,
  supersededAtMs: null,
  expiresAtMs: null,
  usedCount: 0,
  maxUses: 1,
  ...more,
})
const PAST = { expiresAtMs: NOW }
const USED = { usedCount: 1 }

describe('licence', () => {
  test('[LIC-051] [LIC-017] the status by decision comes before what ran out', () => {
    const status = (more: Partial<LicenseDates>) => licenseStatus(license(more), NOW)
    expect(status({})).toBe('active')
    expect(status({ expiresAtMs: NOW + 1 })).toBe('active')
    expect(status(PAST)).toBe('expired')
    expect(status(USED)).toBe('exhausted')
    expect(status({ ...PAST, ...USED })).toBe('expired')
    expect(status({ ...PAST, ...USED, supersededAtMs: NOW })).toBe('superseded')
    expect(status({ ...PAST, ...USED, supersededAtMs: NOW, revokedAtMs: NOW })).toBe('revoked')
  })

  test('[LIC-036] [LIC-037] [LIC-043] revoked and superseded are final', () => {
    expect((['active', 'expired', 'exhausted', 'revoked', 'superseded'] as const).map(isEditable)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
  })

  test('[ENR-009] [ENR-010] [ENR-011] [ENR-012] [ENR-022] why it does not enroll, in the order of the checks', () => {
    const code = (more: Partial<LicenseDates>, pin: string | null = null, by: string | null = 'c1') =>
      enrollRefusal({ ...license(more), collectorId: pin }, by, NOW)
    expect(code({})).toBeNull()
    expect(code({}, 'c1')).toBeNull()
    expect(code({}, 'c2')).toEqual({ status: 401, code: 'invalid_token' })
    expect(code({}, 'c2', null)).toEqual({ status: 401, code: 'invalid_token' })
    expect(code(USED, 'c2')).toEqual({ status: 409, code: 'token_used' })
    expect(code({ ...USED, ...PAST })).toEqual({ status: 401, code: 'token_expired' })
    expect(code({ ...USED, ...PAST, supersededAtMs: NOW })).toEqual({ status: 401, code: 'token_revoked' })
    expect(code({ revokedAtMs: NOW })).toEqual({ status: 401, code: 'token_revoked' })
  })
})
