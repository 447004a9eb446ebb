// What is done with alerts, one or thousands: acknowledge, close, comment. Many go in as few requests as the API
// allows.
import { useState } from 'preact/hooks'
import { alertsWords } from '../../../words/alerts.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send, sendBulk } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ActFault } from '../../parts/fault.tsx'
import { TextField } from '../../parts/field.tsx'
import { noticeLine } from '../../parts/notice-line.ts'
import { textsOf } from '../../session.ts'

const t = textsOf(alertsWords)
const shell = textsOf(shellWords)

export type AlertAct = 'acknowledge' | 'close' | 'comment'
/** What an act is about: ids, and the first names of them. */
export type ActTarget = { readonly ids: readonly string[]; readonly names: readonly string[] }

const NAMES_SHOWN = 3

function namesText({ ids, names }: ActTarget): string {
  const shown = names.slice(0, NAMES_SHOWN).join(', ')
  const more = ids.length - Math.min(names.length, NAMES_SHOWN)
  return more > 0 ? t('and_more', { names: shown, count: more }) : shown
}

type Props = {
  readonly act: AlertAct
  readonly target: ActTarget
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Comments go one by one: there is no bulk endpoint for them. */
async function commentAll(
  ids: readonly string[],
  comment: string,
  onDone: (done: number) => void,
): Promise<ApiFault | null> {
  for (const [index, id] of ids.entries()) {
    const result = await send('POST', `/monitoring/alerts/${id}/comments`, { comment })
    if (!result.ok) return result.fault
    onDone(index + 1)
  }
  return null
}

export function AlertActDialog({ act, target, onClose, onDone }: Props) {
  const [comment, setComment] = useState('')
  const [done, setDone] = useState<number | null>(null)
  const [fault, setFault] = useState<ApiFault | null>(null)
  const { ids } = target
  const run = async (): Promise<void> => {
    setDone(0)
    setFault(null)
    const text = comment.trim()
    if (act === 'comment') {
      const refused = await commentAll(ids, text, setDone)
      if (refused !== null) {
        setDone(null)
        return setFault(refused)
      }
      noticeLine.value = shell('done_of', { done: ids.length, count: ids.length })
    } else {
      const body = text === '' ? {} : { comment: text }
      const result = await sendBulk(`/monitoring/alerts/bulk/${act}`, 'alert_ids', ids, body, setDone)
      if (result.fault !== null) {
        setDone(null)
        return setFault(result.fault)
      }
      noticeLine.value =
        result.refused.length > 0
          ? t('done_and_refused', { done: result.done, refused: result.refused.length })
          : shell('done_of', { done: result.done, count: ids.length })
    }
    onDone()
    onClose()
  }
  return (
    <Dialog title={t(act)} onClose={onClose}>
      <form
        onSubmit={event => {
          event.preventDefault()
          void run()
        }}
      >
        <p class="text">{t('act_about', { count: ids.length, names: namesText(target) })}</p>
        <TextField
          label={t(act === 'comment' ? 'comment' : 'comment_optional')}
          lines={3}
          maxLength={1000}
          isRequired={act === 'comment'}
          value={comment}
          onInput={setComment}
        />
        {done === null ? null : <p role="status">{shell('done_of', { done, count: ids.length })}</p>}
        <ActFault fault={fault} />
        <div class="dialog-acts">
          <button type="button" onClick={onClose}>
            {shell('cancel')}
          </button>
          <button type="submit" class={act === 'close' ? 'danger' : 'primary'} disabled={done !== null}>
            {t(act)}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
