// A check that is made, changed or copied: its type says what the target is. Made, it is shown on its servers: the
// first results are its test.
import '../../view.ts'
import { useEffect, useState } from 'preact/hooks'
import type { SilenceRow } from '../../../views/silences.ts'
import { checksWords } from '../../../words/checks.ts'
import { scopesWords } from '../../../words/scopes.ts'
import { shellWords } from '../../../words/shell.ts'
import { goTo, hrefTo } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { Fault } from '../../parts/fault.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { type ChosenScope, chosenOf, isIncomplete, ScopeChoice, scopeOf } from '../../parts/scope-choice.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { textsOf } from '../../session.ts'
import { type CheckDialogProps, checkTypes } from './late-props.ts'

const t = textsOf(checksWords)
const scopes = textsOf(scopesWords)
const shell = textsOf(shellWords)

type Type = (typeof checkTypes)[number]
type Target = Readonly<Record<string, string | number>>
type Draft = {
  readonly name: string
  readonly type: Type
  /** What is looked at, and what of it is told apart: the status that is expected, the protocol of a port. */
  readonly target: string
  readonly status: string
  readonly proto: string
  readonly scope: ChosenScope
  readonly interval: string
  readonly timeout: string
}
type Change = (change: Partial<Draft>) => void

/** As the API answers it. */
type Stored = {
  readonly id: string
  readonly name: string
  readonly type: Type
  readonly target: Target
  readonly scope: SilenceRow['scope']
  readonly interval_seconds: number
  readonly timeout_seconds: number
}

const everywhere: ChosenScope = { kind: 'all', value: '', named: [] }
const newDraft: Draft = {
  ...{ name: '', type: 'http', target: '', status: '200', proto: 'tcp', scope: everywhere },
  ...{ interval: '60', timeout: '5' },
}

const draftOf = ({ name, type, target, scope, interval_seconds, timeout_seconds }: Stored): Draft => ({
  ...{ name, type, scope: chosenOf(scope) },
  target: String(target.url ?? target.target ?? target.name ?? target.port ?? ''),
  status: String(target.expect_status ?? newDraft.status),
  proto: String(target.proto ?? newDraft.proto),
  ...{ interval: String(interval_seconds), timeout: String(timeout_seconds) },
})

function targetOf({ type, target: text, status, proto }: Draft): Target {
  const target = text.trim()
  switch (type) {
    case 'http':
      return { url: target, expect_status: Number(status) }
    case 'tcp':
    case 'cert':
      return { target }
    case 'service':
      return { name: target }
    case 'port':
      return { port: Number(target), proto }
  }
}

export function CheckDialog({ of, onClose, onDone }: CheckDialogProps) {
  const [stored, setStored] = useState<Stored | null>(null)
  const [fault, setFault] = useState<ApiFault | null>(null)
  const load = async (): Promise<void> => {
    if (of === null) return
    setFault(null)
    const result = await send<{ data: Stored }>('GET', `/monitoring/checks/${of.id}`)
    if (result.ok) setStored(result.body.data)
    else setFault(result.fault)
  }
  useEffect(() => void load(), [])
  const title = of === null ? t('new') : t(`${of.act}_of`, { name: stored?.name ?? '' })
  return (
    <Dialog title={title} onClose={onClose}>
      {of === null || stored !== null ? (
        <CheckForm stored={stored} act={of?.act ?? 'new'} onClose={onClose} onDone={onDone} />
      ) : fault === null ? (
        <Skeleton lines={6} />
      ) : (
        <Fault fault={fault} onRetry={() => void load()} />
      )}
    </Dialog>
  )
}

type Act = 'new' | 'edit' | 'duplicate'
type Made = { readonly data: { readonly id: string } }

/** A copy has a target of its own, and is else as the check: it is changed once it is there. */
function sent(act: Act, stored: Stored | null, draft: Draft) {
  const target = targetOf(draft)
  const own = { name: draft.name, target }
  if (act === 'duplicate') return send<Made>('POST', `/monitoring/checks/${stored?.id}/duplicate`, own)
  const body = {
    ...own,
    scope: scopeOf(draft.scope, stored?.scope ?? {}),
    ...{ interval_seconds: Number(draft.interval), timeout_seconds: Number(draft.timeout) },
  }
  return act === 'edit'
    ? send<Made>('PATCH', `/monitoring/checks/${stored?.id}`, body)
    : send<Made>('POST', '/monitoring/checks', { ...body, type: draft.type })
}

