// How many digits of a value an agent reports: only those that the reading supports. A share of ticks of 10 ms, or a
// count over an interval, is known to a few digits. Further digits of the division are noise, and would take most of
// the space in the samples store.
import { metricByName, type Unit } from '../series/catalogue.ts'

const DECIMALS: Readonly<Record<Unit, number>> = {
  percent: 2,
  load: 3,
  count: 2,
  bytes: 0,
  'bytes/s': 0,
  'ops/s': 2,
  '1/s': 2,
  s: 6,
  bool: 0,
  code: 0,
  days: 2,
}

/** The value of a metric as it is sent. A metric outside the catalogue keeps every digit. */
export function reportedValue(name: string, value: number): number {
  const unit = metricByName(name)?.unit
  if (unit === undefined || Number.isInteger(value)) return value
  const power = 10 ** DECIMALS[unit]
  const rounded = Math.round(value * power) / power
  return Number.isFinite(rounded) ? rounded : value
}
