// When the bus takes no more: what waits is too much or too old, or the disk is nearly full (decision G-142).
import { expect, test } from 'bun:test'
import { isBusFull, isDiskFull } from '../../../core/bus/bus-bound.ts'

test('[G-142] the bus is full at its bytes, and beyond its age', () => {
  const bound = { bytesMax: 100, ageMaxMs: 1000 }
  const f = (bytes: number, oldestAtMs: number | null) => isBusFull({ bytes, oldestAtMs }, bound, 5000)
  expect([f(0, null), f(99, 4000), f(100, 5000), f(101, null), f(1, 3999)]).toEqual([false, false, true, true, true])
  // The clock was set back.
  expect(f(1, 9000)).toBe(false)
})

test('[G-142] less than 64 MiB of free disk refuses entries', () => {
  const mib = 1024 * 1024
  expect([isDiskFull(64 * mib), isDiskFull(64 * mib - 1), isDiskFull(Number.POSITIVE_INFINITY)]).toEqual([
    false,
    true,
    false,
  ])
})
