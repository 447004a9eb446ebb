import { describe, expect, test } from 'bun:test'
import {
  deletion,
  planDays,
  type RetentionSettings,
  readWindow,
  writeLockedBeforeMs,
} from '../../../core/retention/readable-and-deletable.ts'

const NOW = Date.UTC(2026, 5, 15, 12, 34, 56)
const DAY_MS = 86_400_000
const TODAY = Date.UTC(2026, 5, 15)
const LATER = NOW + DAY_MS
const settings = (
  retentionDays: number | null,
  previousDays: number | null = null,
  graceUntilMs: number | null = null,
): RetentionSettings => ({ retentionDays, previousDays, graceUntilMs })
const known = { firstSeenAtMs: NOW - 100 * DAY_MS, largestDays: 0 }

describe('the read window', () => {
  test('[RET-002] [QRY-027] without a grace the company reads metrics_retention_days', () => {
    expect(readWindow(settings(7), NOW)).toEqual({ readFromMs: NOW - 7 * DAY_MS, retentionDays: 7 })
    expect(readWindow(settings(7, 30, NOW), NOW)).toEqual({ readFromMs: NOW - 7 * DAY_MS, retentionDays: 7 })
  })

  test('[RET-001] in a grace it reads previous_days, or without limit when it was unlimited', () => {
    expect(readWindow(settings(7, 30, LATER), NOW)).toEqual({
      readFromMs: NOW - 30 * DAY_MS,
      retentionDays: 7,
      previousDays: 30,
      graceUntilMs: LATER,
      lockedBeforeMs: NOW - 7 * DAY_MS,
    })
    expect(readWindow(settings(7, null, LATER), NOW)).toEqual({
      readFromMs: Number.NEGATIVE_INFINITY,
      retentionDays: 7,
      graceUntilMs: LATER,
      lockedBeforeMs: NOW - 7 * DAY_MS,
    })
  })

  test('[RET-018] [QRY-033] [QRY-031] null, out of domain and a company never seen have no limit', () => {
    for (const each of [null, settings(null), settings(0), settings(3651), settings(1.5), settings(null, 30, LATER)])
      expect(readWindow(each, NOW)).toEqual({ readFromMs: Number.NEGATIVE_INFINITY })
    expect(readWindow(settings(3650), NOW).retentionDays).toBe(3650)
    expect(planDays(settings(3651))).toBeNull()
  })
})

describe('the write-locked zone', () => {
  test('[RET-003] samples older than metrics_retention_days are never written, in a grace neither', () => {
    expect(writeLockedBeforeMs(planDays(settings(7, 30, LATER)), NOW)).toBe(NOW - 7 * DAY_MS)
    expect(writeLockedBeforeMs(planDays(settings(null)), NOW)).toBe(Number.NEGATIVE_INFINITY)
  })
})

describe('what may be deleted', () => {
  const of = (each: RetentionSettings | undefined, memory = known, nowMs = NOW) => deletion(each, memory, nowMs, DAY_MS)

  test('[RET-005] [RET-008] only whole UTC days that lie entirely outside the window', () => {
    expect(of(settings(7))).toEqual({ deleteBeforeMs: TODAY - 7 * DAY_MS })
    expect(deletion(settings(7), known, TODAY, DAY_MS)).toEqual({ deleteBeforeMs: TODAY - 7 * DAY_MS })
    expect(deletion(settings(7), known, TODAY - 1, DAY_MS)).toEqual({ deleteBeforeMs: TODAY - 8 * DAY_MS })
  })

  test('[RET-007] in a grace nothing inside previous_days is deleted', () => {
    expect(of(settings(7, 30, LATER))).toEqual({ deleteBeforeMs: TODAY - 30 * DAY_MS })
    expect(of(settings(7, null, LATER))).toEqual({ keep: 'unlimited' })
    expect(of(settings(7, 30, NOW))).toEqual({ deleteBeforeMs: TODAY - 7 * DAY_MS })
  })

  test('[RET-009] nothing when the hub does not answer', () => {
    expect(of(undefined)).toEqual({ keep: 'hub_silent' })
  })

  test('[RET-010] at least one day is kept', () => {
    expect(of(settings(1))).toEqual({ deleteBeforeMs: TODAY - DAY_MS })
  })

  test('[RET-011] a company new to the collector waits 24 hours', () => {
    expect(of(settings(7), { firstSeenAtMs: NOW - DAY_MS + 1, largestDays: 0 })).toEqual({ keep: 'new_company' })
    expect(of(settings(7), { firstSeenAtMs: NOW - DAY_MS, largestDays: 0 })).toEqual({
      deleteBeforeMs: TODAY - 7 * DAY_MS,
    })
  })

  test('[RET-012] never below the largest retention seen in the last 30 days', () => {
    expect(of(settings(7), { ...known, largestDays: 90 })).toEqual({ deleteBeforeMs: TODAY - 90 * DAY_MS })
    expect(of(settings(7), { ...known, largestDays: Number.POSITIVE_INFINITY })).toEqual({ keep: 'unlimited' })
  })

  test('[RET-018] nothing without a plan limit', () => {
    expect(of(settings(null))).toEqual({ keep: 'unlimited' })
  })
})
