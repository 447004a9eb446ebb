import { expect, test } from 'bun:test'
import { reportedValue } from '../../core/agent/reported-value.ts'
import { metrics } from '../../core/series/catalogue.ts'

test('a value is reported with the digits that its reading supports', () => {
  const f = (name: string, value: number, expected: number): void => expect(reportedValue(name, value)).toBe(expected)
  f('cpu_usage_percent', 12.376237623762377, 12.38)
  f('cpu_load1', 2.73, 2.73)
  f('load_per_core_5m', 0.8333333333333334, 0.833)
  f('disk_read_bytes_per_second', 140144.68350995908, 140145)
  f('disk_reads_per_second', 31.282295426330155, 31.28)
  f('disk_io_await_seconds', 0.0025714285714285717, 0.002571)
  f('uptime_seconds', 11713.59, 11713.59)
  f('mem_total_bytes', 25276514304, 25276514304)
  f('own_metric', 1 / 3, 1 / 3)
  for (const { name } of metrics) {
    f(name, 0, 0)
    f(name, 1, 1)
    f(name, 100, 100)
  }
})
