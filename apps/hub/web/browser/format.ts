// Numbers and times as people of the page's language read them.
import { signal } from '@preact/signals'
import { localeOf } from '../words/words.ts'
import { nowMs } from './hub-clock.ts'
import { language } from './session.ts'

const locale = localeOf(language)
const number = (digits: number) =>
  new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits })
const [whole, tenths, hundredths] = [number(0), number(1), number(2)]
const short = new Intl.NumberFormat(locale, { maximumSignificantDigits: 3 })

/** What stands where a value is not known. */
export const NOTHING = '–'

export const percent = (value: number | null): string => (value === null ? NOTHING : `${whole.format(value)} %`)
export const decimal = (value: number | null): string => (value === null ? NOTHING : hundredths.format(value))
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

/** A value with its unit, as the catalogue of metrics names units; null: the unit is not known. */
export function valueText(unit: string | null, value: number | null): string {
  if (value === null) return NOTHING
  switch (unit) {
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

const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]
const stepOf = (seconds: number): readonly [Intl.RelativeTimeFormatUnit, number] =>
  STEPS.find(step => seconds >= step[1]) ?? ['second', 1]

const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'always', style: 'narrow' })

/** `3m ago`; of what lies ahead `in 3m`. */
export function ago(atMs: number, nowMs: number): string {
  const seconds = Math.round((nowMs - atMs) / 1000)
  const [unit, length] = stepOf(Math.abs(seconds))
  const steps = Math.floor(Math.abs(seconds) / length)
  return relative.format(seconds < 0 ? steps : -steps, unit)
}

const lengths = new Map<string, Intl.NumberFormat>()
function lengthText(steps: number, unit: string): string {
  let format = lengths.get(unit)
  if (format === undefined) {
    format = new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'narrow' })
    lengths.set(unit, format)
  }
  return format.format(steps)
}

/** `2 h 5 min`: the two greatest units of a length of time. */
export function duration(ms: number): string {
  let seconds = Math.max(0, Math.round(ms / 1000))
  const parts: string[] = []
  for (const [unit, length] of STEPS) {
    const steps = Math.floor(seconds / length)
    seconds -= steps * length
    if (steps > 0 && parts.length < 2) parts.push(lengthText(steps, unit))
    else if (parts.length > 0) break
  }
  return parts.join(' ') || lengthText(0, 'second')
}

const stored = (name: string): string | null => {
  try {
    return localStorage.getItem(name)
  } catch {
    return null
  }
}

/** Whether times are shown in UTC and not in the zone of the browser. */
export const isUtc = signal(stored('times') === 'utc')

const clock = { hour: '2-digit', minute: '2-digit' } as const
const day = { day: 'numeric', month: 'short' } as const
const formats = {
  day,
  dayAndClock: { ...day, ...clock },
  dated: { year: 'numeric', ...day, ...clock },
  full: { year: 'numeric', ...day, ...clock, second: '2-digit', timeZoneName: 'short' },
} as const satisfies Readonly<Record<string, Intl.DateTimeFormatOptions>>

/** Each is made when it is first needed: a dozen at once would hold up every page. */
const made = new Map<string, Intl.DateTimeFormat>()
function dateText(name: keyof typeof formats, inUtc: boolean, atMs: number): string {
  const key = `${name} ${inUtc}`
  let format = made.get(key)
  if (format === undefined) {
    const zone = inUtc ? { timeZone: 'UTC' } : {}
    format = new Intl.DateTimeFormat(locale, { hourCycle: 'h23', ...zone, ...formats[name] })
    made.set(key, format)
  }
  return format.format(atMs)
}

const twoDigits = (value: number): string => (value < 10 ? `0${value}` : `${value}`)

/** `08:05`, the same in both languages; charts ask for hundreds of them. */
export function clockTime(atMs: number): string {
  const date = new Date(atMs)
  const [hours, minutes] = isUtc.value
    ? [date.getUTCHours(), date.getUTCMinutes()]
    : [date.getHours(), date.getMinutes()]
  return `${twoDigits(hours)}:${twoDigits(minutes)}`
}
export const clockSeconds = (atMs: number): string => `${clockTime(atMs)}:${twoDigits(new Date(atMs).getUTCSeconds())}`
export const dayText = (atMs: number): string => dateText('day', isUtc.value, atMs)
const yearOf = (atMs: number): number => (isUtc.value ? new Date(atMs).getUTCFullYear() : new Date(atMs).getFullYear())
/** With its year where that is another than this one. */
export const dayAndClock = (atMs: number): string =>
  dateText(yearOf(atMs) === yearOf(nowMs()) ? 'dayAndClock' : 'dated', isUtc.value, atMs)
/** A day as the hub names it, `2026-11-22`: of UTC, whatever zone times are shown in. */
export const dayOfYear = (day: string): string => dateText('day', true, Date.parse(`${day}T00:00:00Z`))
/** The whole time with its zone, and the same in the other one: what a tooltip says. */
export function fullTime(atMs: number): string {
  const [own, other] = [dateText('full', isUtc.value, atMs), dateText('full', !isUtc.value, atMs)]
  return own === other ? own : `${own} · ${other}`
}

/** A day of the week, 1 for Monday to 7 for Sunday. */
export const weekdayText = (day: number): string =>
  new Intl.DateTimeFormat(locale, { weekday: 'short', timeZone: 'UTC' }).format(Date.UTC(2024, 0, day))

/** The zone in which times are shown and typed, as `GMT+7` or `UTC`: as it is now. */
export const shownZone = (): string =>
  new Intl.DateTimeFormat(locale, { timeZoneName: 'short', ...(isUtc.value ? { timeZone: 'UTC' } : {}) })
    .formatToParts(nowMs())
    .find(({ type }) => type === 'timeZoneName')?.value ?? ''

/** What a field for a local time takes, in the zone that times are shown in, and what was typed into one. */
export function fieldText(atMs: number): string {
  const date = new Date(atMs)
  const shiftMs = isUtc.value ? 0 : date.getTimezoneOffset() * 60_000
  return new Date(atMs - shiftMs).toISOString().slice(0, 16)
}
export const instantOfField = (text: string): number => Date.parse(isUtc.value ? `${text}Z` : text)

/** The time of day; with the day when that is not today. */
export function whenText(atMs: number, toMs: number): string {
  const isToday = dayText(atMs) === dayText(toMs) && yearOf(atMs) === yearOf(toMs)
  return isToday ? clockTime(atMs) : dayAndClock(atMs)
}
