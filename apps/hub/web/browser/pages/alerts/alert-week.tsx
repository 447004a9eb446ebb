// How many alerts opened on each of seven days, by severity: bars, a sentence that says the same, and a table.
import type { AlertsView } from '../../../views/alerts.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { shellWords } from '../../../words/shell.ts'
import { count, dayOfYear } from '../../format.ts'
import { textsOf } from '../../session.ts'
import './alerts.css'

const t = textsOf(alertsWords)
const shell = textsOf(shellWords)

type Week = AlertsView['week']['counts']
type Day = Week[number]

/** From the ground up: the worst stands on it, where bars are compared best. */
const stacked = ['critical', 'warning', 'info'] as const

const STEP = 10
const GAP = 2
const HEIGHT = 40
/** A day with a single alert is still seen beside one with a thousand. */
const BAR_MIN = 3

const openedOn = (day: Day): number => day.critical + day.warning + day.info
const sumOf = (week: Week, of: (day: Day) => number): number => week.reduce((sum, day) => sum + of(day), 0)

function summaryOf(week: Week): string {
  const opened = sumOf(week, openedOn)
  if (opened === 0) return t('week_none')
  return t('week_summary', {
    opened,
    critical: sumOf(week, day => day.critical),
    warning: sumOf(week, day => day.warning),
    info: sumOf(week, day => day.info),
  })
}

type BarProps = { readonly day: Day; readonly at: number; readonly most: number }

function Bar({ day, at, most }: BarProps) {
  let ground = HEIGHT
  return (
    <>
      {stacked.map(severity => {
        if (day[severity] === 0) return null
        const height = Math.max(BAR_MIN, (day[severity] / most) * (HEIGHT - BAR_MIN * stacked.length))
        ground -= height
        return (
          <rect
            key={severity}
            class={severity}
            x={at * STEP + GAP / 2}
            y={ground}
            width={STEP - GAP}
            height={height - 1}
          />
        )
      })}
    </>
  )
}

/** Seven bars on a scale of their own. */
export function WeekBars({ week }: { readonly week: Week }) {
  const most = Math.max(1, ...week.map(openedOn))
  return (
    <svg
      class="week-bars"
      role="img"
      aria-label={summaryOf(week)}
      viewBox={`0 0 ${week.length * STEP} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      <title>{summaryOf(week)}</title>
      {week.map((day, at) => (
        <Bar day={day} at={at} most={most} key={at} />
      ))}
    </svg>
  )
}

const WeekTable = ({ days, counts }: AlertsView['week']) => (
  <table class="plain-table">
    <thead>
      <tr>
        <th scope="col">{t('day')}</th>
        {stacked.map(severity => (
          <th scope="col" key={severity}>
            {shell(`state_${severity}`)}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {days
        .map((day, at) => (
          <tr key={day}>
            <th scope="row">{dayOfYear(day)}</th>
            {stacked.map(severity => (
              <td key={severity}>{count(counts[at]?.[severity] ?? 0)}</td>
            ))}
          </tr>
        ))
        .reverse()}
    </tbody>
  </table>
)

/** Of all alerts of the company, whatever the list is filtered by. */
export const AlertWeek = ({ week }: { readonly week: AlertsView['week'] }) => (
  <section class="panel alert-week" aria-label={t('week')}>
    <WeekBars week={week.counts} />
    <details class="day-table">
      <summary>{summaryOf(week.counts)}</summary>
      <WeekTable {...week} />
    </details>
  </section>
)