type FormProps = {
  readonly stored: Stored | null
  readonly act: Act
  readonly onClose: () => void
  readonly onDone: () => void
}

function CheckForm({ stored, act, onClose, onDone }: FormProps) {
  const [draft, setDraft] = useState<Draft>(() => {
    if (stored === null) return newDraft
    const before = draftOf(stored)
    return act === 'duplicate' ? { ...before, name: t('copy_of', { name: stored.name }), target: '' } : before
  })
  const change: Change = changed => setDraft(before => ({ ...before, ...changed }))
  const save = async (): Promise<ApiFault | null> => {
    const result = await sent(act, stored, draft)
    if (!result.ok) return result.fault
    onDone()
    onClose()
    if (act !== 'edit') goTo(hrefTo('check', { check: result.body.data.id }))
    return null
  }
  return (
    <DialogForm
      act={act === 'edit' ? shell('save') : t(act === 'new' ? 'create' : 'duplicate')}
      isReady={!isIncomplete(draft.scope)}
      onSend={save}
      onCancel={onClose}
    >
      {errorsOf => (
        <>
          <TextField
            label={t('name')}
            isRequired
            maxLength={255}
            value={draft.name}
            onInput={name => change({ name })}
            errors={errorsOf('name')}
          />
          {act === 'new' ? (
            <SelectField
              label={t('type')}
              value={draft.type}
              choices={checkTypes.map(value => ({ value, text: t(`type_${value}`) }))}
              onChange={value => change({ type: checkTypes.find(each => each === value) ?? 'http' })}
            />
          ) : (
            <p class="muted">{t(`type_${draft.type}`)}</p>
          )}
          <TargetFields draft={draft} change={change} errorsOf={errorsOf} />
          {act === 'duplicate' ? (
            <p class="muted">{t('duplicate_about')}</p>
          ) : (
            <>
              <ScopeChoice
                chosen={draft.scope}
                change={scope => setDraft(before => ({ ...before, scope: { ...before.scope, ...scope } }))}
                given={stored === null || chosenOf(stored.scope).kind !== 'given' ? null : scopes('before')}
                errors={errorsOf('scope')}
              />
              <PaceFields draft={draft} change={change} errorsOf={errorsOf} />
            </>
          )}
        </>
      )}
    </DialogForm>
  )
}

type FieldsProps = {
  readonly draft: Draft
  readonly change: Change
  readonly errorsOf: (prefix: string) => readonly string[]
}

function TargetFields({ draft: { type, target, status, proto }, change, errorsOf }: FieldsProps) {
  return (
    <>
      <TextField
        label={t('target')}
        hint={t(`target_${type}`)}
        isRequired
        value={target}
        onInput={value => change({ target: value })}
        errors={errorsOf('target').filter(text => !errorsOf('target.expect_status').includes(text))}
      />
      {type === 'http' ? (
        <TextField
          label={t('status')}
          hint={t('status_hint')}
          type="number"
          isRequired
          value={status}
          onInput={value => change({ status: value })}
          errors={errorsOf('target.expect_status')}
        />
      ) : null}
      {type === 'port' ? (
        <SelectField
          label={t('proto')}
          value={proto}
          choices={[
            { value: 'tcp', text: 'TCP' },
            { value: 'udp', text: 'UDP' },
          ]}
          onChange={value => change({ proto: value })}
        />
      ) : null}
    </>
  )
}

/** The interval and the time that an answer has. */
const PaceFields = ({ draft: { interval, timeout }, change, errorsOf }: FieldsProps) => (
  <>
    <TextField
      label={t('interval')}
      hint={t('interval_hint')}
      type="number"
      isRequired
      value={interval}
      onInput={value => change({ interval: value })}
      errors={errorsOf('interval_seconds')}
    />
    <TextField
      label={t('timeout')}
      hint={t('timeout_hint')}
      type="number"
      isRequired
      value={timeout}
      onInput={value => change({ timeout: value })}
      errors={errorsOf('timeout_seconds')}
    />
  </>
)
