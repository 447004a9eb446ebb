// How many alerts opened on each of thirty days: bars, a sentence that says the same, and a table.
import type { OverviewView } from '../../../views/overview.ts'
import { overviewWords } from '../../../words/overview.ts'
import { dayOfYear } from '../../format.ts'
import { DayBars, DayTable } from '../../parts/day-bars.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(overviewWords)

type Days = OverviewView['standing']['days']

const HEIGHT = 96

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

export function AlertDays({ days }: { readonly days: Days }) {
  const names = days.map(({ day }) => day)
  const [first, last] = [names[0], names.at(-1)]
  const opened = { title: t('opened'), counts: days.map(day => day.opened) }
  const resolved = { title: t('resolved'), counts: days.map(day => day.resolved) }
  const dayText = (at: number): string => {
    const of = days[at]
    return of === undefined ? '' : t('day_text', { ...of, day: dayOfYear(of.day) })
  }
  return (
    <section class="panel" aria-labelledby="alert-days">
      <h2 id="alert-days">{t('days')}</h2>
      <p class="muted">{summaryOf(days)}</p>
      <DayBars label={summaryOf(days)} stacks={[opened]} height={HEIGHT} dayText={dayText} />
      <p class="day-ends muted" aria-hidden="true">
        <span>{first === undefined ? '' : dayOfYear(first)}</span>
        <span>{last === undefined ? '' : dayOfYear(last)}</span>
      </p>
      <DayTable summary={t('as_table')} day={t('day')} days={names} columns={[opened, resolved]} />
    </section>
  )
}
