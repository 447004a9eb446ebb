// A share in percent as a number with a bar; above 80 and 90 the bar says so by its colour.
import { NOTHING, percent } from '../format.ts'

const [HIGH, FULL] = [80, 90]
const levelOf = (value: number): string => (value >= FULL ? 'full' : value >= HIGH ? 'high' : 'fine')

export function Meter({ value, title }: { readonly value: number | null; readonly title?: string | undefined }) {
  if (value === null) return <span class="muted">{NOTHING}</span>
  return (
    <span class="meter" data-level={levelOf(value)} title={title}>
      <span>{percent(value)}</span>
      <progress max={100} value={Math.min(100, Math.max(0, value))} aria-hidden="true" />
    </span>
  )
}
