import { expect, test } from 'bun:test'
import { FailuresInWindow } from '../../apps/hub/collectors/collector-client.ts'

/** What the breaker says after each of the calls: seconds of a failure, or of a success with a minus before. */
const said = (...calls: number[]): boolean[] => {
  let nowMs = 0
  const breaker = new FailuresInWindow(5, 60_000, () => nowMs)
  return calls.map(at => {
    nowMs = Math.abs(at) * 1000
    if (at >= 0) return breaker.failure()
    breaker.success()
    return false
  })
}

test('[HUB-064] five failures in a row within 60 seconds open the circuit', () => {
  expect(said(0, 1, 2, 3, 4)).toEqual([false, false, false, false, true])
  expect(said(0, 15, 30, 45, 60)).toEqual([false, false, false, false, true])
})

test('[HUB-064] failures that are further apart, or not in a row, do not', () => {
  expect(said(0, 20, 40, 60, 61)).not.toContain(true)
  expect(said(0, 1, 2, 3, -4, 5, 6, 7, 8)).not.toContain(true)
})

test('[HUB-064] old failures fall out of the window one by one', () => {
  expect(said(0, 50, 51, 52, 61, 62)).toEqual([false, false, false, false, false, true])
})
