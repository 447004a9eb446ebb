// Somebody else has saved the rule while it was edited: both are shown, and one says which holds.
import { ruleEditorWords } from '../../../words/rule-editor.ts'
import { duration, NOTHING, valueText } from '../../format.ts'
import { metricTitle } from '../../metric-title.ts'
import { textsOf } from '../../session.ts'
import { type Draft, differencesOf } from './draft.ts'

const t = textsOf(ruleEditorWords)

/** The fields of the API as the editor calls them. */
const FIELDS = {
  name: 'name',
  kind: 'kind',
  metric: 'metric',
  matchers: 'matchers',
  operator: 'operator',
  threshold: 'threshold',
  for_seconds: 'held_for',
  recover_threshold: 'recover_threshold',
  recover_for_seconds: 'recover_for',
  no_data: 'no_data',
  renotify_seconds: 'remind',
  severity: 'severity',
  scope: 'scope',
} as const

const fieldText = (name: string): string =>
  Object.hasOwn(FIELDS, name) ? t(FIELDS[name as keyof typeof FIELDS]) : name

const SEVERITIES = ['info', 'warning', 'critical'] as const
const NO_DATA = ['ignore', 'alert', 'resolve'] as const

function chosenText(field: string, value: string): string {
  const severity = field === 'severity' ? SEVERITIES.find(each => each === value) : undefined
  if (severity !== undefined) return t(`severity_${severity}`)
  const noData = field === 'no_data' ? NO_DATA.find(each => each === value) : undefined
  return noData === undefined ? value : t(`no_data_${noData}`)
}

function shownValue(field: string, value: unknown, unit: string | null): string {
  if (value === null || value === undefined || value === '') return NOTHING
  if (typeof value === 'number') return field.endsWith('_seconds') ? duration(value * 1000) : valueText(unit, value)
  if (typeof value !== 'string') return JSON.stringify(value)
  return field === 'metric' ? metricTitle(value) : chosenText(field, value)
}

type Props = {
  readonly draft: Draft
  readonly theirs: Draft
  readonly base: number
  readonly version: number
  /** Of the metric; null where they differ in it, or it has none. */
  readonly unit: string | null
  readonly onTakeTheirs: () => void
  readonly onKeepMine: () => void
}

export function Conflict({ draft, theirs, base, version, unit, onTakeTheirs, onKeepMine }: Props) {
  return (
    <section class="banner conflict" role="alert">
      <p>{t('changed_elsewhere', { version: String(version), base: String(base) })}</p>
      <table class="plain-table differences">
        <thead>
          <tr>
            <th scope="col">{t('field')}</th>
            <th scope="col">{t('yours')}</th>
            <th scope="col">{t('theirs')}</th>
          </tr>
        </thead>
        <tbody>
          {differencesOf(draft, theirs).map(({ field, one, other }) => (
            <tr key={field}>
              <th scope="row">{fieldText(field)}</th>
              <td class="text">{shownValue(field, one, unit)}</td>
              <td class="text">{shownValue(field, other, unit)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="toolbar">
        <button type="button" onClick={onTakeTheirs}>
          {t('take_theirs')}
        </button>
        <button type="button" onClick={onKeepMine}>
          {t('keep_mine')}
        </button>
      </div>
    </section>
  )
}
