// A new silence, from wherever: of chosen servers, of a rule, or by scope. It shows what it would cover before it is
// made. It takes all that pages share, or the bundler would make a file of what it does without.
import '../view.ts'
import { useEffect, useState } from 'preact/hooks'
import { shellWords } from '../../words/shell.ts'
import { silencesWords } from '../../words/silences.ts'
import { type ApiFault, type ApiResult, send } from '../api.ts'
import { textsOf } from '../session.ts'
import { Dialog } from './dialog.tsx'
import { ActFault } from './fault.tsx'
import { SelectField, TextField } from './field.tsx'
import { say } from './notice-line.tsx'
import type { SilenceDialogProps, SilenceStart } from './silence-start.ts'

const t = textsOf(silencesWords)
const shell = textsOf(shellWords)

const kinds = ['given', 'all', 'tag', 'env', 'role', 'dc'] as const
type Kind = (typeof kinds)[number]
const lengths = ['hours_1', 'hours_4', 'until_morning', 'days_1', 'days_7', 'own'] as const
type Length = (typeof lengths)[number]
const HOUR_MS = 3_600_000

type Form = {
  readonly kind: Kind
  readonly value: string
  readonly length: Length
  readonly starts: string
  readonly ends: string
  readonly reason: string
  readonly isOfRule: boolean
  readonly repeat: 'none' | 'daily' | 'weekly'
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
      morning.setHours(8, 0, 0, 0)
      return morning.getTime() > startMs ? morning.getTime() : morning.getTime() + 24 * HOUR_MS
    }
    case 'own':
      return new Date(ends).getTime()
  }
}

const iso = (atMs: number): string | null => (Number.isNaN(atMs) ? null : new Date(atMs).toISOString())

/** What the kind `given` stands for. */
const givenScope = ({ scope, serverIds = [] }: SilenceStart): Readonly<Record<string, unknown>> =>
  scope ?? { server_ids: serverIds }

/** A scope as the fields say it: of one kind and its values, or as it is where it names several things. */
function fieldsOf({ scope, serverIds = [], isOfRule = false }: SilenceStart): Pick<Form, 'kind' | 'value'> {
  if (scope === undefined) return { kind: serverIds.length > 0 ? 'given' : isOfRule ? 'all' : 'tag', value: '' }
  if (scope.all) return { kind: 'all', value: '' }
  const named = (
    [
      ['tag', scope.tags],
      ['env', scope.environments],
      ['role', scope.roles],
      ['dc', scope.datacenters],
    ] as const
  ).filter(([, values]) => values.length > 0)
  const [only] = named
  const isPlain = named.length === 1 && scope.server_ids.length === 0 && only?.[1].every(each => !each.includes(','))
  return isPlain && only ? { kind: only[0], value: only[1].join(', ') } : { kind: 'given', value: '' }
}

function scopeOf({ kind, value }: Form, given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const values = value
    .split(',')
    .map(each => each.trim())
    .filter(each => each !== '')
  switch (kind) {
    case 'given':
      return given
    case 'all':
      return { all: true }
    case 'tag':
      return { tags: values }
    case 'env':
      return { environments: values }
    case 'role':
      return { roles: values }
    case 'dc':
      return { datacenters: values }
  }
}

type Preview = {
  readonly matched_servers: number
  readonly servers: readonly { readonly name: string }[]
  readonly open_alerts: { readonly total: number }
}

const isIncomplete = ({ kind, value }: Form): boolean => kind !== 'all' && kind !== 'given' && value.trim() === ''

