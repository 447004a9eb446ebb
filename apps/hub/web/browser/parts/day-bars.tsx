// What was counted on some days: bars, stacked where there are several counts, and a table that says the same. Which
// colour a stack has is a class of the style beside the page.
import { count, dayOfYear } from '../format.ts'
import './day-bars.css'

/** The counts of each day, the oldest first. */
export type DayCount = {
  readonly title: string
  readonly counts: readonly number[]
  /** The class of its bars; missing: it stands in the table only. */
  readonly bar?: string
}

const STEP = 10
const GAP = 2

type BarsProps = {
  /** Says what the bars say. */
  readonly label: string
  /** From the ground up: what stands on it is compared best. */
  readonly stacks: readonly DayCount[]
  readonly height: number
  /** What a day says when it is pointed at; missing: what all of them say. */
  readonly dayText?: (at: number) => string
}

/** A day with a single alert is still seen beside one with a thousand. */
const BAR_MIN = 3

function Bar({ stacks, at, most, height }: Omit<BarsProps, 'label'> & { readonly at: number; readonly most: number }) {
  let ground = height
  return (
    <>
      {stacks.map(({ title, counts, bar }) => {
        const value = counts[at] ?? 0
        if (value === 0) return null
        const barHeight = Math.max(BAR_MIN, (value / most) * (height - BAR_MIN * (stacks.length - 1)))
        ground -= barHeight
        const gap = stacks.length > 1 ? 1 : 0
        return (
          <rect
            key={title}
            class={bar}
            x={at * STEP + GAP / 2}
            y={Math.max(0, ground)}
            width={STEP - GAP}
            height={barHeight - gap}
          />
        )
      })}
    </>
  )
}

/** Bars on a scale of their own. */
export function DayBars({ label, stacks, height, dayText }: BarsProps) {
  const days = stacks[0]?.counts ?? []
  const sums = days.map((_, at) => stacks.reduce((sum, { counts }) => sum + (counts[at] ?? 0), 0))
  const most = Math.max(1, ...sums)
  return (
    <svg
      class="day-bars"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${days.length * STEP} ${height}`}
      preserveAspectRatio="none"
    >
      {dayText === undefined ? <title>{label}</title> : null}
      {days.map((_, at) => (
        <g key={at}>
          {dayText === undefined ? null : <title>{dayText(at)}</title>}
          <rect class="place" x={at * STEP} y="0" width={STEP} height={height} />
          <Bar stacks={stacks} at={at} most={most} height={height} />
        </g>
      ))}
    </svg>
  )
}

type TableProps = {
  readonly summary: string
  /** The head of the days. */
  readonly day: string
  /** Days of UTC as `2026-11-22`. */
  readonly days: readonly string[]
  readonly columns: readonly DayCount[]
}

/** The newest day first. */
export const DayTable = ({ summary, day, days, columns }: TableProps) => (
  <details class="day-table">
    <summary>{summary}</summary>
    <table class="plain-table">
      <thead>
        <tr>
          <th scope="col">{day}</th>
          {columns.map(({ title }) => (
            <th scope="col" key={title}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {days
          .map((name, at) => (
            <tr key={name}>
              <th scope="row">{dayOfYear(name)}</th>
              {columns.map(({ title, counts }) => (
                <td key={title}>{count(counts[at] ?? 0)}</td>
              ))}
            </tr>
          ))
          .reverse()}
      </tbody>
    </table>
  </details>
)
