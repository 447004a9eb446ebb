import { expect, test } from 'bun:test'
import { targetLabel } from '../../../core/series/labels.ts'
import { AdmissionReport } from '../../../core/wire/admission-report.ts'
import { normaliseSeries } from '../../../core/wire/normalise-series.ts'

const normal = (name: string, labels: Record<string, string> = {}) => {
  const report = new AdmissionReport()
  const series = normaliseSeries(name, new Map(Object.entries(labels)), report)
  return { series, warnings: report.warnings }
}

test('[ING-027] a name must match ^[a-z][a-z0-9_]{0,63}$', () => {
  for (const name of ['a', 'cpu_load1', `a${'b'.repeat(63)}`, 'x_'])
    expect(normal(name)).toEqual({ series: { key: name, isNoted: false }, warnings: [] })
  for (const name of ['', 'A', '1a', '_a', 'a-b', 'a b', `a${'b'.repeat(64)}`, 'é', 'a\n'])
    expect(normal(name).series).toEqual({ refused: 'invalid_name' })
  expect(normal('Bad').warnings).toEqual(['invalid series: Bad'])
})

test('[ING-028] a label key must match ^[a-z][a-z0-9_]{0,31}$', () => {
  for (const key of ['a', `a${'b'.repeat(31)}`])
    expect(normal('m', { [key]: 'v' }).series).toEqual({ key: `m{${key}="v"}`, isNoted: false })
  for (const key of ['', 'A', '1a', `a${'b'.repeat(32)}`, 'a-b'])
    expect(normal('m', { [key]: 'v' }).series).toEqual({ refused: 'invalid_label' })
  expect(normal('m', { 'Bad Key': 'v' }).warnings).toEqual(['invalid label: Bad Key'])
})

test('[ING-030] the target of a check is cut to a head and a hash: two that agree in 128 bytes stay two series', () => {
  const one = `https://x.example/${'a'.repeat(120)}1`
  const two = `https://x.example/${'a'.repeat(120)}2`
  const key = (name: string, target: string) => {
    const { series } = normal(name, { target })
    return 'key' in series ? series.key : ''
  }
  expect(key('http_up', one)).toBe(`http_up{target="${one.slice(0, 115)}~14b81a430755"}`)
  expect(key('http_up', two)).not.toBe(key('http_up', one))
  expect(normal('http_up', { target: one }).warnings).toEqual(['label value truncated: target'])
  // What the agent has cut is as long as it may be, and stays.
  expect(key('cert_days_left', targetLabel(one))).toBe(`cert_days_left{target="${targetLabel(one)}"}`)
  expect(key('http_up', `${'x'.repeat(114)}é${'y'.repeat(40)}`)).toContain(`"${'x'.repeat(114)}~`)
  // A label of that name on a metric of somebody else's is cut like any other.
  expect(key('of_its_own', one)).toBe(`of_its_own{target="${one.slice(0, 128)}"}`)
})

test('[ING-030] a label value is cut at the last whole character within 128 bytes', () => {
  const f = (value: string, kept: string, isNoted: boolean) =>
    expect(normal('m', { mount: value }).series).toEqual({ key: `m{mount="${kept}"}`, isNoted })
  f('x'.repeat(128), 'x'.repeat(128), false)
  f('x'.repeat(129), 'x'.repeat(128), true)
  f('é'.repeat(64), 'é'.repeat(64), false)
  f(`x${'é'.repeat(64)}`, `x${'é'.repeat(63)}`, true)
  f('😀'.repeat(33), '😀'.repeat(32), true)
  expect(normal('m', { mount: 'x'.repeat(200) }).warnings).toEqual(['label value truncated: mount'])
})

test('[ING-031] reserved labels are removed and said, the series is kept', () => {
  expect(normal('m', { company_id: 'a', server_id: 'b', agent_id: 'c', core: '0' })).toEqual({
    series: { key: 'm{core="0"}', isNoted: true },
    warnings: [
      'reserved label dropped: company_id',
      'reserved label dropped: server_id',
      'reserved label dropped: agent_id',
    ],
  })
})

test('an empty label value equals no label, and more than 32 labels refuse the series', () => {
  expect(normal('m', { core: '' }).series).toEqual({ key: 'm', isNoted: false })
  const labels = (count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`k${'abcdefgh'[index % 8]}${'abcdefgh'[index >> 3]}`, 'v']),
    )
  expect(normal('m', labels(32)).series).toHaveProperty('key')
  expect(normal('m', labels(33))).toEqual({ series: { refused: 'invalid_label' }, warnings: ['invalid series: m'] })
})

test('[ING-027] a name one character over the limit is named whole', () => {
  const name = `a${'b'.repeat(64)}`
  expect(normal(name)).toEqual({ series: { refused: 'invalid_name' }, warnings: [`invalid series: ${name}`] })
})

test('warnings are said once, at most 20 an answer, and without control characters', () => {
  const report = new AdmissionReport()
  for (let index = 0; index < 30; index++) report.warn(`warning ${index % 25}`)
  expect(report.warnings).toHaveLength(20)
  expect(new Set(report.warnings).size).toBe(20)
  expect(normal('a\u0007b\u007f').warnings).toEqual(['invalid series: a?b?'])
  expect(normal('B'.repeat(200)).warnings).toEqual([`invalid series: ${'B'.repeat(128)}…`])
})

test('[ING-020] [ING-025] [ING-034] the summary names the limits and counts points out of the window', () => {
  const report = new AdmissionReport()
  report.drop('too_old', 3)
  report.drop('too_new', 2)
  report.drop('company_series_limit', 1)
  report.drop('series_limit_dropped', 1)
  report.seriesLimit = { inUse: 500, firstDropped: 'm{core="9"}' }
  expect(report.finish(500)).toEqual([
    'series limit reached',
    'series dropped: m{core="9"} and all after it; 500 of 500 in use',
    'company series limit reached',
    'points out of time window: 5',
  ])
  expect(report.loggable()[1]).toBe('series dropped: m{…} and all after it; 500 of 500 in use')
  expect(report.droppedPoints).toBe(7)
})
