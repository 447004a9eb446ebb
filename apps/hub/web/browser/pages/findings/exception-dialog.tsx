// Asks for findings to be accepted for a while, or to be called no fault of these servers; somebody else approves.
import '../../view.ts'
import './findings-kit.ts'
import { useState } from 'preact/hooks'
import { findingsWords } from '../../../words/findings.ts'
import { type ApiFault, send } from '../../api.ts'
import { nowMs } from '../../hub-clock.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { say } from '../../parts/notice-line.tsx'
import { textsOf } from '../../session.ts'
import type { ExceptionDialogProps } from './late-props.ts'

const t = textsOf(findingsWords)

const DAY_MS = 86_400_000
const DAYS = ['30', '90', '180', '365'] as const
const NAMES_SHOWN = 3
const REASON_MAX = 2000

/** A moment before the day ends in which it was asked for: a year is the longest that the hub takes. */
const endOf = (days: string): string | null =>
  days === '' ? null : new Date(nowMs() + Number(days) * DAY_MS - 60_000).toISOString()

export function ExceptionDialog({ type, target: { ids, names }, onClose, onDone }: ExceptionDialogProps) {
  const [reason, setReason] = useState('')
  const [days, setDays] = useState<string>(type === 'accepted' ? '90' : '')
  const save = async (): Promise<ApiFault | null> => {
    const body = { type, reason, expires_at: endOf(days), finding_ids: ids }
    const result = await send('POST', '/security/exceptions', body)
    if (!result.ok) return result.fault
    say(t('asked'))
    onDone()
    onClose()
    return null
  }
  const choices = [
    ...(type === 'false_positive' ? [{ value: '', text: t('no_end') }] : []),
    ...DAYS.map(value => ({ value, text: t('days', { count: Number(value) }) })),
  ]
  return (
    <Dialog title={t(type === 'accepted' ? 'accept' : 'false_positive')} onClose={onClose}>
      <DialogForm act={t('ask')} onSend={save} onCancel={onClose}>
        {errorsOf => (
          <>
            <p class="text">
              {t('about_findings', { count: ids.length, names: names.slice(0, NAMES_SHOWN).join(', ') })}
            </p>
            <TextField
              label={t('reason')}
              hint={t('reason_hint')}
              lines={3}
              isRequired
              maxLength={REASON_MAX}
              value={reason}
              onInput={setReason}
              errors={errorsOf('reason')}
            />
            <SelectField
              label={t('length')}
              value={days}
              choices={choices}
              onChange={setDays}
              errors={errorsOf('expires_at')}
            />
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}
