// What holds for all servers of the company, how long samples are kept, and what its plan allows.
import '../../administration-kit.ts'
import { useState } from 'preact/hooks'
import type { SettingsView } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send } from '../../api.ts'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { Fault } from '../../parts/fault.tsx'
import { TextField } from '../../parts/field.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import './administration.css'

const t = textsOf(administrationWords)
const shell = textsOf(shellWords)

const PERCENT = 100

const textOf = (value: number | null): string => (value === null ? '' : String(value))
const numberOf = (text: string): number | null => (text.trim() === '' ? null : Number(text))
/** Without the rest that a hundredfold leaves in binary. */
const percentOf = (ratio: number | null): string => (ratio === null ? '' : String(Number((ratio * PERCENT).toFixed(6))))

const draftOf = (data: SettingsView) => ({
  interval: textOf(data.intervalSeconds),
  isServerMade: data.isServerMade,
  min: textOf(data.groupDownMin),
  ratio: percentOf(data.groupDownRatio),
  window: textOf(data.groupDownWindowSeconds),
  events: textOf(data.alertEventDays),
  note: data.retentionNote ?? '',
})

type Draft = ReturnType<typeof draftOf>

/** The fields that were changed, as the API takes them. */
function changesOf(before: Draft, after: Draft) {
  const ratio = numberOf(after.ratio)
  const bodies = {
    interval: { default_interval: numberOf(after.interval) },
    isServerMade: { auto_create_server: after.isServerMade },
    min: { group_down_min: numberOf(after.min) },
    ratio: { group_down_ratio: ratio === null ? null : ratio / PERCENT },
    window: { group_down_window_seconds: numberOf(after.window) },
    events: { alert_event_retention_days: numberOf(after.events) },
    note: { retention_note: after.note.trim() === '' ? null : after.note },
  }
  const changed = Object.entries(bodies).filter(([name]) => Reflect.get(before, name) !== Reflect.get(after, name))
  return Object.assign({}, ...changed.map(([, body]) => body))
}

type GroupDownProps = {
  readonly draft: Draft
  readonly onChange: (changed: Partial<Draft>) => void
  readonly errorsOf: (field: string) => readonly string[]
}

/** From how many servers on an alert of the group stands for theirs. */
const GroupDown = ({ draft, onChange, errorsOf }: GroupDownProps) => (
  <>
    <h3>{t('group_down')}</h3>
    <TextField
      label={t('group_down_min')}
      hint={t('default_hint')}
      type="number"
      value={draft.min}
      onInput={min => onChange({ min })}
      errors={errorsOf('group_down_min')}
    />
    <TextField
      label={t('group_down_ratio')}
      hint={t('default_hint')}
      value={draft.ratio}
      onInput={ratio => onChange({ ratio })}
      errors={errorsOf('group_down_ratio')}
    />
    <TextField
      label={t('group_down_window')}
      hint={t('default_hint')}
      type="number"
      value={draft.window}
      onInput={window => onChange({ window })}
      errors={errorsOf('group_down_window_seconds')}
    />
  </>
)

function SettingsForm({ data, onDone }: { readonly data: SettingsView; readonly onDone: () => void }) {
  const [before, setBefore] = useState(draftOf(data))
  const [draft, setDraft] = useState(before)
  const [isSaved, setSaved] = useState(false)
  const change = (changed: Partial<Draft>): void => {
    setSaved(false)
    setDraft(now => ({ ...now, ...changed }))
  }
  const save = async (): Promise<ApiFault | null> => {
    const result = await send('PATCH', '/monitoring/settings', changesOf(before, draft))
    if (!result.ok) return result.fault
    setBefore(draft)
    setSaved(true)
    onDone()
    return null
  }
  return (
    <DialogForm act={shell('save')} class="settings-form" onSend={save} onCancel={null}>
      {errorsOf => (
        <>
          <TextField
            label={t('interval')}
            type="number"
            isRequired
            value={draft.interval}
            onInput={interval => change({ interval })}
            errors={errorsOf('default_interval')}
          />
          <label class="choice">
            <input
              type="checkbox"
              checked={draft.isServerMade}
              onChange={event => change({ isServerMade: event.currentTarget.checked })}
            />
            {t('make_servers')}
          </label>
          <GroupDown draft={draft} onChange={change} errorsOf={errorsOf} />
          <TextField
            label={t('event_days')}
            type="number"
            isRequired
            value={draft.events}
            onInput={events => change({ events })}
            errors={errorsOf('alert_event_retention_days')}
          />
          <TextField
            label={t('note')}
            lines={3}
            maxLength={1000}
            value={draft.note}
            onInput={note => change({ note })}
            errors={errorsOf('retention_note')}
          />
          <p role="status" class="muted">
            {isSaved ? t('saved') : ''}
          </p>
        </>
      )}
    </DialogForm>
  )
}

const daysOf = (days: number | null): string => (days === null ? t('without_end') : t('days', { count: days }))

function Facts({ data }: { readonly data: SettingsView }) {
  return (
    <dl class="facts">
      <dt>{t('plan')}</dt>
      <dd>
        {data.plan},{' '}
        {data.agentQuota === null
          ? t('agents_free', { used: data.agents })
          : t('agents_of', { used: data.agents, max: data.agentQuota })}
      </dd>
      <dt>{t('samples_kept')}</dt>
      <dd>{daysOf(data.sampleDays)}</dd>
      {data.graceUntilMs === null ? null : (
        <>
          <dt>{t('grace', { count: data.previousSampleDays ?? 0 })}</dt>
          <dd>
            <Time atMs={data.graceUntilMs} form="until" />
          </dd>
        </>
      )}
      {may('monitoring.manage') ? null : (
        <>
          <dt>{t('interval')}</dt>
          <dd>{data.intervalSeconds}</dd>
          <dt>{t('event_days')}</dt>
          <dd>{data.alertEventDays}</dd>
        </>
      )}
    </dl>
  )
}

export function SettingsPage() {
  const { data, fault, reload } = usePageView<SettingsView>('settings')
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  return (
    <>
      <div class="page-head">
        <h1>{t('settings')}</h1>
      </div>
      <section class="panel">
        <h2>{t('plan')}</h2>
        <Facts data={data} />
      </section>
      {may('monitoring.manage') ? (
        <section class="panel">
          <h2>{t('monitoring')}</h2>
          <SettingsForm data={data} onDone={reload} />
        </section>
      ) : null}
    </>
  )
}
