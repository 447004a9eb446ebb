// What a scan host is told of how to go on.
import { expect, test } from 'bun:test'
import { scanSettings } from '../../apps/matcher/scan-api/when-to-report.ts'
import { uuidFromText } from '../../core/series/hash.ts'

const company = (hours: number, isEnabled = true) => ({
  companyId: uuidFromText('company'),
  version: 7,
  isEnabled,
  scanIntervalHours: hours,
  minIntervalHours: hours,
  fetchedAtMs: 0,
  disabledSinceMs: null,
})
const host = (name: string, isInactive = false) => ({ hostId: uuidFromText(name), isInactive })

test('[MAT-031] settings say whether a host is scanned, and why not', () => {
  const shown = (isInactive: boolean, isEnabled: boolean) => {
    const { enabled, reason, interval_seconds, version } = scanSettings(host('a', isInactive), company(6, isEnabled), 0)
    return { enabled, reason, interval_seconds, version }
  }
  const rest = { interval_seconds: 21_600, version: 7 }
  expect(shown(false, true)).toEqual({ enabled: true, reason: '', ...rest })
  expect(shown(false, false)).toEqual({ enabled: false, reason: 'disabled', ...rest })
  expect(shown(true, true)).toEqual({ enabled: false, reason: 'inactive', ...rest })
})

test('[MAT-220] the interval of a company that was never seen is 24 h', () => {
  expect(scanSettings(host('a'), null, 0)).toMatchObject({ enabled: true, interval_seconds: 86_400, version: 0 })
})

test('[MAT-044] hosts that report at one time part again, and none is asked for a report that is too soon', () => {
  const count = 10_000
  const intervalMs = 3_600_000
  const nextMs = Array.from({ length: count }, () => 1_700_000_000_000)
  const seconds = new Set<number>()
  for (let round = 0; round < 15; round++) {
    for (let index = 0; index < count; index++) {
      const next = scanSettings(host(`host ${index}`), company(1), nextMs[index]!).next_after_seconds
      if (next < 3600 * 0.9 || next > 3600) throw new Error(`${next} s until the next report`)
      nextMs[index] = nextMs[index]! + next * 1000
    }
  }
  for (const ms of nextMs) seconds.add(Math.floor((ms % intervalMs) / 1000))
  const fullest = Math.max(
    ...Map.groupBy(nextMs, ms => Math.floor((ms % intervalMs) / 60_000))
      .values()
      .map(of => of.length),
  )
  expect(seconds.size).toBeGreaterThan(3000)
  expect(fullest).toBeLessThan((2 * count) / 60)
})

test('a host that has just been enrolled reports at once', () => {
  expect(scanSettings(host('a'), company(24), Date.now(), true).next_after_seconds).toBe(0)
})
