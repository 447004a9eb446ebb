// What a collector decides, as pages show it: nothing is said to be well of which nothing is known.
import { expect, test } from 'bun:test'
import { decisionOfSeries } from '../../apps/hub/web/views/decision.ts'

const series = {
  ...({ rule_id: 'r', rule_name: 'High CPU', series_key: 'cpu_usage_percent', state: 'ok', since: null } as const),
  ...{
    last_sample_at: null,
    flapping: false,
    no_data: false,
    suppressed_by: null,
    decision: 'no sample evaluated yet',
  },
}

test('a series of which no value was judged yet is not well', () => {
  expect(decisionOfSeries({ ...series, last_value: null }).state).toBe('unjudged')
  expect(decisionOfSeries({ ...series, last_value: 3 }).state).toBe('ok')
  expect(decisionOfSeries({ ...series, state: 'firing', last_value: null }).state).toBe('firing')
})
