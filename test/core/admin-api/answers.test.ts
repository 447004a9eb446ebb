import { describe, expect, test } from 'bun:test'
import { alertingPath, parseAlerting } from '../../../core/admin-api/alerting.ts'
import { dataOf, faultsHeader, faultsText, messageOfRefusal, parseFaults } from '../../../core/admin-api/envelope.ts'
import {
  metricsPath,
  parseMetricsResponse,
  parseSeriesList,
  parseSeriesResponse,
  seriesListPath,
  seriesOf,
  seriesPath,
} from '../../../core/admin-api/series.ts'
import { parseOnline, parseServerStatus } from '../../../core/admin-api/status.ts'
import {
  companyValuesPath,
  mergeValues,
  packedId,
  packValues,
  parseCompanyValues,
  type ValueColumns,
} from '../../../core/admin-api/values.ts'

const NOT_ANSWERS = [null, undefined, 'x', 7, [], {}, { data: null }, { data: [] }, { data: 'x' }]

describe('answers of the admin API', () => {
  test('the parameters of a refusal travel in a header, whatever they hold; what cannot be read names none', () => {
    const faults = [
      { field: 'step', message: 'must be at least 30 seconds' },
      { field: 'from', message: 'Zeit ≠ "jetzt"\r\n\u0000' },
    ]
    const response = new Response(null, { headers: { [faultsHeader]: faultsText(faults) } })
    expect(parseFaults(response.headers.get(faultsHeader))).toEqual(faults)
    for (const header of [null, '', 'x', '{}', '[null, {"field": 1}]']) expect(parseFaults(header)).toEqual([])
    expect(messageOfRefusal({ error: { code: 'bad_request', message: 'no' } })).toBe('no')
    for (const body of [...NOT_ANSWERS, { error: 'x' }, { error: { message: 1 } }])
      expect(messageOfRefusal(body)).toBe('')
  })

  test('what is no answer is none, and what is wrong inside one is left out', () => {
    for (const body of NOT_ANSWERS) {
      expect(parseSeriesResponse(body)).toBeNull()
      expect(parseServerStatus(body)).toBeNull()
      expect(parseOnline(body)).toBeNull()
      expect(parseCompanyValues(body)).toBeNull()
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

  test('several metrics are one parameter; all of them are none', () => {
    expect(metricsPath('c', 's', ['cpu_load1', 'uptime_seconds'], { agg: 'max' })).toBe(
      '/servers/s/series/by-metric?company_id=c&agg=max&metrics=cpu_load1%2Cuptime_seconds',
    )
    expect(metricsPath('c', 's', null, {})).toBe('/servers/s/series/by-metric?company_id=c')
    expect([seriesListPath('c', 's'), alertingPath('c', 's')]).toEqual([
      '/servers/s/metrics?company_id=c',
      '/servers/s/alerting?company_id=c',
    ])
  })

  test('answers about several metrics, lists of series and decisions: odd items are left out, odd answers are null', () => {
    const range = { from: '2026-01-01T00:00:00.000Z', to: '2026-01-01T01:00:00.000Z', step_seconds: 30 }
    const series = [
      {
        labels: { mount: '/' },
        points: [
          [1, 2],
          ['x', 3],
        ],
      },
      'odd',
    ]
    expect(
      parseMetricsResponse({
        data: { ...range, retention_days: 7, metrics: [{ metric: 'disk_used_percent', series }, 5, { metric: 'x' }] },
      }),
    ).toEqual({
      ...range,
      retention_days: 7,
      metrics: [{ metric: 'disk_used_percent', series: [{ labels: { mount: '/' }, points: [[1, 2]] }] }],
      left_out: [],
    })
    expect(parseMetricsResponse({ data: { metrics: [] } })).toBeNull()
    expect(parseSeriesList({ data: { metrics: [{ metric: 'm', labels: [{ a: 1 }] }, null], truncated: 1 } })).toEqual({
      metrics: [{ metric: 'm', labels: [{ a: '1' }] }],
      truncated: false,
    })
    expect(parseSeriesList({ data: {} })).toBeNull()
    const decided = { rule_id: 'r', series_key: 'cpu_load1', state: 'firing' as const, decision: 'open: 5 > 4 holds' }
    expect(
      parseAlerting({ data: { series: [decided, { ...decided, state: 'odd' }], rules: [{ rule_id: 'q' }, 7] } }),
    ).toEqual({
      series: [
        {
          ...decided,
          rule_name: '',
          since: null,
          last_value: null,
          last_sample_at: null,
          flapping: false,
          no_data: false,
          suppressed_by: null,
        },
      ],
      rules: [],
    })
    expect(parseAlerting({ data: [] })).toBeNull()
  })
})

describe('one metric of a whole company', () => {
  const idOf = (end: string) => `00000000-0000-4000-8000-0000000000${end}`
  const [a, b, c] = [idOf('0a'), idOf('0b'), idOf('0c')]
  const columns: ValueColumns = {
    server_ids: [a, b],
    values: [1, 2],
    ts_ms: [10, 20],
    labels: [{}, { mount: '/' }],
  }

  test('ids are packed as one text, and labels that are alike stand once', () => {
    const labels: ValueColumns['labels'] = [{ mount: '/' }, {}, { mount: '/' }]
    const packed = packValues({ server_ids: [a, b, c], values: [1, 2, 3], ts_ms: [1, 2, 3], labels })
    expect([0, 1, 2].map(place => packedId(packed.ids, place))).toEqual([a, b, c])
    expect([packed.ids.length, packed.label_sets, packed.label_at]).toEqual([96, [{ mount: '/' }, {}], [0, 1, 0]])
    expect(parseCompanyValues({ data: { ...packed, more: 1 } })).toEqual({ ...packed, truncated: false })
  })

  test('columns of unequal length, or with a member that is none, are no answer', () => {
    expect(companyValuesPath('c', 'cpu load')).toBe('/companies/c/values?metric=cpu+load&packed=1')
    const packed = packValues(columns)
    expect(parseCompanyValues({ data: { ...columns, more: 1 } })).toEqual({ ...packed, truncated: false })
    expect(parseCompanyValues({ data: { ...packed, truncated: true } })?.truncated).toBe(true)
    const odd = [
      { values: [1] },
      { values: [1, '2'] },
      { ts_ms: [1, null] },
      { labels: [{}, 'x'] },
      { server_ids: [1, 2] },
    ]
    for (const members of odd) expect(parseCompanyValues({ data: { ...columns, ...members } })).toBeNull()
    const oddPacked = [
      { ids: packed.ids.slice(1) },
      { ids: packed.ids.replace('a', 'x') },
      { values: [1] },
      { ts_ms: [1, null] },
      { label_sets: [{}, 'x'] },
      { label_at: [0, 2] },
      { label_at: [0, 0.5] },
      { label_at: [0] },
    ]
    for (const members of oddPacked) expect(parseCompanyValues({ data: { ...packed, ...members } })).toBeNull()
  })

  test('of a server that two collectors know the newer value counts', () => {
    const other: ValueColumns = { server_ids: [b, c], values: [3, 4], ts_ms: [19, 30], labels: [{}, {}] }
    const merged: ValueColumns = {
      server_ids: [a, b, c],
      values: [1, 2, 4],
      ts_ms: [10, 20, 30],
      labels: [{}, { mount: '/' }, {}],
    }
    expect(mergeValues([columns, other].map(packValues))).toEqual(packValues(merged))
    expect(mergeValues([])).toEqual({ ids: '', values: [], ts_ms: [], label_sets: [], label_at: [] })
  })
})
