// How many alerts opened on each of thirty days: bars, a sentence that says the same, and a table.
import type { OverviewView } from '../../../views/overview.ts'
import { overviewWords } from '../../../words/overview.ts'
import { count, dayOfYear } from '../../format.ts'
import { textsOf } from '../../session.ts'

const t = textsOf(overviewWords)

type Days = OverviewView['standing']['days']

const STEP = 10
const GAP = 2
const HEIGHT = 96
/** A day with a single alert is still seen beside one with a thousand. */
const BAR_MIN = 2

function summaryOf(days: Days): string {
  const opened = days.reduce((sum, day) => sum + day.opened, 0)
  const [most] = days.toSorted((one, other) => other.opened - one.opened)
  if (opened === 0 || most === undefined) return t('days_none')
  return t('days_summary', {
    opened,
    day: dayOfYear(most.day),
    most: most.opened,
    today: days.at(-1)?.opened ?? 0,
  })
}

function Bars({ days }: { readonly days: Days }) {
  const most = Math.max(1, ...days.map(({ opened }) => opened))
  const heightOf = (opened: number): number => (opened === 0 ? 0 : Math.max(BAR_MIN, (opened / most) * HEIGHT))
  return (
    <svg
      class="day-bars"
      role="img"
      aria-label={summaryOf(days)}
      viewBox={`0 0 ${days.length * STEP} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      {days.map(({ day, opened, resolved }, at) => (
        <g key={day}>
          <title>{t('day_text', { day: dayOfYear(day), opened, resolved })}</title>
          <rect class="place" x={at * STEP} y="0" width={STEP} height={HEIGHT} />
          <rect x={at * STEP + GAP / 2} y={HEIGHT - heightOf(opened)} width={STEP - GAP} height={heightOf(opened)} />
        </g>
      ))}
    </svg>
  )
}

const DayTable = ({ days }: { readonly days: Days }) => (
  <details class="day-table">
    <summary>{t('as_table')}</summary>
    <table class="plain-table">
      <thead>
        <tr>
          <th scope="col">{t('day')}</th>
          <th scope="col">{t('opened')}</th>
          <th scope="col">{t('resolved')}</th>
        </tr>
      </thead>
      <tbody>
        {days.toReversed().map(({ day, opened, resolved }) => (
          <tr key={day}>
            <th scope="row">{dayOfYear(day)}</th>
            <td>{count(opened)}</td>
            <td>{count(resolved)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </details>
)

export function AlertDays({ days }: { readonly days: Days }) {
  const [first, last] = [days[0]?.day, days.at(-1)?.day]
  return (
    <section class="panel" aria-labelledby="alert-days">
      <h2 id="alert-days">{t('days')}</h2>
      <p class="muted">{summaryOf(days)}</p>
      <Bars days={days} />
      <p class="day-ends muted" aria-hidden="true">
        <span>{first === undefined ? '' : dayOfYear(first)}</span>
        <span>{last === undefined ? '' : dayOfYear(last)}</span>
      </p>
      <DayTable days={days} />
    </section>
  )
}
