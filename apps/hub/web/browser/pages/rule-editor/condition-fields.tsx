// The fields of a condition: metric, labels, operator, threshold, times, recovery, no data.
import type { EditedMetric, RuleEditorView } from '../../../views/rule-editor.ts'
import type { RulePreviewView } from '../../../views/rule-preview.ts'
import { ruleEditorWords } from '../../../words/rule-editor.ts'
import { metricTitle } from '../../metric-title.ts'
import { Field, SelectField, TextField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'
import type { Draft, DraftMatcher } from './draft.ts'

const t = textsOf(ruleEditorWords)

/** `CPU usage · cpu_usage_percent` */
const metricChoice = (name: string): string => [...new Set([metricTitle(name), name])].join(' · ')

/** As values are written beside charts. */
const unitText = (unit: string): string => (unit === 'percent' ? '%' : unit)

const OPERATORS = ['>', '>=', '<', '<=', '==', '!='] as const
const NO_DATA = ['ignore', 'alert', 'resolve'] as const
const HOWS = ['equals', 'list', 'regex'] as const
const VALUES_MAX = 50

export type FieldProps = {
  readonly draft: Draft
  readonly change: (changes: Partial<Draft>) => void
  /** What is wrong, by the field's name in the API. */
  readonly errorsOf: (field: string) => readonly string[]
}

const oneOf = <T extends string>(known: readonly T[], text: string): T | undefined => known.find(each => each === text)

type MatcherProps = FieldProps & { readonly label: string; readonly values: readonly string[] }

function MatcherField({ draft, change, errorsOf, label, values }: MatcherProps) {
  const matcher = draft.matchers[label]
  const put = (next: DraftMatcher | null): void => {
    const { [label]: _before, ...others } = draft.matchers
    change({ matchers: next === null ? others : { ...others, [label]: next } })
  }
  const errors = errorsOf(`matchers.${label}`)
  const listId = `values-${label}`
  return (
    <div class="matcher">
      <span class="mono">{label}</span>
      <select
        aria-label={t('matcher_how', { label })}
        value={matcher?.how ?? ''}
        onChange={event => {
          const how = oneOf(HOWS, event.currentTarget.value)
          put(how === undefined ? null : { how, value: matcher?.value ?? '' })
        }}
      >
        <option value="">{t('how_any')}</option>
        {HOWS.map(how => (
          <option value={how} key={how}>
            {t(`how_${how}`)}
          </option>
        ))}
      </select>
      {matcher === undefined ? null : (
        <input
          type="text"
          class="mono"
          aria-label={t('matcher_value', { label })}
          aria-invalid={errors.length > 0}
          title={matcher.how === 'list' ? t('list_hint') : undefined}
          list={listId}
          value={matcher.value}
          onInput={event => put({ ...matcher, value: event.currentTarget.value })}
        />
      )}
      <datalist id={listId}>
        {values.map(value => (
          <option value={value} key={value} />
        ))}
      </datalist>
      {errors.map(error => (
        <p class="fault" key={error}>
          {error}
        </p>
      ))}
    </div>
  )
}

/** The values that a label has on the servers that were looked at. */
const valuesOf = (preview: RulePreviewView | null, label: string): string[] =>
  [...new Set((preview?.labels ?? []).map(({ labels }) => labels[label] ?? '').filter(value => value !== ''))].slice(
    0,
    VALUES_MAX,
  )

const MET_SHOWN = 12

/** Which series the matchers meet, as they are typed. */
function LiveMatches({ preview }: { readonly preview: RulePreviewView }) {
  if (preview.collector !== 'ok') return null
  return (
    <>
      <p class="muted">{t('matched', { count: preview.matched, servers: preview.servers.read })}</p>
      <ul class="plain">
        {preview.labels.slice(0, MET_SHOWN).map(({ labels, isMatched }) => {
          const text = Object.values(labels).join(', ')
          return (
            <li key={JSON.stringify(labels)} class={isMatched ? 'met' : 'unmet'}>
              <span class="mono">{text}</span> {isMatched ? null : <span class="muted">{t('not_matched')}</span>}
            </li>
          )
        })}
      </ul>
    </>
  )
}

type Props = FieldProps & {
  readonly data: RuleEditorView
  readonly preview: RulePreviewView | null
}

export function ConditionFields({ data, preview, ...props }: Props) {
  const { draft, change, errorsOf } = props
  const metric: EditedMetric | undefined = data.metrics.find(each => each.name === draft.metric)
  const metricHint =
    metric && t('metric_hint', { unit: unitText(metric.unit), labels: metric.labels.join(', ') || t('no_labels') })
  return (
    <fieldset class="panel">
      <legend>{t('condition')}</legend>
      <SelectField
        label={t('metric')}
        hint={metricHint}
        errors={errorsOf('metric')}
        value={draft.metric}
        choices={[
          { value: '', text: t('choose') },
          ...data.metrics.map(({ name }) => ({ value: name, text: metricChoice(name) })),
        ]}
        onChange={value => change({ metric: value, matchers: {} })}
      />
      {metric === undefined || metric.labels.length === 0 ? null : (
        <fieldset class="matchers">
          <legend>{t('matchers')}</legend>
          {metric.labels.map(label => (
            <MatcherField key={label} label={label} values={valuesOf(preview, label)} {...props} />
          ))}
          <div class="live-matches" role="status">
            {preview === null ? null : <LiveMatches preview={preview} />}
          </div>
        </fieldset>
      )}
      <div class="field-row">
        <SelectField
          label={t('operator')}
          errors={errorsOf('operator')}
          value={draft.operator}
          choices={OPERATORS.map(value => ({ value, text: value }))}
          onChange={value => change({ operator: oneOf(OPERATORS, value) ?? '>' })}
        />
        <TextField
          label={t('threshold')}
          hint={metric && t('threshold_hint', { unit: unitText(metric.unit) })}
          errors={errorsOf('threshold')}
          value={draft.threshold}
          onInput={threshold => change({ threshold })}
        />
        <TextField
          label={t('held_for')}
          hint={t('duration_hint')}
          errors={errorsOf('for_seconds')}
          value={draft.heldFor}
          onInput={heldFor => change({ heldFor })}
        />
      </div>
      <RecoveryFields {...props} />
    </fieldset>
  )
}

function RecoveryFields({ draft, change, errorsOf }: FieldProps) {
  const usesRecover = draft.operator !== '==' && draft.operator !== '!='
  return (
    <>
      <div class="field-row">
        {usesRecover ? (
          <TextField
            label={t('recover_threshold')}
            hint={t('recover_hint')}
            errors={errorsOf('recover_threshold')}
            value={draft.recoverThreshold}
            onInput={recoverThreshold => change({ recoverThreshold })}
          />
        ) : null}
        <TextField
          label={t('recover_for')}
          hint={t('duration_hint')}
          errors={errorsOf('recover_for_seconds')}
          value={draft.recoverFor}
          onInput={recoverFor => change({ recoverFor })}
        />
      </div>
      <SelectField
        label={t('no_data')}
        errors={errorsOf('no_data')}
        value={draft.noData}
        choices={NO_DATA.map(value => ({ value, text: t(`no_data_${value}`) }))}
        onChange={value => change({ noData: oneOf(NO_DATA, value) ?? 'ignore' })}
      />
    </>
  )
}

const SEVERITIES = ['info', 'warning', 'critical'] as const

/** How it is told: severity and reminders. */
export function TellingFields({ draft, change, errorsOf }: FieldProps) {
  return (
    <fieldset class="panel">
      <legend>{t('telling')}</legend>
      <div class="field-row">
        <Field label={t('severity')} errors={errorsOf('severity')}>
          {ties => (
            <select
              {...ties}
              value={draft.severity}
              onChange={event => change({ severity: oneOf(SEVERITIES, event.currentTarget.value) ?? 'warning' })}
            >
              {SEVERITIES.map(severity => (
                <option value={severity} key={severity}>
                  {t(`severity_${severity}`)}
                </option>
              ))}
            </select>
          )}
        </Field>
        {draft.kind === 'agent_down' ? null : (
          <TextField
            label={t('remind')}
            hint={t('remind_hint')}
            errors={errorsOf('renotify_seconds')}
            value={draft.remind}
            onInput={remind => change({ remind })}
          />
        )}
      </div>
    </fieldset>
  )
}
