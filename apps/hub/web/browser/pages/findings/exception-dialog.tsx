// Asks for findings to be accepted for a while, or to be called no fault of these servers; somebody else approves.
import { useState } from 'preact/hooks'
import { findingsWords } from '../../../words/findings.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ActFault } from '../../parts/fault.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { say } from '../../parts/notice-line.tsx'
import { nowMs, textsOf } from '../../session.ts'

const t = textsOf(findingsWords)
const shell = textsOf(shellWords)

const DAY_MS = 86_400_000
const DAYS = ['30', '90', '180', '365'] as const
const NAMES_SHOWN = 3
const REASON_MAX = 2000

export type ExceptionType = 'accepted' | 'false_positive'
export type ExceptionTarget = { readonly ids: readonly string[]; readonly names: readonly string[] }

type Props = {
  readonly type: ExceptionType
  readonly target: ExceptionTarget
  readonly onClose: () => void
  readonly onDone: () => void
}

/** A moment before the day ends in which it was asked for: a year is the longest that the hub takes. */
const endOf = (days: string): string | null =>
  days === '' ? null : new Date(nowMs() + Number(days) * DAY_MS - 60_000).toISOString()

export function ExceptionDialog({ type, target: { ids, names }, onClose, onDone }: Props) {
  const [reason, setReason] = useState('')
  const [days, setDays] = useState<string>(type === 'accepted' ? '90' : '')
  const [fault, setFault] = useState<ApiFault | null>(null)
  const [isBusy, setBusy] = useState(false)
  const save = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    const body = { type, reason, expires_at: endOf(days), finding_ids: ids }
    const result = await send('POST', '/security/exceptions', body)
    setBusy(false)
    if (!result.ok) return setFault(result.fault)
    say(t('asked'))
    onDone()
    onClose()
  }
  const choices = [
    ...(type === 'false_positive' ? [{ value: '', text: t('no_end') }] : []),
    ...DAYS.map(value => ({ value, text: t('days', { count: Number(value) }) })),
  ]
  const errors = fault?.errors ?? {}
  return (
    <Dialog title={t(type === 'accepted' ? 'accept' : 'false_positive')} onClose={onClose}>
      <form onSubmit={event => void save(event)}>
        <p class="text">{t('about_findings', { count: ids.length, names: names.slice(0, NAMES_SHOWN).join(', ') })}</p>
        <TextField
          label={t('reason')}
          hint={t('reason_hint')}
          lines={3}
          isRequired
          maxLength={REASON_MAX}
          value={reason}
          onInput={setReason}
          errors={errors.reason}
        />
        <SelectField label={t('length')} value={days} choices={choices} onChange={setDays} errors={errors.expires_at} />
        <ActFault fault={fault} />
        <div class="dialog-acts">
          <button type="button" onClick={onClose}>
            {shell('cancel')}
          </button>
          <button type="submit" class="primary" disabled={isBusy}>
            {t('ask')}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
