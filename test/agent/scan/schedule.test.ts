import { expect, test } from 'bun:test'
import { nextReportAtMs, scanRetryMs } from '../../../core/agent/scan-schedule.ts'

const HOUR_MS = 3_600_000
const settings = { enabled: true, reason: '', interval_seconds: 3_600, next_after_seconds: 3_000, version: 1 } as const

test('[MAT-043] waits double from 30 s to an hour, a random share of them, and as long as is asked for', () => {
  expect([1, 2, 3, 7, 8, 50].map(failures => scanRetryMs(failures, 1, null) / 1000)).toEqual([
    30, 60, 120, 1_920, 3_600, 3_600,
  ])
  expect(scanRetryMs(4, 0.5, null)).toBe(120_000)
  expect(scanRetryMs(4, 0, 7_000_000)).toBe(7_000_000)
  expect(scanRetryMs(4, 0, null)).toBe(0)
})

test('[MAT-044] the matcher spreads its hosts; those that scan less often spread by their ids', () => {
  expect(nextReportAtMs(1_000, 'a', HOUR_MS, settings)).toBe(3_001_000)
  const places = Array.from({ length: 2_000 }, (_, index) => nextReportAtMs(0, `host-${index}`, 24 * HOUR_MS, settings))
  expect(Math.min(...places)).toBeGreaterThanOrEqual(12 * HOUR_MS)
  expect(Math.max(...places)).toBeLessThanOrEqual(36 * HOUR_MS)
  const byHour = Map.groupBy(places, place => Math.floor(place / HOUR_MS))
  expect(byHour.size).toBe(24)
  for (const hour of byHour.values()) expect(hour.length).toBeLessThan(160)
  // Then every interval at the same place.
  const first = places[0]!
  expect(nextReportAtMs(first, 'host-0', 24 * HOUR_MS, settings)).toBe(first + 24 * HOUR_MS)
})
