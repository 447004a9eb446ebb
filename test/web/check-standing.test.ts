// How a check stands on a server, and since which hour: from the last result of each hour and its share of good ones.
import { expect, test } from 'bun:test'
import { isStale, standingOf } from '../../apps/hub/web/views/check-standing.ts'

const HOUR_MS = 3_600_000
const NOW_MS = Date.UTC(2026, 10, 23, 12, 20)
/** The last hours, the one that runs last; the rest of the day has no result. */
const day = (...hours: readonly (number | null)[]) => [
  ...Array.from({ length: 24 - hours.length }, () => null),
  ...hours,
]
const hour = (text: number): number => Date.UTC(2026, 10, 23, text)

const cases: readonly (readonly [string, (number | null)[], (number | null)[], boolean | null, number | null])[] = [
  ['nothing is known', day(), day(), null, null],
  ['the last result is of two hours ago', day(1, null, null), day(1, null, null), null, null],
  ['well since the first hour with a result', day(1, 1, 1), day(1, 1, 1), true, hour(10)],
  ['its first result is of this hour', day(0), day(0), false, hour(12)],
  ['failed for the whole day', Array<number>(24).fill(0), Array<number>(24).fill(0), false, null],
  ['failed since it failed in an hour that began well', day(1, 0, 0), day(1, 0.3, 0), false, hour(11)],
  ['failed from the beginning of an hour', day(1, 1, 0), day(1, 1, 0), false, hour(12)],
  ['well again after an hour whose last result failed', day(0, 0, 1), day(0, 0.5, 1), true, hour(12)],
  ['well again in this hour', day(0, 0, 1), day(0, 0, 0.5), true, hour(12)],
  ['an hour without a result ends nothing', day(0, 1, null, 1), day(0, 1, null, 1), true, hour(10)],
]

for (const [name, lasts, shares, isWell, sinceMs] of cases)
  test(`the standing of a check: ${name}`, () => {
    expect(standingOf(lasts, shares, NOW_MS)).toEqual({ isWell, sinceMs })
  })

test('the beginning of an hour is one by the clock, also at the full hour itself', () => {
  expect(standingOf(day(1, 0), day(1, 0), hour(12) + HOUR_MS).sinceMs).toBe(hour(12))
})

test('a result is out of date when several of its interval are missing, and one without a time is not judged', () => {
  const minutesAgo = (minutes: number) => NOW_MS - minutes * 60_000
  expect([isStale(minutesAgo(4), 60, NOW_MS), isStale(minutesAgo(6), 60, NOW_MS)]).toEqual([false, true])
  expect([isStale(minutesAgo(90), 3600, NOW_MS), isStale(null, 60, NOW_MS)]).toEqual([false, false])
})
