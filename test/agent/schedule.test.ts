// When the agent does what: grid, jitter, polls, renewal, backoff, as pure functions.
import { expect, test } from 'bun:test'
import { backoffCeilingMs, retryWaitMs } from '../../core/agent/retry-wait.ts'
import {
  agentHash,
  awaitedCycleAtMs,
  configPollDelayMs,
  configReloadAtMs,
  cycleOffsetMs,
  firstConfigPollMs,
  firstUpdateCheckMs,
  nextCycleAtMs,
  nextSendAtMs,
} from '../../core/agent/schedule.ts'
import { renewalDueAtMs } from '../../core/agent/token-renewal.ts'
import { DAY_MS, limits } from '../../core/limits.ts'

const IDS = Array.from({ length: 2000 }, (_, index) => `agent-${index}`)
const HOUR_MS = 3_600_000

test('[AGT-054 AGT-055 AGT-056] the ceiling of the backoff is 5 s, doubles with each failure and ends at 300 s', () => {
  const f = (failures: number, expected: number) => expect(backoffCeilingMs(failures)).toBe(expected)
  f(1, 5_000)
  f(2, 10_000)
  f(3, 20_000)
  f(6, 160_000)
  f(7, 300_000)
  f(1_000, 300_000)
})

test('[AGT-057 AGT-058] the wait is random in [0, ceiling], and never below Retry-After', () => {
  const f = (failures: number, random: number, retryAfterMs: number | null, expected: number) =>
    expect(retryWaitMs(failures, random, retryAfterMs)).toBe(expected)
  f(1, 0, null, 0)
  f(1, 0.999999, null, 5_000)
  f(3, 0.25, null, 5_000)
  f(1, 0.5, 60_000, 60_000)
  f(7, 1, 60_000, 300_000)
  f(1, 0, 7_200_000, 7_200_000)
})

test('[AGT-012] the offset of an agent lies within its interval and differs between agents', () => {
  const offsets = IDS.map(id => cycleOffsetMs(id, 30_000))
  expect(Math.min(...offsets)).toBeGreaterThanOrEqual(0)
  expect(Math.max(...offsets)).toBeLessThan(30_000)
  expect(new Set(offsets).size).toBeGreaterThan(1_800)
  // Each tenth of the interval gets about a tenth of the fleet.
  for (let tenth = 0; tenth < 10; tenth++) {
    const share = offsets.filter(offset => Math.floor(offset / 3_000) === tenth).length
    expect(share).toBeGreaterThan(150)
    expect(share).toBeLessThan(250)
  }
  expect(cycleOffsetMs('agent-1', 30_000)).toBe(cycleOffsetMs('agent-1', 30_000))
})

test('the next cycle is the first point of the grid after now', () => {
  const f = (nowMs: number, intervalMs: number, offsetMs: number, expected: number) =>
    expect(nextCycleAtMs(nowMs, intervalMs, offsetMs)).toBe(expected)
  f(0, 30_000, 0, 30_000)
  f(29_999, 30_000, 0, 30_000)
  f(30_000, 30_000, 0, 60_000)
  f(0, 30_000, 12_345, 12_345)
  f(12_345, 30_000, 12_345, 42_345)
  f(1_790_000_000_123, 10_000, 9_999, 1_790_000_009_999)
})

test('[AGT-018] a poll follows the last one after 300 s, 20 % less to 20 % more', () => {
  expect(configPollDelayMs(0)).toBe(240_000)
  expect(configPollDelayMs(0.5)).toBe(300_000)
  expect(configPollDelayMs(0.999999999)).toBe(360_000)
})

test('[AGT-019] the phase of the config poll comes from the agent id', () => {
  const phases = IDS.map(firstConfigPollMs)
  expect(Math.max(...phases)).toBeLessThan(300_000)
  expect(new Set(phases).size).toBeGreaterThan(1_900)
})

test('[AGT-021] a changed etag is followed at once, but not within 30 s of the last read', () => {
  expect(configReloadAtMs(1_000, null)).toBe(1_000)
  expect(configReloadAtMs(50_000, 45_000)).toBe(75_000)
  expect(configReloadAtMs(100_000, 45_000)).toBe(100_000)
})

test('[AGT-033] a token of 30 days is renewed at most 24 hours before that age, by hash(agent_id) mod 24 h', () => {
  const ages = IDS.map(id => renewalDueAtMs(5, limits.renewPeriodMs, id) - 5)
  expect(Math.max(...ages)).toBeLessThanOrEqual(30 * DAY_MS)
  expect(Math.min(...ages)).toBeGreaterThan(29 * DAY_MS)
  expect(Math.max(...ages) - Math.min(...ages)).toBeGreaterThan(20 * HOUR_MS)
})

test('a short renewal period is spread over its half, so that a token is never due when it is issued', () => {
  for (const id of IDS.slice(0, 200)) {
    const age = renewalDueAtMs(0, HOUR_MS, id)
    expect(age).toBeGreaterThan(HOUR_MS / 2 - 1)
    expect(age).toBeLessThanOrEqual(HOUR_MS)
  }
})

test('[AGT-086] looks for updates have an offset of their own within 6 hours', () => {
  const offsets = IDS.map(id => firstUpdateCheckMs(id, 6 * 3_600_000))
  expect(Math.max(...offsets)).toBeLessThan(6 * HOUR_MS)
  expect(new Set(offsets).size).toBeGreaterThan(1_900)
})

test('a send waits until 15 s after the last one', () => {
  expect(nextSendAtMs(10, null)).toBe(10)
  expect(nextSendAtMs(20_000, 10_000)).toBe(25_000)
  expect(nextSendAtMs(90_000, 10_000)).toBe(90_000)
})

test('a hash is taken modulo whole positive numbers only', () => {
  expect(() => agentHash('a', 0)).toThrow()
  expect(() => agentHash('a', 1.5)).toThrow()
  expect(agentHash('a', 1)).toBe(0)
})

test('a planned cycle is waited for until the clock was set back by more than half an interval', () => {
  const f = (plannedAtMs: number | null, nowMs: number, expected: number) =>
    expect(awaitedCycleAtMs(plannedAtMs, nowMs, 30_000, 7_000)).toBe(expected)
  f(null, 100_000, 127_000)
  f(127_000, 100_000, 127_000)
  // A little behind the last instant, at the planned one, and after it.
  f(127_000, 96_999, 127_000)
  f(127_000, 127_000, 127_000)
  f(127_000, 140_000, 127_000)
  f(127_000, 81_999, 97_000)
  f(127_000, 10_000, 37_000)
})
