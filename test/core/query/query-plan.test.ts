import { describe, expect, test } from 'bun:test'
import { planSeries } from '../../../core/query/query-plan.ts'
import type { SeriesRequest } from '../../../core/query/series-request.ts'

const NOW = Date.UTC(2026, 5, 15, 12, 0, 0)
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

const request = (over: Partial<SeriesRequest>): SeriesRequest => ({
  companyId: '11111111-1111-4111-8111-111111111111',
  metric: 'cpu_usage_percent',
  agg: 'avg',
  fromMs: NOW - HOUR_MS,
  toMs: NOW,
  stepMs: null,
  ...over,
})
const context = {
  serverId: 'aaaaaaaa-0000-4000-8000-000000000001',
  nowMs: NOW,
  readFromMs: Number.NEGATIVE_INFINITY,
}
const plan = (over: Partial<SeriesRequest>, more: Partial<typeof context> = {}) => {
  const planned = planSeries(request(over), { ...context, ...more })
  if ('fault' in planned) throw new Error(planned.fault.message)
  return planned.plan
}

describe('the plan of a series query', () => {
  test('[QRY-020] from within 7 days reads raw, exactly 7 days included', () => {
    expect(plan({}).source).toBe('raw')
    expect(plan({ fromMs: NOW - 7 * DAY_MS }).source).toBe('raw')
    expect(plan({ fromMs: NOW - 7 * DAY_MS, stepMs: 60_000 }).stepMs).toBe(60_000)
  })

  test('[QRY-021] [QRY-022] from older than 7 days reads the largest cell not wider than step, and rounds step up to it', () => {
    const f = (stepMs: number, source: string, used: number) =>
      expect(plan({ fromMs: NOW - 8 * DAY_MS, stepMs })).toMatchObject({ source, stepMs: used })
    f(60_000, '5m', 300_000)
    f(300_000, '5m', 300_000)
    f(301_000, '5m', 600_000)
    f(HOUR_MS - 1000, '5m', HOUR_MS)
    f(HOUR_MS, '1h', HOUR_MS)
    f(HOUR_MS + 1000, '1h', 2 * HOUR_MS)
    f(DAY_MS, '1h', DAY_MS)
  })

  test('[QRY-017] the default step is the range divided by 500, at least 30 s', () => {
    expect(plan({}).stepMs).toBe(30_000)
    expect(plan({ fromMs: NOW - DAY_MS }).stepMs).toBe(173_000)
    expect(plan({ fromMs: NOW - 7 * DAY_MS }).stepMs).toBe(1_210_000)
    // 400 days / 500 = 19.2 h, in whole cells of an hour.
    expect(plan({ fromMs: NOW - 400 * DAY_MS })).toMatchObject({ source: '1h', stepMs: 20 * HOUR_MS })
  })

  test('[QRY-016] more than 11000 points is a fault of step, counted after rounding', () => {
    const planned = (rangeMs: number, stepMs: number) => planSeries(request({ fromMs: NOW - rangeMs, stepMs }), context)
    expect('plan' in planned(11_000 * 30_000, 30_000)).toBe(true)
    expect(planned(11_000 * 30_000 + 1, 30_000)).toMatchObject({ fault: { field: 'step' } })
    // 30 s over 30 days would be too many; on cells of 5 minutes it is not.
    expect('plan' in planned(30 * DAY_MS, 30_000)).toBe(true)
    expect(planned(60 * DAY_MS, 30_000)).toMatchObject({ fault: { field: 'step' } })
  })

  test('[QRY-026] from is clamped to the read limit, and source and step follow from there', () => {
    const readFromMs = NOW - 3 * DAY_MS
    expect(plan({ fromMs: NOW - 30 * DAY_MS }, { readFromMs })).toMatchObject({
      fromMs: readFromMs,
      source: 'raw',
      isEmpty: false,
    })
    expect(plan({ fromMs: NOW - DAY_MS }, { readFromMs }).fromMs).toBe(NOW - DAY_MS)
  })

  test('[QRY-028] a range wholly outside the read limit asks no store', () => {
    const readFromMs = NOW - 3 * DAY_MS
    const outside = plan({ fromMs: NOW - 5 * DAY_MS, toMs: NOW - 4 * DAY_MS }, { readFromMs })
    expect(outside).toMatchObject({ isEmpty: true, fromMs: NOW - 5 * DAY_MS })
    expect(plan({ fromMs: NOW - 5 * DAY_MS, toMs: readFromMs }, { readFromMs }).isEmpty).toBe(false)
  })

  test('[QRY-024] an empty rollup is read again from raw only inside the 30 days of raw', () => {
    expect(plan({ fromMs: NOW - 8 * DAY_MS }).fallsBackToRaw).toBe(true)
    expect(plan({ fromMs: NOW - 30 * DAY_MS }).fallsBackToRaw).toBe(true)
    expect(plan({ fromMs: NOW - 31 * DAY_MS }).fallsBackToRaw).toBe(false)
    expect(plan({}).fallsBackToRaw).toBe(false)
  })

  test('[QRY-033] [STO-006] without a plan limit nothing older than 400 days is read', () => {
    expect(plan({ fromMs: NOW - 450 * DAY_MS, toMs: NOW - 100 * DAY_MS }).oldestMs).toBe(NOW - 400 * DAY_MS)
  })
})
