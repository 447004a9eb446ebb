// A new silence, from wherever: of chosen servers, of a rule, or by scope. It shows what it would cover before it is
// made. It takes all that pages share, or the bundler would make a file of what it does without.
import '../view.ts'
import { useEffect, useState } from 'preact/hooks'
import { scopesWords } from '../../words/scopes.ts'
import { silencesWords } from '../../words/silences.ts'
import { type ApiFault, type ApiResult, send } from '../api.ts'
import { instantOfField, isUtc, shownZone, weekdayText } from '../format.ts'
import { textsOf } from '../session.ts'
import { Dialog } from './dialog.tsx'
import { DialogForm } from './dialog-form.tsx'
import { SelectField, TextField } from './field.tsx'
import { say } from './notice-line.tsx'
import {
  type ChosenScope,
  chosenOf,
  isIncomplete,
  type Named,
  NamedChoice,
  ScopeChoice,
  type SentScope,
  scopeOf,
} from './scope-choice.tsx'
import type { SilenceDialogProps, SilenceStart } from './silence-dialog-props.ts'

const t = textsOf(silencesWords)
const scopes = textsOf(scopesWords)

const lengths = ['hours_1', 'hours_4', 'until_morning', 'days_1', 'days_7', 'own'] as const
type Length = (typeof lengths)[number]
const HOUR_MS = 3_600_000

type Form = {
  readonly scope: ChosenScope
  readonly length: Length
  readonly starts: string
  readonly ends: string
  readonly reason: string
  readonly isOfRule: boolean
  /** Chosen here, where it begins with none. */
  readonly rules: readonly Named[]
  readonly repeat: 'none' | 'daily' | 'weekly'
  /** Of a week, 1 for Monday; none: that of the beginning. */
  readonly weekdays: readonly number[]
  readonly repeatUntil: string
}

function endOf({ length, ends }: Form, startMs: number): number {
  switch (length) {
    case 'hours_1':
      return startMs + HOUR_MS
    case 'hours_4':
      return startMs + 4 * HOUR_MS
    case 'days_1':
      return startMs + 24 * HOUR_MS
    case 'days_7':
      return startMs + 168 * HOUR_MS
    case 'until_morning': {
      const morning = new Date(startMs)
      if (isUtc.peek()) morning.setUTCHours(8, 0, 0, 0)
      else morning.setHours(8, 0, 0, 0)
      return morning.getTime() > startMs ? morning.getTime() : morning.getTime() + 24 * HOUR_MS
    }
    case 'own':
      return instantOfField(ends)
  }
}

const iso = (atMs: number): string | null => (Number.isNaN(atMs) ? null : new Date(atMs).toISOString())

/** What the scope that it begins with is, where it says more than one kind and its values. */
const givenScope = ({ scope, serverIds = [] }: SilenceStart): SentScope => scope ?? { server_ids: serverIds }

function firstScope({ scope, serverIds = [], isOfRule = false }: SilenceStart): ChosenScope {
  if (scope !== undefined) return chosenOf(scope)
  return { kind: serverIds.length > 0 ? 'given' : isOfRule ? 'all' : 'tag', value: '', named: [] }
}

type Preview = {
  readonly matched_servers: number
  readonly servers: readonly { readonly name: string }[]
  readonly open_alerts: { readonly total: number }
}

/** What the silence would cover: asked when what it is about has stayed as it is for a moment. */
function usePreview(form: Form, scope: unknown, ruleIds: readonly string[]) {
  const [preview, setPreview] = useState<Preview | null>(null)
  const [fault, setFault] = useState<ApiFault | null>(null)
  const asked = JSON.stringify([scope, ruleIds])
  useEffect(() => {
    setPreview(null)
    setFault(null)
    if (isIncomplete(form.scope)) return
    const control = { isOver: false }
    const timer = setTimeout(() => {
      void send<{ data: Preview }>('POST', '/monitoring/silences/preview', { scope, rule_ids: ruleIds }).then(
        result => {
          if (control.isOver) return
          if (result.ok) setPreview(result.body.data)
          else setFault(result.fault)
        },
      )
    }, 400)
    return () => {
      control.isOver = true
      clearTimeout(timer)
    }
  }, [asked])
  return { preview, fault }
}

const previewText = (preview: Preview | null): string =>
  preview === null ? t('made') : t('preview', { servers: preview.matched_servers, alerts: preview.open_alerts.total })

function PreviewText({ preview, isPossible }: { readonly preview: Preview | null; readonly isPossible: boolean }) {
  if (preview === null) return <p class="muted preview">{isPossible ? t('previewing') : ''}</p>
  const names = preview.servers.slice(0, 5).map(server => server.name)
  const more = preview.matched_servers - names.length
  const list = more > 0 ? t('preview_more', { names: names.join(', '), count: more }) : names.join(', ')
  return (
    <div class="preview" role="status">
      <p>
        <strong>{previewText(preview)}</strong>
      </p>
      <p class="muted text">{names.length === 0 ? '' : t('preview_servers', { names: list })}</p>
    </div>
  )
}

type Change = (change: Partial<Form>) => void
type ErrorsOf = (field: string) => readonly string[]

const Weekdays = ({ chosen, change }: { readonly chosen: readonly number[]; readonly change: Change }) => (
  <fieldset class="choice">
    <legend>{t('weekdays')}</legend>
    {[1, 2, 3, 4, 5, 6, 7].map(day => (
      <label key={day}>
        <input
          type="checkbox"
          checked={chosen.includes(day)}
          onChange={event =>
            change({ weekdays: event.currentTarget.checked ? [...chosen, day] : chosen.filter(each => each !== day) })
          }
        />
        {weekdayText(day)}
      </label>
    ))}
  </fieldset>
)

