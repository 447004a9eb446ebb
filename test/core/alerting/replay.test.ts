import { describe, expect, test } from 'bun:test'
import { firingsOf, replayRule } from '../../../core/alerting/evaluate/backtest.ts'
import type { RawRule } from '../../../core/alerting/rules/rule.ts'

const START_MS = Date.parse('2026-03-01T00:00:00Z')
const STEP_MS = 30_000
const SERVER = '11111111-1111-4111-8111-111111111111'

const rule = (more: Partial<RawRule> = {}): RawRule => ({
  id: '22222222-2222-4222-8222-222222222222',
  version: 1,
  sync_version: 0,
  company_id: '33333333-3333-4333-8333-333333333333',
  name: 'draft',
  kind: 'threshold',
  scope: { all: false, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] },
  resolved_server_ids: [],
  metric: 'disk_used_percent',
  matchers: {},
  operator: '>',
  threshold: 90,
  for_seconds: 60,
  recover_threshold: null,
  recover_for_seconds: 0,
  severity: 'warning',
  no_data: 'ignore',
  renotify_seconds: 60,
  enabled: false,
  deleted: false,
  ...more,
})

/** One value a step from the start; null is a gap. */
const points = (values: readonly (number | null)[]): [number, number][] =>
  values.flatMap((value, step): [number, number][] => (value === null ? [] : [[START_MS + step * STEP_MS, value]]))

/** Spans as steps from the start: `mount 2-5 recovered`. */
const spans = (more: Partial<RawRule>, series: Readonly<Record<string, readonly (number | null)[]>>): string[] => {
  const steps = Math.max(...Object.values(series).map(values => values.length))
  const events = replayRule({
    rule: rule(more),
    serverId: SERVER,
    series: Object.entries(series).map(([mount, values]) => ({ labels: { mount }, points: points(values) })),
    stepMs: STEP_MS,
    toMs: START_MS + steps * STEP_MS,
  })
  const step = (atMs: number | null) => (atMs === null ? 'now' : Math.round((atMs - START_MS) / STEP_MS))
  return firingsOf(events).map(
    ({ seriesKey, openedAtMs, resolvedAtMs, reason, peakValue }) =>
      `${/"(.*)"/.exec(seriesKey)?.[1]} ${step(openedAtMs)}-${step(resolvedAtMs)} ${reason} ${peakValue}`,
  )
}

describe('a rule over stored samples', () => {
  test('[HRL-003] fires once a violation held for for_seconds, and until it recovers, series by series', () => {
    expect(spans({}, { '/': [50, 95, 95, 97, 96, 50, 50], '/data': [95, 50, 95, 50, 95, 50, 50] })).toEqual([
      '/ 3-5 recovered 97',
    ])
  })
  test('recover_threshold and recover_for_seconds hold an alert open', () => {
    expect(
      spans({ recover_threshold: 80, recover_for_seconds: 60 }, { '/': [95, 95, 95, 85, 70, 70, 70, 70] }),
    ).toEqual(['/ 2-6 recovered 95'])
  })
  test('what still fires at the end has no end', () => {
    expect(spans({ for_seconds: 0 }, { '/': [50, 95, 96] })).toEqual(['/ 1-now null null'])
  })
  test('a gap longer than no_data_after starts the count again', () => {
    const gap = Array.from({ length: 15 }, () => null)
    expect(spans({ for_seconds: 90 }, { '/': [95, 95, ...gap, 95, 95, 95, 95, 50] })).toEqual(['/ 20-21 recovered 95'])
  })
  test('a series that ends while the server reports is a no-data alert, where the rule wants one', () => {
    const quiet = Array.from({ length: 30 }, () => 10)
    expect(spans({ no_data: 'alert' }, { '/': quiet, '/data': [10, 10] })).toEqual([
      expect.stringMatching(/^\/data 1\d-now /),
    ])
    expect(spans({ no_data: 'ignore' }, { '/': quiet, '/data': [10, 10] })).toEqual([])
  })
  test("matchers and scope are the caller's: whatever series it gives is judged", () => {
    expect(spans({ matchers: { mount: '/other' }, for_seconds: 0 }, { '/data': [95, 50] })).toEqual([
      '/data 0-1 recovered 95',
    ])
  })
  test('a lone series that ends has no data while its server is heard, and nothing is told while it is not', () => {
    const heard = (count: number) => Array.from({ length: count }, (_, step) => START_MS + step * STEP_MS)
    const opened = (heardAtMs: readonly number[]) =>
      replayRule({
        rule: rule({ no_data: 'alert' }),
        serverId: SERVER,
        series: [{ labels: { mount: '/' }, points: points([10, 10]) }],
        heardAtMs,
        stepMs: STEP_MS,
        toMs: START_MS + 30 * STEP_MS,
      }).map(event => event.type)
    expect(opened(heard(30))).toEqual(['alert.opened'])
    expect(opened(heard(2))).toEqual([])
  })
  test('without samples nothing fires', () => {
    expect(spans({}, { '/': [] })).toEqual([])
  })
})
