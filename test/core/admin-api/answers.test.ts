import { describe, expect, test } from 'bun:test'
import { adminErrorBody, dataOf, parseRefusal } from '../../../core/admin-api/envelope.ts'
import { parseSeriesResponse, seriesOf, seriesPath } from '../../../core/admin-api/series.ts'
import { parseOnline, parseServerStatus } from '../../../core/admin-api/status.ts'

const NOT_ANSWERS = [null, undefined, 'x', 7, [], {}, { data: null }, { data: [] }, { data: 'x' }]

describe('answers of the admin API', () => {
  test('[ADM-003] a refusal has code and message, and names parameters only where there are any', () => {
    expect(adminErrorBody('not_found', 'no such path')).toEqual({
      error: { code: 'not_found', message: 'no such path' },
    })
    const fields = [{ field: 'step', message: 'must be at least 30 seconds' }]
    expect(parseRefusal(adminErrorBody('bad_request', 'step …', fields))).toEqual({ message: 'step …', fields })
    for (const body of [...NOT_ANSWERS, { error: 'x' }, { error: { message: 1, fields: [{ field: 1 }, null] } }])
      expect(parseRefusal(body)).toEqual({ message: '', fields: [] })
  })

  test('what is no answer is none, and what is wrong inside one is left out', () => {
    for (const body of NOT_ANSWERS) {
      expect(parseSeriesResponse(body)).toBeNull()
      expect(parseServerStatus(body)).toBeNull()
      expect(parseOnline(body)).toBeNull()
    }
    expect(dataOf({ data: { a: 1 } })).toEqual({ a: 1 })
    const series = [
      { labels: { mount: '/', cpu: 0 }, points: [[1, 2], [3], 'x', [4, null], [5, 6]] },
      { labels: {} },
      null,
      { points: [] },
    ]
    const response = parseSeriesResponse({ data: { series, retention_days: 7, later: true } })
    expect(response).toMatchObject({ retention_days: 7, later: true })
    expect(response && seriesOf(response)).toEqual([
      {
        labels: { mount: '/', cpu: '0' },
        points: [
          [1, 2],
          [5, 6],
        ],
      },
      { labels: {}, points: [] },
    ])
    const metrics = { cpu_load1: [{ labels: {}, value: 1, ts_ms: 2 }, { value: 'x' }, null], unknown: [] }
    const status = parseServerStatus({ data: { state: 'down', last_seen: 5, metrics } })
    expect(status).toMatchObject({ state: 'down', last_seen: null })
    expect(status?.metrics.cpu_load1).toEqual([{ labels: {}, value: 1, ts_ms: 2 }])
    expect(status?.metrics).not.toHaveProperty('unknown')
    expect(parseServerStatus({ data: { state: 'asleep' } })).toBeNull()
    expect(parseOnline({ data: { online: 3 } })).toBe(3)
  })

  test('a question about series names the company first and leaves out what is not asked', () => {
    expect(seriesPath('c', 's', { metric: 'cpu_load1', from: '2026-01-01T00:00:00+01:00', to: null, step: '' })).toBe(
      '/servers/s/series?company_id=c&metric=cpu_load1&from=2026-01-01T00%3A00%3A00%2B01%3A00',
    )
  })
})
