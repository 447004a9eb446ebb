// How many alerts opened on each of seven days, by severity: bars, a sentence that says the same, and a table.
import type { AlertsView } from '../../../views/alerts.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { shellWords } from '../../../words/shell.ts'
import { DayBars, type DayCount, DayTable } from '../../parts/day-bars.tsx'
import { textsOf } from '../../session.ts'
import './alerts.css'

const t = textsOf(alertsWords)
const shell = textsOf(shellWords)

type Week = AlertsView['week']['counts']

/** The worst stands on the ground, where bars are compared best. */
const stacked = ['critical', 'warning', 'info'] as const
const HEIGHT = 40

function summaryOf(week: Week): string {
  const of = (severity: (typeof stacked)[number]): number => week.reduce((sum, day) => sum + day[severity], 0)
  const counts = { critical: of('critical'), warning: of('warning'), info: of('info') }
  const opened = counts.critical + counts.warning + counts.info
  return opened === 0 ? t('week_none') : t('week_summary', { opened, ...counts })
}

const stacksOf = (week: Week): readonly DayCount[] =>
  stacked.map(severity => ({
    title: shell(`state_${severity}`),
    counts: week.map(day => day[severity]),
    bar: severity,
  }))

export const WeekBars = ({ week }: { readonly week: Week }) => (
  <span class="week-bars">
    <DayBars label={summaryOf(week)} stacks={stacksOf(week)} height={HEIGHT} />
  </span>
)

/** Of all alerts of the company, whatever the list is filtered by. */
export const AlertWeek = ({ week: { days, counts } }: { readonly week: AlertsView['week'] }) => (
  <section class="panel alert-week" aria-label={t('week')}>
    <WeekBars week={counts} />
    <DayTable summary={summaryOf(counts)} day={t('day')} days={days} columns={stacksOf(counts)} />
  </section>
)
