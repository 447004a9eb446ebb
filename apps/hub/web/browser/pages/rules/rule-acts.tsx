// What is done with selected rules: turned on and off, told as another severity, silenced, deleted.
import { useState } from 'preact/hooks'
import type { RuleRow, RulesView } from '../../../views/rules.ts'
import { rulesWords } from '../../../words/rules.ts'
import { rulesListWords } from '../../../words/rules-list.ts'
import { shellWords } from '../../../words/shell.ts'
import { resultOfAll, sendBulk, sendEach } from '../../acts-on-many.ts'
import { type ApiFault, type ApiResult, send } from '../../api.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { ActFault } from '../../parts/fault.tsx'
import { SelectField } from '../../parts/field.tsx'
import { LateSilenceDialog } from '../../parts/late-dialog.tsx'
import { say } from '../../parts/notice-line.tsx'
import type { Selection } from '../../parts/selection.ts'
import { SelectionBar } from '../../parts/selection-bar.tsx'
import { may, textsOf } from '../../session.ts'

const t = textsOf(rulesWords)
const list = textsOf(rulesListWords)
const shell = textsOf(shellWords)

const severities = ['critical', 'warning', 'info'] as const
type Severity = (typeof severities)[number]

const bulk = (isEnabled: boolean, ids: readonly string[]) =>
  sendBulk(`/monitoring/rules/bulk/${isEnabled ? 'enable' : 'disable'}`, 'rule_ids', ids, {})

/** The rows of these ids; null where one of them is not shown, so that it is not known what it was. */
function knownRows({ rows }: RulesView, ids: readonly string[]): readonly RuleRow[] | null {
  const byId = new Map(rows.map(rule => [rule.id, rule]))
  const known = ids.flatMap(id => byId.get(id) ?? [])
  return known.length === ids.length ? known : null
}

/** Turns back those that were turned; null where there are none, or it is not known of each of them. */
function undoOf(known: readonly RuleRow[] | null, isEnabled: boolean) {
  const turned = known?.filter(rule => rule.isEnabled !== isEnabled).map(({ id }) => id) ?? []
  if (turned.length === 0) return null
  return async (): Promise<ApiResult> => resultOfAll(await bulk(!isEnabled, turned))
}

const textOf = ({ message, errors }: ApiFault): string => [message, ...Object.values(errors).flat()].join(' ')

type Act = (id: string) => Promise<ApiResult>

/** What was refused of some is said with how many they are; `left` are those. */
async function onEach(ids: readonly string[], act: Act) {
  const { left, fault } = await sendEach(ids, act)
  if (fault === null || ids.length === 1) return { left, fault }
  return {
    left,
    fault: { ...fault, errors: {}, message: list('refused', { count: left.length, message: textOf(fault) }) },
  }
}

/** An act on each of them, one by one; tried again it is done to those alone that are left. */
function useOnEach({ ids, onDone }: DialogProps) {
  const [left, setLeft] = useState(ids)
  return async (act: Act): Promise<ApiFault | null> => {
    const result = await onEach(left, act)
    setLeft(result.left)
    onDone()
    return result.fault
  }
}

const setSeverity = (id: string, severity: Severity): Promise<ApiResult> =>
  send('PATCH', `/monitoring/rules/${id}`, { severity })

/** Tells those that changed as what they were before; null where there are none, or it is not known of each. */
function severityBack(known: readonly RuleRow[] | null, severity: Severity) {
  const before = new Map(known?.filter(rule => rule.severity !== severity).map(rule => [rule.id, rule.severity]) ?? [])
  if (before.size === 0) return null
  return async (): Promise<ApiResult> => {
    const { fault } = await onEach([...before.keys()], id => setSeverity(id, before.get(id) ?? severity))
    return fault === null ? { ok: true, body: null } : { ok: false, fault }
  }
}

type DialogProps = {
  readonly ids: readonly string[]
  readonly known: readonly RuleRow[] | null
  readonly onClose: () => void
  /** Something was done, if not all of it. */
  readonly onDone: () => void
}

