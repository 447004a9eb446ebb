// What a chart draws, before anything is drawn: gaps, single points, the past at the same time of day, ranges of time.
import { afterEach, expect, test } from 'bun:test'
import { DEFAULT_FROM, instantOf, isRelative, rangeOf } from '../../apps/hub/web/address/time-range.ts'
import { isolatedPoints, usualSteps, withGaps } from '../../apps/hub/web/browser/parts/chart/line-gaps.ts'
import { daysBefore, merged, pastOnGrid, statisticsOf } from '../../apps/hub/web/browser/parts/chart/lines.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NOW = Date.UTC(2026, 10, 22, 12)

test('a pause is a gap in the line; the instants between two values of a slow sender are none', () => {
  expect(usualSteps([1, null, 2, null, 3, null, null, null, null, 4])).toBe(2)
  expect(withGaps([1, 2, null, 4])).toEqual([1, 2, undefined, 4])
  expect(withGaps([1, 2, 3, null, null, null, 4])).toEqual([1, 2, 3, null, null, null, 4])
  expect(withGaps([1, null, 2, null, 3, null, null, null, null, null, null, 4])).toEqual([
    ...[1, undefined, 2, undefined, 3],
    ...[null, null, null, null, null, null, 4],
  ])
  expect(withGaps([null, null])).toEqual([null, null])
})

test('a value with gaps on both sides is drawn as a point', () => {
  expect(isolatedPoints([null, 5, null, 6, 7, null, 8])).toEqual([1, 6])
  expect(isolatedPoints([5, undefined, 6])).toEqual([])
  expect(isolatedPoints([null, 5, undefined, null])).toEqual([1])
})

test('last, lowest, average and highest value, without the instants at which nothing came', () => {
  expect(statisticsOf([null, 4, 2, null, 6, null])).toEqual({ last: 6, min: 2, avg: 4, max: 6 })
  expect(statisticsOf([null])).toEqual({ last: null, min: null, avg: null, max: null })
})

const zoneBefore = process.env.TZ
afterEach(() => {
  process.env.TZ = zoneBefore
})

test('a week before is the same hour of the day, across a change of clock too; in UTC it is 168 hours', () => {
  process.env.TZ = 'Europe/Berlin'
  // Clocks went back on 25 October 2026.
  const noon = new Date(2026, 9, 27, 12).getTime()
  expect(daysBefore(noon, 7, false)).toBe(new Date(2026, 9, 20, 12).getTime())
  expect(noon - daysBefore(noon, 7, false)).toBe(7 * DAY_MS + HOUR_MS)
  expect(daysBefore(noon, 7, true)).toBe(noon - 7 * DAY_MS)
})

test('the past stands on the grid of now, whatever its own', () => {
  const grid = { startMs: NOW, stepMs: HOUR_MS, length: 4 }
  const past = { startMs: NOW - DAY_MS - HOUR_MS, stepMs: HOUR_MS / 2, values: [0, 1, 2, 3, 4, null, 6] }
  expect(pastOnGrid(grid, past, 1, true)).toEqual([2, 4, 6, null])
})

test('periods that overlap are one, of the worst severity', () => {
  const f = merged(
    [
      { fromMs: 50, toMs: null, severity: 'info' },
      { fromMs: 0, toMs: 10, severity: 'warning' },
      { fromMs: 5, toMs: 20, severity: 'critical' },
    ],
    99,
  )
  expect(f).toEqual([
    { fromMs: 0, toMs: 20, severity: 'critical' },
    { fromMs: 50, toMs: 99, severity: 'info' },
  ])
})

test('a range is what the address names; the last six hours where it names none that can be', () => {
  const six = { fromMs: NOW - 6 * HOUR_MS, toMs: NOW }
  expect(rangeOf('', '', NOW)).toEqual(six)
  expect(rangeOf(DEFAULT_FROM, 'now', NOW)).toEqual(six)
  expect(rangeOf('now-2d', 'now-1d', NOW)).toEqual({ fromMs: NOW - 2 * DAY_MS, toMs: NOW - DAY_MS })
  const day = { fromMs: Date.UTC(2026, 0, 1), toMs: Date.UTC(2026, 0, 2) }
  expect(rangeOf('2026-01-01T00:00:00Z', '2026-01-02T01:00:00+01:00', NOW)).toEqual(day)
  for (const [from, to] of [
    ['now', 'now-1h'],
    ['yesterday', 'now'],
    ['now-9999999d', 'now'],
    ['2020-01-01T00:00:00Z', 'now'],
    ['2026-01-01T00:00:00Z', '2026-01-01T00:00:30Z'],
    ['<script>', '1'],
  ] as const)
    expect(rangeOf(from, to, NOW)).toEqual(six)
  expect([isRelative('now-5m'), isRelative('now'), isRelative('2026-01-01T00:00:00Z')]).toEqual([true, true, false])
  expect(instantOf('now-1w', NOW)).toBe(NOW - 7 * DAY_MS)
  expect(instantOf('2026-13-01T00:00:00Z', NOW)).toBeNull()
})
