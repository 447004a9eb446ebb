// The windows of silences that recur, through changes of the clock.
import { expect, test } from 'bun:test'
import { currentWindow, type Recurrence, silenceWindows } from '../../../core/lifecycle/silence-windows.ts'

const daily: Recurrence = { frequency: 'daily', weekdays: [], until: null, time_zone: 'Europe/Berlin' }
const firstOf = (from: string, to: string) => ({ startsAtMs: Date.parse(from), endsAtMs: Date.parse(to) })

/** Windows as `MM-DDTHH:MM/HH:MM`, in UTC. */
function windows(first: [string, string], recurrence: Recurrence | null, from: string, to: string): string[] {
  const found = silenceWindows(firstOf(...first), recurrence, Date.parse(from), Date.parse(to))
  const text = (atMs: number) => new Date(atMs).toISOString()
  return found.map(each => `${text(each.startsAtMs).slice(5, 16)}/${text(each.endsAtMs).slice(11, 16)}`)
}

test('[G-179] windows begin and end at the same local time when the clock goes forward, and back', () => {
  const night: [string, string] = ['2026-03-27T21:00:00Z', '2026-03-28T03:00:00Z']
  expect(windows(night, daily, '2026-03-27T00:00:00Z', '2026-03-31T00:00:00Z')).toEqual([
    '03-27T21:00/03:00', '03-28T21:00/02:00', '03-29T20:00/02:00', '03-30T20:00/02:00',
  ]) // biome-ignore format: one a day
  const autumn: [string, string] = ['2026-10-23T20:00:00Z', '2026-10-24T02:00:00Z']
  expect(windows(autumn, daily, '2026-10-23T00:00:00Z', '2026-10-26T23:00:00Z')).toEqual([
    '10-23T20:00/02:00', '10-24T20:00/03:00', '10-25T21:00/03:00', '10-26T21:00/03:00',
  ]) // biome-ignore format: one a day
})

test('[G-179] a time that the clock leaves out is later by as much; of two the first counts', () => {
  const skipped: [string, string] = ['2026-03-28T01:15:00Z', '2026-03-28T01:45:00Z']
  expect(windows(skipped, daily, '2026-03-29T00:00:00Z', '2026-03-30T00:00:00Z')).toEqual(['03-29T01:15/01:45'])
  const across: [string, string] = ['2026-03-28T01:45:00Z', '2026-03-28T02:10:00Z']
  expect(windows(across, daily, '2026-03-29T00:00:00Z', '2026-03-30T00:00:00Z')).toEqual(['03-29T01:45/02:10'])
  const twice: [string, string] = ['2026-10-24T00:30:00Z', '2026-10-24T00:45:00Z']
  expect(windows(twice, daily, '2026-10-25T00:00:00Z', '2026-10-26T00:00:00Z')).toEqual(['10-25T00:30/00:45'])
})

test('[G-179] weekdays are those of the zone; weekly without any repeats the first window’s; the first one counts always', () => {
  // 23:30 UTC on Sunday is Monday in Auckland.
  const first: [string, string] = ['2026-11-22T23:30:00Z', '2026-11-23T00:30:00Z']
  const of = (recurrence: Partial<Recurrence>) =>
    windows(
      first,
      { ...daily, time_zone: 'Pacific/Auckland', ...recurrence },
      '2026-11-22T00:00:00Z',
      '2026-12-02T00:00:00Z',
    ).map(text => text.slice(0, 5))
  expect(of({ frequency: 'weekly' })).toEqual(['11-22', '11-29'])
  expect(of({ frequency: 'weekly', weekdays: [3, 5] })).toEqual(['11-22', '11-24', '11-26', '12-01'])
  expect(of({ weekdays: [6, 7] })).toEqual(['11-22', '11-27', '11-28'])
  expect(of({ until: '2026-11-24T23:30:00Z' })).toEqual(['11-22', '11-23'])
})

test('[G-179] the window that holds, else the next one; none when the recurrence is over', () => {
  const first = firstOf('2026-01-05T08:00:00Z', '2026-01-05T10:00:00Z')
  const weekly: Recurrence = { ...daily, frequency: 'weekly', until: '2027-01-01T00:00:00Z', time_zone: 'UTC' }
  const at = (now: string, recurrence: Recurrence | null = weekly) => {
    const window = currentWindow(first, recurrence, Date.parse(now))
    return window && new Date(window.startsAtMs).toISOString().slice(0, 16)
  }
  expect(at('2026-01-01T00:00:00Z')).toBe('2026-01-05T08:00')
  expect(at('2026-11-23T09:59:59Z')).toBe('2026-11-23T08:00')
  expect(at('2026-11-23T10:00:00Z')).toBe('2026-11-30T08:00')
  expect(at('2026-12-28T10:00:00Z')).toBe(null)
  expect(at('2026-01-05T10:00:00Z', null)).toBe(null)
})
