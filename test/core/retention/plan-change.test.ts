import { describe, expect, test } from 'bun:test'
import { DAY_MS } from '../../../core/limits.ts'
import { changeRetention, graceMs, type RetentionState } from '../../../core/retention/plan-change.ts'

const NOW = 1_800_000_000_000
const calm = (effectiveDays: number | null): RetentionState => ({
  effectiveDays,
  previousDays: null,
  graceUntilMs: null,
  changedAtMs: null,
})
const inGrace = (effectiveDays: number, previousDays: number | null, leftMs = 10 * DAY_MS): RetentionState => ({
  effectiveDays,
  previousDays,
  graceUntilMs: NOW + leftMs,
  changedAtMs: NOW - DAY_MS,
})
const change = (state: RetentionState, days: number | null) => changeRetention(state, days, NOW)

describe('retention rule', () => {
  test('[HST-022] an equal value changes nothing', () => {
    for (const state of [calm(30), calm(null), inGrace(30, 90)]) expect(change(state, state.effectiveDays)).toBe(state)
  })

  test('[HST-009] [HST-012] [HST-023] a decrease keeps the old value readable for 30 days', () => {
    expect(change(calm(90), 30)).toEqual({
      effectiveDays: 30,
      previousDays: 90,
      graceUntilMs: NOW + graceMs,
      changedAtMs: NOW,
    })
    expect(graceMs).toBe(30 * DAY_MS)
  })

  test('[HST-010] from unlimited to limited the earlier value is unlimited: null with a grace', () => {
    expect(change(calm(null), 30)).toMatchObject({ previousDays: null, graceUntilMs: NOW + graceMs })
  })

  test('[HST-009] [HST-011] in a running grace the larger of both counts, unlimited wins', () => {
    expect(change(inGrace(60, 90), 30).previousDays).toBe(90)
    expect(change(inGrace(60, 40), 30).previousDays).toBe(60)
    expect(change(inGrace(60, null), 30).previousDays).toBeNull()
  })

  test('[HST-009] a grace that is over does not count', () => {
    expect(change(inGrace(60, 90, -1), 30).previousDays).toBe(60)
    expect(change(inGrace(60, 90, 0), 30).previousDays).toBe(60)
  })

  test('[HST-012] [HST-016] a further decrease never shortens the grace', () => {
    const late = inGrace(60, 90, 45 * DAY_MS)
    expect(change(late, 30).graceUntilMs).toBe(late.graceUntilMs)
    expect(change(inGrace(60, 90), 30).graceUntilMs).toBe(NOW + graceMs)
  })

  test('[HST-013] [HST-014] an increase to at least the earlier value, or to unlimited, ends the grace', () => {
    for (const days of [90, 91, null])
      expect(change(inGrace(30, 90), days)).toEqual({
        effectiveDays: days,
        previousDays: null,
        graceUntilMs: null,
        changedAtMs: NOW,
      })
    expect(change(inGrace(30, null), null)).toMatchObject({ previousDays: null, graceUntilMs: null })
  })

  test('[HST-015] an increase that stays below the earlier value keeps the grace', () => {
    const state = inGrace(30, 90)
    expect(change(state, 60)).toEqual({ ...state, effectiveDays: 60, changedAtMs: NOW })
    const fromUnlimited = inGrace(30, null)
    expect(change(fromUnlimited, 3650)).toMatchObject({ previousDays: null, graceUntilMs: fromUnlimited.graceUntilMs })
  })

  test('[HST-009] [HST-011] [HST-013] [HST-015] [HST-016] every state and every change keep the promises of the rule', () => {
    const days = [1, 7, 30, 90, 3650, null]
    const size = (value: number | null) => value ?? Number.POSITIVE_INFINITY
    let checked = 0
    for (const effectiveDays of days)
      for (const previousDays of days)
        for (const graceUntilMs of [null, NOW - 1, NOW, NOW + 1, NOW + graceMs, NOW + 2 * graceMs])
          for (const next of days) {
            const before = { effectiveDays, previousDays, graceUntilMs, changedAtMs: null }
            const isRunning = graceUntilMs !== null && graceUntilMs > NOW
            const after = change(before, next)
            const isGrace = after.graceUntilMs !== null && after.graceUntilMs > NOW
            expect(after.effectiveDays).toBe(next)
            if (next === effectiveDays) continue
            const readableBefore = isRunning ? Math.max(size(previousDays), size(effectiveDays)) : size(effectiveDays)
            const readableAfter = isGrace ? size(after.previousDays) : size(next)
            if (size(next) < size(effectiveDays)) {
              // What could be read stays readable, for 30 days at least.
              expect(readableAfter).toBe(readableBefore)
              expect(after.graceUntilMs).toBeGreaterThanOrEqual(NOW + graceMs)
            } else if (isRunning && size(next) < size(previousDays)) {
              expect(readableAfter).toBe(size(previousDays))
            } else expect(isGrace).toBe(false)
            if (isRunning && isGrace) expect(after.graceUntilMs).toBeGreaterThanOrEqual(graceUntilMs)
            checked++
          }
    expect(checked).toBe(6 * 6 * 6 * 5)
  })
})