/** What the silence would cover: asked when what it is about has stayed as it is for a moment. */
function usePreview(form: Form, scope: unknown, ruleIds: readonly string[]) {
  const [preview, setPreview] = useState<Preview | null>(null)
  const [fault, setFault] = useState<ApiFault | null>(null)
  const asked = JSON.stringify([scope, ruleIds])
  useEffect(() => {
    setPreview(null)
    setFault(null)
    if (isIncomplete(form)) return
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
type Errors = Readonly<Record<string, readonly string[]>>

const errorsAt = (errors: Errors, name: string): readonly string[] =>
  Object.entries(errors).flatMap(([field, texts]) => (field === name || field.startsWith(`${name}.`) ? texts : []))

function ScopeFields({
  form,
  change,
  given,
  errors,
}: {
  form: Form
  change: Change
  /** What the scope that it begins with is called; null: it begins with none. */
  given: string | null
  errors: Errors
}) {
  const choices = kinds
    .filter(kind => kind !== 'given' || given !== null)
    .map(kind => ({ value: kind, text: kind === 'given' ? (given ?? '') : t(`scope_${kind}`) }))
  return (
    <>
      <SelectField
        label={t('servers')}
        value={form.kind}
        choices={choices}
        onChange={value => change({ kind: kinds.find(kind => kind === value) ?? 'all' })}
        errors={errorsAt(errors, 'scope')}
      />
      {form.kind === 'given' || form.kind === 'all' ? null : (
        <TextField label={t('scope_value')} value={form.value} onInput={value => change({ value })} isRequired />
      )}
    </>
  )
}

function TimeFields({ form, change, errors }: { form: Form; change: Change; errors: Errors }) {
  return (
    <>
      <SelectField
        label={t('length')}
        value={form.length}
        choices={lengths.map(length => ({ value: length, text: t(length) }))}
        onChange={value => change({ length: lengths.find(length => length === value) ?? 'hours_1' })}
        errors={form.length === 'own' ? [] : errorsAt(errors, 'ends_at')}
      />
      <TextField
        label={t('starts')}
        type="datetime-local"
        value={form.starts}
        onInput={starts => change({ starts })}
        errors={errorsAt(errors, 'starts_at')}
      />
      {form.length === 'own' ? (
        <TextField
          label={t('ends')}
          type="datetime-local"
          value={form.ends}
          isRequired
          onInput={ends => change({ ends })}
          errors={errorsAt(errors, 'ends_at')}
        />
      ) : null}
      <SelectField
        label={t('repeat')}
        value={form.repeat}
        choices={(['none', 'daily', 'weekly'] as const).map(value => ({ value, text: t(`repeat_${value}`) }))}
        onChange={value => change({ repeat: value === 'daily' || value === 'weekly' ? value : 'none' })}
        errors={errorsAt(errors, 'recurrence')}
      />
      {form.repeat === 'none' ? null : (
        <TextField
          label={t('repeat_until')}
          type="datetime-local"
          value={form.repeatUntil}
          onInput={repeatUntil => change({ repeatUntil })}
        />
      )}
    </>
  )
}

const recurrenceOf = ({ repeat, repeatUntil }: Form) =>
  repeat === 'none'
    ? null
    : {
        frequency: repeat,
        until: repeatUntil === '' ? null : iso(new Date(repeatUntil).getTime()),
        time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      }

const firstForm = (start: SilenceStart): Form => ({
  ...fieldsOf(start),
  length: start.hours === 4 ? 'hours_4' : 'hours_1',
  starts: '',
  ends: '',
  reason: start.reason ?? '',
  isOfRule: start.isOfRule ?? false,
  repeat: 'none',
  repeatUntil: '',
})

type Made = { readonly data: { readonly id: string } }

function createSilence(form: Form, scope: unknown, ruleIds: readonly string[]): Promise<ApiResult<Made>> {
  const startMs = form.starts === '' ? Date.now() : new Date(form.starts).getTime()
  return send<Made>('POST', '/monitoring/silences', {
    scope,
    starts_at: form.starts === '' ? null : iso(startMs),
    ends_at: iso(endOf(form, startMs)),
    reason: form.reason,
    rule_ids: ruleIds,
    recurrence: recurrenceOf(form),
  })
}

const OnlyRule = ({ name, form, change }: { readonly name: string; readonly form: Form; readonly change: Change }) => (
  <label class="check">
    <input
      type="checkbox"
      checked={form.isOfRule}
      onChange={event => change({ isOfRule: event.currentTarget.checked })}
    />
    {t('only_rule', { rule: name })}
  </label>
)

export function SilenceDialog({ start, onClose, onDone }: SilenceDialogProps) {
  const { rules = [] } = start
  const [hasGiven] = useState(() => fieldsOf(start).kind === 'given')
  const [form, setForm] = useState<Form>(() => firstForm(start))
  const [fault, setFault] = useState<ApiFault | null>(null)
  const [isBusy, setBusy] = useState(false)
  const change: Change = changed => setForm(before => ({ ...before, ...changed }))
  const scope = scopeOf(form, givenScope(start))
  const ruleIds = form.isOfRule ? rules.map(({ id }) => id) : []
  const { preview, fault: previewFault } = usePreview(form, scope, ruleIds)
  const errors = (fault ?? previewFault)?.errors ?? {}
  const save = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    const result = await createSilence(form, scope, ruleIds)
    setBusy(false)
    if (!result.ok) return setFault(result.fault)
    const made = result.body.data.id
    say(previewText(preview), () => send('POST', `/monitoring/silences/${made}/end`))
    onDone()
    onClose()
  }
  return (
    <Dialog title={t('new')} onClose={onClose}>
      <form onSubmit={event => void save(event)}>
        <ScopeFields
          form={form}
          change={change}
          given={hasGiven ? t(start.scope === undefined ? 'scope_given' : 'scope_before') : null}
          errors={errors}
        />
        {rules.length > 0 ? (
          <OnlyRule name={rules.map(({ name }) => name).join(', ')} form={form} change={change} />
        ) : null}
        <TimeFields form={form} change={change} errors={errors} />
        <TextField
          label={t('reason')}
          hint={t('reason_hint')}
          value={form.reason}
          isRequired
          maxLength={500}
          onInput={reason => change({ reason })}
          errors={errorsAt(errors, 'reason')}
        />
        <PreviewText preview={preview} isPossible={!isIncomplete(form)} />
        <ActFault fault={fault} />
        <div class="dialog-acts">
          <button type="button" onClick={onClose}>
            {shell('cancel')}
          </button>
          <button type="submit" class="primary" disabled={isBusy}>
            {t('create')}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