function SeverityDialog(props: DialogProps) {
  const { ids, known, onClose } = props
  const onAll = useOnEach(props)
  const [severity, setChosen] = useState<Severity>('warning')
  const save = async (): Promise<ApiFault | null> => {
    const fault = await onAll(id => setSeverity(id, severity))
    if (fault !== null) return fault
    say(shell('done_of', { done: ids.length, count: ids.length }), severityBack(known, severity))
    onClose()
    return null
  }
  return (
    <Dialog title={list('severity_title', { count: ids.length })} onClose={onClose}>
      <DialogForm act={shell('save')} onSend={save} onCancel={onClose}>
        {errorsOf => (
          <SelectField
            label={t('severity')}
            value={severity}
            choices={severities.map(value => ({ value, text: shell(`state_${value}`) }))}
            onChange={value => setChosen(severities.find(each => each === value) ?? severity)}
            errors={errorsOf('severity')}
          />
        )}
      </DialogForm>
    </Dialog>
  )
}

function DeleteDialog(props: DialogProps) {
  const { ids, known, onClose } = props
  const onAll = useOnEach(props)
  const [only] = known ?? []
  const typed = ids.length === 1 && only !== undefined ? only.name : String(ids.length)
  const remove = async (): Promise<ApiFault | null> => {
    const fault = await onAll(id => send('DELETE', `/monitoring/rules/${id}`))
    if (fault === null) say(shell('done_of', { done: ids.length, count: ids.length }))
    return fault
  }
  return (
    <ConfirmDialog
      title={list('delete_many', { count: ids.length })}
      typed={{ text: typed, label: list('delete_type', { text: typed }) }}
      act={list('delete_these')}
      onConfirm={remove}
      onClose={onClose}
    >
      <p>{list('delete_many_text')}</p>
    </ConfirmDialog>
  )
}

type Asked = Pick<DialogProps, 'ids' | 'known'> & { readonly act: 'severity' | 'silence' | 'delete' }
type AskedProps = Omit<DialogProps, 'ids' | 'known'> & { readonly asked: Asked }

function AskedDialog({ asked: { act, ids, known }, onClose, onDone }: AskedProps) {
  const props = { ids, known, onClose, onDone }
  if (act === 'severity') return <SeverityDialog {...props} />
  if (act === 'delete') return <DeleteDialog {...props} />
  return (
    <LateSilenceDialog start={{ rules: known ?? [], isOfRule: true, hours: 4 }} onClose={onClose} onDone={onDone} />
  )
}

type BarProps = { readonly selection: Selection; readonly data: RulesView; readonly onDone: () => void }

export function RulesBar({ selection, data, onDone }: BarProps) {
  const [fault, setFault] = useState<ApiFault | null>(null)
  const [isBusy, setBusy] = useState(false)
  const [asked, setAsked] = useState<Asked | null>(null)
  const ask = (act: Asked['act']): void => setAsked({ act, ids: selection.all, known: knownRows(data, selection.all) })
  const finish = (): void => {
    selection.clear()
    onDone()
  }
  const turn = async (isEnabled: boolean): Promise<void> => {
    const ids = selection.all
    const undo = undoOf(knownRows(data, ids), isEnabled)
    setBusy(true)
    const result = await bulk(isEnabled, ids)
    setBusy(false)
    setFault(result.fault)
    const { done, refused } = result
    const message = Object.values(refused[0]?.errors ?? {}).join(' ')
    const said = shell('done_of', { done, count: done + refused.length })
    if (refused.length > 0) say(`${said} ${list('refused', { count: refused.length, message })}`)
    else if (result.fault === null) say(said, undo)
    finish()
  }
  const matching = data.ids.length > 0 ? data.ids : data.rows.map(({ id }) => id)
  return (
    <>
      <SelectionBar
        selected={selection.size}
        matching={matching.length}
        onSelectMatching={() => selection.setAll(matching, true)}
        onClear={() => selection.clear()}
      >
        <button type="button" disabled={isBusy} onClick={() => void turn(true)}>
          {t('enable')}
        </button>
        <button type="button" disabled={isBusy} onClick={() => void turn(false)}>
          {t('disable')}
        </button>
        <button type="button" onClick={() => ask('severity')}>
          {list('severity_of')}
        </button>
        {knownRows(data, selection.all) === null ? null : (
          <button type="button" onClick={() => ask('silence')}>
            {t('silence')}
          </button>
        )}
        {may('monitoring.delete') ? (
          <button type="button" class="danger" onClick={() => ask('delete')}>
            {t('delete')}
          </button>
        ) : null}
      </SelectionBar>
      <ActFault fault={fault} />
      {asked === null ? null : <AskedDialog asked={asked} onClose={() => setAsked(null)} onDone={finish} />}
    </>
  )
}
