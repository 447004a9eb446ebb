// A line without axes, for a row of a list: how a value went, beside what it is. Gaps are gaps.
import './sparkline.css'

const STEP = 4
const HEIGHT = 24

type Props = {
  /** Evenly apart, the oldest first; null where there is none. */
  readonly values: readonly (number | null)[]
  /** The value at the upper edge. */
  readonly max: number
  /** Says what the line says. */
  readonly label: string
}

/** `M0,12L4,11M12,3L16,2`: a line for each run of values; one alone is a dash. */
function pathOf(values: readonly (number | null)[], max: number): string {
  const yOf = (value: number): number => Math.round((1 - Math.min(1, value / max)) * (HEIGHT - 2) * 10) / 10 + 1
  return values
    .map((value, at) => {
      if (value === null) return ''
      const isFirst = values[at - 1] == null
      const isAlone = isFirst && values[at + 1] == null
      return `${isFirst ? 'M' : 'L'}${at * STEP},${yOf(value)}${isAlone ? `h${STEP / 2}` : ''}`
    })
    .join('')
}

export const Sparkline = ({ values, max, label }: Props) => (
  <svg
    class="sparkline"
    role="img"
    aria-label={label}
    viewBox={`0 0 ${Math.max(1, values.length - 1) * STEP} ${HEIGHT}`}
    preserveAspectRatio="none"
  >
    <title>{label}</title>
    <path d={pathOf(values, max)} />
  </svg>
)
