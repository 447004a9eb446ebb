// A share in percent as a number with a bar; above 80 and 90 the bar says so by its colour. The bar is a background of
// the number: a list has hundreds of them, and each part of one has to be laid out and painted.
import { NOTHING, percent } from '../format.ts'

const [HIGH, FULL] = [80, 90]
const levelOf = (value: number): string => (value >= FULL ? 'full' : value >= HIGH ? 'high' : 'fine')
/** By whole percents, each the same at every drawing: what has not changed is not set again. */
const filled = Array.from(
  { length: 101 },
  (_, share) => (bar: HTMLElement | null) => bar?.style.setProperty('--filled', `${share}%`),
)

export function Meter({ value, title }: { readonly value: number | null; readonly title?: string | undefined }) {
  if (value === null) return <span class="muted">{NOTHING}</span>
  return (
    <span
      class="meter"
      data-level={levelOf(value)}
      title={title}
      ref={filled[Math.min(100, Math.max(0, Math.round(value)))]}
    >
      {percent(value)}
    </span>
  )
}
