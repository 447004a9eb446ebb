// The range of time that charts show: in the address, so that a link opens the same, and Back undoes each step.
import { DEFAULT_FROM, isRelative, rangeOf, type TimeRange } from '../../../address/time-range.ts'
import { param, setParams } from '../../address/router.ts'
import { nowMs } from '../../hub-clock.ts'

const RANGE_MIN_MS = 5 * 60_000
const RANGE_MAX_MS = 400 * 86_400_000

/** The ends as the address has them; the default where it has none. */
export const shownEnds = (): { readonly from: string; readonly to: string } => ({
  from: param('from') || DEFAULT_FROM,
  to: param('to') || 'now',
})

export const shownRange = (): TimeRange => {
  const { from, to } = shownEnds()
  return rangeOf(from, to, nowMs())
}

/** Whether the range moves with the time. */
export const isMoving = (): boolean => isRelative(shownEnds().to)

export const showEnds = (from: string, to: string): void =>
  setParams({ from: from === DEFAULT_FROM && to === 'now' ? null : from, to: to === 'now' ? null : to })

const text = (atMs: number): string => new Date(Math.round(atMs / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')

/** Shows a range between two instants, within what can be asked for. */
export function showRange(fromMs: number, toMs: number): void {
  const [low, high] = [Math.min(fromMs, toMs), Math.max(fromMs, toMs)]
  const lengthMs = Math.min(RANGE_MAX_MS, Math.max(RANGE_MIN_MS, high - low))
  const middleMs = (low + high) / 2
  const endMs = Math.min(nowMs(), middleMs + lengthMs / 2)
  showEnds(text(endMs - lengthMs), text(endMs))
}

/** Half its length earlier (-1) or later (1). */
export function shiftRange(direction: -1 | 1): void {
  const { fromMs, toMs } = shownRange()
  const stepMs = (direction * (toMs - fromMs)) / 2
  showRange(fromMs + stepMs, toMs + stepMs)
}

/** Half as long (0.5) or twice as long (2); a range that ends now still does. */
export function zoomRange(factor: 0.5 | 2): void {
  const { fromMs, toMs } = shownRange()
  const lengthMs = Math.min(RANGE_MAX_MS, Math.max(RANGE_MIN_MS, (toMs - fromMs) * factor))
  const middleMs = (fromMs + toMs) / 2
  if (isMoving()) showEnds(`now-${Math.round(lengthMs / 60_000)}m`, 'now')
  else showRange(middleMs - lengthMs / 2, middleMs + lengthMs / 2)
}

export const resetRange = (): void => showEnds(DEFAULT_FROM, 'now')

/** The address of what is shown with both ends as instants: who opens it later sees the same. */
export function linkToShown(): string {
  const { fromMs, toMs } = shownRange()
  const url = new URL(location.href)
  url.searchParams.set('from', text(fromMs))
  url.searchParams.set('to', text(toMs))
  return url.href.replaceAll('%3A', ':')
}
