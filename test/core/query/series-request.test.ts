import { describe, expect, test } from 'bun:test'
import { limits } from '../../../core/limits.ts'
import { planSeries } from '../../../core/query/query-plan.ts'
import { parseInstant, parseSeriesRequest, type SeriesParams } from '../../../core/query/series-request.ts'

const NOW = Date.UTC(2026, 5, 15, 12, 0, 0)
const COMPANY = '11111111-1111-4111-8111-111111111111'
const DAY_MS = 86_400_000
const none: SeriesParams = {
  company_id: undefined,
  metric: undefined,
  from: undefined,
  to: undefined,
  step: undefined,
  agg: undefined,
}
const good: SeriesParams = { ...none, company_id: COMPANY, metric: 'cpu_usage_percent' }

const fieldsOf = (params: Partial<SeriesParams>): string[] => {
  const parsed = parseSeriesRequest({ ...good, ...params }, NOW)
  return 'faults' in parsed ? parsed.faults.map(fault => fault.field) : []
}
const requestOf = (params: Partial<SeriesParams>) => {
  const parsed = parseSeriesRequest({ ...good, ...params }, NOW)
  if ('faults' in parsed) throw new Error(JSON.stringify(parsed.faults))
  return parsed.request
}

describe('parameters of a series query', () => {
  test('[QRY-010] from and to are RFC 3339 or epoch seconds', () => {
    const f = (text: string, expected: number | null) => expect(parseInstant(text)).toBe(expected)
    f('2026-06-15T12:00:00Z', NOW)
    f('2026-06-15t12:00:00z', NOW)
    f('2026-06-15T12:00:00.25Z', NOW + 250)
    f('2026-06-15T19:00:00+07:00', NOW)
    f('2026-06-15T06:30:00-05:30', NOW)
    f(String(NOW / 1000), NOW)
    f(`${NOW / 1000}.5`, NOW + 500)
    f('0', 0)
    f('2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29))
  })

  test('[QRY-010] anything else is no instant', () => {
    for (const text of [
      '',
      'now',
      '2026-06-15',
      '2026-06-15T12:00:00',
      '2026-06-15 12:00:00Z',
      '2026-06-15T19:00:00 07:00',
      '2026-13-01T00:00:00Z',
      '2026-02-29T00:00:00Z',
      '2026-06-00T00:00:00Z',
      '2026-06-15T24:00:00Z',
      '2026-06-15T12:60:00Z',
      '2026-06-15T12:00:60Z',
      '2026-06-15T12:00:00+25:00',
      '-5',
      '1e9',
      String(NOW),
    ])
      expect(parseInstant(text)).toBeNull()
  })

  test('[QRY-011] without from and to the last hour is read; with to alone the hour before it', () => {
    expect(requestOf({})).toMatchObject({ fromMs: NOW - 3_600_000, toMs: NOW, agg: 'avg', stepMs: null })
    expect(requestOf({ to: '2026-06-15T10:00:00Z' })).toMatchObject({ fromMs: NOW - 3 * 3_600_000 })
    expect(requestOf({ from: '2026-06-15T10:00:00Z' })).toMatchObject({ toMs: NOW })
  })

  test('[QRY-014] step is a duration or a number of seconds', () => {
    const f = (step: string, expected: number) => expect(requestOf({ step }).stepMs).toBe(expected)
    f('30', 30_000)
    f('30s', 30_000)
    f('5m', 300_000)
    f('1h30m', 5_400_000)
    f('1d', DAY_MS)
  })

  test('[QRY-015] a step under 30 s, or one that is none, is a fault of step', () => {
    for (const step of ['29', '29s', '0', '1ms', 'soon', '5 m', '-60', ''])
      expect([step, fieldsOf({ step })]).toEqual([step, ['step']])
    expect(fieldsOf({ step: '30' })).toEqual([])
  })

  test('[QRY-008] a metric outside the catalogue is a fault of metric', () => {
    for (const metric of [undefined, '', 'made_up_metric', 'CPU_usage_percent', "x' OR 1"])
      expect(fieldsOf({ metric })).toEqual(['metric'])
  })

  test('[QRY-009] agg is avg, min, max or last', () => {
    for (const agg of ['avg', 'min', 'max', 'last']) expect(fieldsOf({ agg })).toEqual([])
    for (const agg of ['sum', 'AVG', 'p95', '']) expect(fieldsOf({ agg })).toEqual(['agg'])
  })

  test('[QRY-012] the range is at most 400 days with a long-term store', () => {
    const from = (days: number, extraMs = 0) => new Date(NOW - days * DAY_MS - extraMs).toISOString()
    expect(fieldsOf({ from: from(400) })).toEqual([])
    expect(fieldsOf({ from: from(400, 1) })).toEqual(['from'])
  })

  test('[QRY-013] 31 days may be asked; more may too, since rollups reach beyond the 30 days of raw samples', () => {
    const f = (days: number) => {
      const request = requestOf({ from: new Date(NOW - days * DAY_MS).toISOString() })
      const planned = planSeries(request, { serverId: COMPANY, nowMs: NOW, readFromMs: Number.NEGATIVE_INFINITY })
      if ('fault' in planned) throw new Error(`${days} days: ${planned.fault.message}`)
      const { source, oldestMs, fallsBackToRaw } = planned.plan
      expect([days, source, oldestMs <= request.fromMs, fallsBackToRaw]).toEqual([days, '1h', true, false])
    }
    expect(limits.rawRetentionDays).toBeLessThan(31)
    for (const days of [31, 32, 399, 400]) f(days)
  })

  test('from must be before to', () => {
    const at = new Date(NOW).toISOString()
    expect(fieldsOf({ from: at, to: at })).toEqual(['from'])
    expect(fieldsOf({ from: new Date(NOW + 1000).toISOString(), to: at })).toEqual(['from'])
  })

  test('[ADM-010] every fault is named at once', () => {
    const all = { company_id: undefined, metric: 'x', from: 'a', to: 'b', step: 'c', agg: 'd' }
    expect(fieldsOf(all)).toEqual(['company_id', 'metric', 'agg', 'to', 'from', 'step'])
    expect(fieldsOf({ company_id: 'acme' })).toEqual(['company_id'])
  })
})
