import { describe, expect, test } from 'bun:test'
import { serverStatusOfRecord, stateAtEnrollment } from '../../../core/lifecycle/agent.ts'
import { connectivityOf } from '../../../core/lifecycle/agent-shown-online.ts'
import { collectorStatus } from '../../../core/lifecycle/collector-shown-online.ts'
import { rotateToken, type TokenPair } from '../../../core/lifecycle/token-rotation.ts'

const NOW = 1_800_000_000_000
const HOUR_MS = 3_600_000
const agent = (more: Partial<TokenPair> = {}): TokenPair => ({
  state: 'active',
  tokenHash: 'current',
  prevTokenHash: null,
  prevTokenExpiresAtMs: null,
  rotatedAtMs: [],
  ...more,
})
const rotate = (pair: TokenPair, presented: string, nowMs = NOW) => rotateToken(pair, presented, 'new', 3, nowMs)

describe('rotation', () => {
  test('[COL-078] the current hash moves to the overlap for 24 hours', () => {
    expect(rotate(agent(), 'current')).toEqual({
      kind: 'rotated',
      tokenHash: 'new',
      prevTokenHash: 'current',
      prevTokenExpiresAtMs: NOW + 24 * HOUR_MS,
      rotatedAtMs: [NOW],
    })
  })

  test('[COL-080] the previous hash in validity replaces the current one and keeps the overlap', () => {
    const pair = agent({ prevTokenHash: 'old', prevTokenExpiresAtMs: NOW + 1 })
    expect(rotate(pair, 'old')).toMatchObject({ tokenHash: 'new', prevTokenHash: 'old', prevTokenExpiresAtMs: NOW + 1 })
  })

  test('[COL-077] [COL-081] [COL-082] [COL-084] [COL-085] everything else is not found, without a difference', () => {
    const overlap = { prevTokenHash: 'old', prevTokenExpiresAtMs: NOW }
    for (const [pair, presented] of [
      [agent(), 'wrong'],
      [agent(overlap), 'old'],
      [agent({ state: 'revoked' }), 'current'],
      [agent({ state: 'pending' }), 'current'],
      [agent({ prevTokenHash: 'old', prevTokenExpiresAtMs: null }), 'old'],
    ] as const)
      expect(rotate(pair, presented)).toEqual({ kind: 'not_found' })
  })

  test('[COL-087] the fourth rotation within an hour waits until the first is an hour old', () => {
    const pair = agent({ rotatedAtMs: [NOW - HOUR_MS + 30_000, NOW - 2000, NOW - 1000] })
    expect(rotate(pair, 'current')).toEqual({ kind: 'rate_limited', retryAfterSeconds: 30 })
    expect(rotate(pair, 'current', NOW + 30_000).kind).toBe('rotated')
    expect(rotate(pair, 'wrong')).toEqual({ kind: 'not_found' })
  })
})

describe('states', () => {
  test('[HAG-003] [HAG-004] pending with a draft, online by last_seen_at and the agent.down alert', () => {
    expect(stateAtEnrollment('draft')).toBe('pending')
    expect(stateAtEnrollment('maintenance')).toBe('active')
    const seen = (ageMs: number | null, hasDownAlert = false, state: TokenPair['state'] = 'active') =>
      connectivityOf({ state, lastSeenAtMs: ageMs === null ? null : NOW - ageMs }, hasDownAlert, NOW)
    expect(seen(300_000)).toBe('online')
    expect(seen(300_001)).toBe('down')
    expect(seen(0, true)).toBe('down')
    expect(seen(null)).toBe('unknown')
    expect(seen(0, false, 'pending')).toBe('unknown')
    expect(seen(0, false, 'revoked')).toBe('unknown')
    expect(connectivityOf(undefined, false, NOW)).toBe('unknown')
  })

  test('[COL-064] a collector is online for 180 s after a heartbeat', () => {
    expect(collectorStatus(null, NOW)).toBe('never')
    expect(collectorStatus(NOW - 180_000, NOW)).toBe('online')
    expect(collectorStatus(NOW - 180_001, NOW)).toBe('offline')
  })

  test('[COL-013] only maintenance and decommissioned are served as server_status', () => {
    expect(['active', 'draft', null, 'maintenance', 'decommissioned'].map(serverStatusOfRecord)).toEqual([
      '',
      '',
      '',
      'maintenance',
      'decommissioned',
    ])
  })
})