function TimeFields({ form, change, errorsOf }: { form: Form; change: Change; errorsOf: ErrorsOf }) {
  return (
    <>
      <SelectField
        label={t('length')}
        value={form.length}
        choices={lengths.map(length => ({ value: length, text: t(length) }))}
        onChange={value => change({ length: lengths.find(length => length === value) ?? 'hours_1' })}
        errors={form.length === 'own' ? [] : errorsOf('ends_at')}
      />
      <TextField
        label={t('starts')}
        type="datetime-local"
        hint={shownZone()}
        value={form.starts}
        onInput={starts => change({ starts })}
        errors={errorsOf('starts_at')}
      />
      {form.length === 'own' ? (
        <TextField
          label={t('ends')}
          type="datetime-local"
          hint={shownZone()}
          value={form.ends}
          isRequired
          onInput={ends => change({ ends })}
          errors={errorsOf('ends_at')}
        />
      ) : null}
      <SelectField
        label={t('repeat')}
        value={form.repeat}
        choices={(['none', 'daily', 'weekly'] as const).map(value => ({ value, text: t(`repeat_${value}`) }))}
        onChange={value => change({ repeat: value === 'daily' || value === 'weekly' ? value : 'none' })}
        errors={errorsOf('recurrence')}
      />
      {form.repeat === 'weekly' ? <Weekdays chosen={form.weekdays} change={change} /> : null}
      {form.repeat === 'none' ? null : (
        <TextField
          label={t('repeat_until')}
          type="datetime-local"
          hint={shownZone()}
          value={form.repeatUntil}
          onInput={repeatUntil => change({ repeatUntil })}
        />
      )}
    </>
  )
}

const recurrenceOf = ({ repeat, repeatUntil, weekdays }: Form) =>
  repeat === 'none'
    ? null
    : {
        frequency: repeat,
        weekdays: repeat === 'weekly' ? weekdays : [],
        until: repeatUntil === '' ? null : iso(instantOfField(repeatUntil)),
        time_zone: isUtc.peek() ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone,
      }

const firstForm = (start: SilenceStart): Form => ({
  scope: firstScope(start),
  length: start.hours === 4 ? 'hours_4' : 'hours_1',
  starts: '',
  ends: '',
  reason: start.reason ?? '',
  isOfRule: start.isOfRule ?? false,
  rules: [],
  repeat: 'none',
  weekdays: [],
  repeatUntil: '',
})

type Made = { readonly data: { readonly id: string } }

function createSilence(form: Form, scope: unknown, ruleIds: readonly string[]): Promise<ApiResult<Made>> {
  const startMs = form.starts === '' ? Date.now() : instantOfField(form.starts)
  return send<Made>('POST', '/monitoring/silences', {
    scope,
    starts_at: form.starts === '' ? null : iso(startMs),
    ends_at: iso(endOf(form, startMs)),
    reason: form.reason,
    rule_ids: ruleIds,
    recurrence: recurrenceOf(form),
  })
}

type OnlyProps = { readonly rules: readonly Named[]; readonly form: Form; readonly change: Change }

const OnlyRules = ({ rules, form, change }: OnlyProps) => (
  <label class="check">
    <input
      type="checkbox"
      checked={form.isOfRule}
      onChange={event => change({ isOfRule: event.currentTarget.checked })}
    />
    {t('only_rule', { count: rules.length, rule: rules.map(({ name }) => name).join(', ') })}
  </label>
)

export function SilenceDialog({ start, onClose, onDone }: SilenceDialogProps) {
  const { rules = [] } = start
  const [hasGiven] = useState(() => firstScope(start).kind === 'given')
  const [form, setForm] = useState<Form>(() => firstForm(start))
  const change: Change = changed => setForm(before => ({ ...before, ...changed }))
  const scope = scopeOf(form.scope, givenScope(start))
  const ruleIds = (form.isOfRule ? rules : form.rules).map(({ id }) => id)
  const { preview, fault: previewFault } = usePreview(form, scope, ruleIds)
  const save = async (): Promise<ApiFault | null> => {
    const result = await createSilence(form, scope, ruleIds)
    if (!result.ok) return result.fault
    const made = result.body.data.id
    say(previewText(preview), () => send('POST', `/monitoring/silences/${made}/end`))
    onDone()
    onClose()
    return null
  }
  return (
    <Dialog title={t('new')} onClose={onClose}>
      <DialogForm
        act={t('create')}
        isReady={!isIncomplete(form.scope)}
        before={previewFault}
        onSend={save}
        onCancel={onClose}
      >
        {errorsOf => (
          <>
            <ScopeChoice
              chosen={form.scope}
              change={changed => setForm(before => ({ ...before, scope: { ...before.scope, ...changed } }))}
              given={hasGiven ? scopes(start.scope === undefined ? 'given' : 'before') : null}
              errors={errorsOf('scope')}
            />
            {rules.length > 0 ? (
              <OnlyRules rules={rules} form={form} change={change} />
            ) : (
              <NamedChoice
                of="rules"
                label={t('only_rules')}
                named={form.rules}
                onChange={named => change({ rules: named })}
              />
            )}
            <TimeFields form={form} change={change} errorsOf={errorsOf} />
            <TextField
              label={t('reason')}
              hint={t('reason_hint')}
              value={form.reason}
              isRequired
              maxLength={500}
              onInput={reason => change({ reason })}
              errors={errorsOf('reason')}
            />
            <PreviewText preview={preview} isPossible={!isIncomplete(form.scope)} />
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}
