// Numbers and times as people of the page's language read them.
import { metricByName } from '../../../../core/series/catalogue.ts'
import { language } from './page.ts'

const number = (digits: number) =>
  new Intl.NumberFormat(language, { minimumFractionDigits: digits, maximumFractionDigits: digits })
const [whole, tenths, hundredths] = [number(0), number(1), number(2)]
const short = new Intl.NumberFormat(language, { maximumSignificantDigits: 3 })

export const percent = (value: number | null): string => (value === null ? '–' : `${whole.format(value)} %`)
export const load = (value: number | null): string => (value === null ? '–' : hundredths.format(value))
export const count = (value: number): string => whole.format(value)

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

function bytes(value: number): string {
  let rest = value
  let unit = 0
  while (Math.abs(rest) >= 1024 && unit < BYTE_UNITS.length - 1) {
    rest /= 1024
    unit++
  }
  return `${unit === 0 ? whole.format(rest) : tenths.format(rest)} ${BYTE_UNITS[unit]}`
}

/** A value of a metric with its unit. */
export function valueText(metric: string | null, value: number): string {
  switch (metric === null ? undefined : metricByName(metric)?.unit) {
    case 'percent':
      return `${tenths.format(value)} %`
    case 'bytes':
      return bytes(value)
    case 'bytes/s':
      return `${bytes(value)}/s`
    case 's':
      return `${short.format(value)} s`
    case 'ops/s':
    case '1/s':
      return `${short.format(value)}/s`
    case 'days':
      return `${short.format(value)} d`
    default:
      return short.format(value)
  }
}

const relative = new Intl.RelativeTimeFormat(language, { numeric: 'always', style: 'narrow' })
const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

/** `3m ago` */
export function ago(atMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000))
  const [unit, length] = STEPS.find(step => seconds >= step[1]) ?? ['second', 1]
  return relative.format(-Math.floor(seconds / length), unit)
}

const clock = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit', hour12: false })
const dayAndClock = new Intl.DateTimeFormat(language, {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hour12: false,
})
const full = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' })

export const clockTime = (atMs: number): string => clock.format(atMs)
export const fullTime = (atMs: number): string => full.format(atMs)

/** The time of day; with the day when that is not today. */
export function sinceTime(atMs: number, nowMs: number): string {
  const isToday = new Date(atMs).toDateString() === new Date(nowMs).toDateString()
  return isToday ? clock.format(atMs) : dayAndClock.format(atMs)
}
