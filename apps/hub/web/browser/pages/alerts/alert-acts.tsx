// What is done with alerts, one or thousands: acknowledge, close, comment. Many go in as few requests as the API
// allows.
import { useEffect, useRef, useState } from 'preact/hooks'
import { alertsWords } from '../../../words/alerts.ts'
import { shellWords } from '../../../words/shell.ts'
import { type EachResult, sendBulk, sendEach } from '../../acts-on-many.ts'
import { type ApiFault, send } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { TextField } from '../../parts/field.tsx'
import { say } from '../../parts/notice-line.tsx'
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

/** The API takes so many requests a minute of a session; more comments wait for it. */
const COMMENTS_A_MINUTE = 30

/**
 * What is said when some comments were written and others not: the text stays, and a press tries those again. Where
 * none was written the refusal says it all.
 */
const partFault = ({ left, fault, done }: EachResult): ApiFault | null =>
  left.length === 0 || done === 0
    ? fault
    : {
        ...(fault ?? { status: 0, errors: {}, requestId: null }),
        message: t('comments_left', { done, left: left.length, message: fault?.message ?? '' }),
      }

/** What became of one try: what is said of it, or why it is not done. */
type Tried = { readonly said: string; readonly fault: ApiFault | null }

async function actOnAll(
  act: 'acknowledge' | 'close',
  ids: readonly string[],
  text: string,
  onDone: (done: number) => void,
): Promise<Tried> {
  const body = text === '' ? {} : { comment: text }
  const { done, refused, fault } = await sendBulk(`/monitoring/alerts/bulk/${act}`, 'alert_ids', ids, body, onDone)
  const said =
    refused.length > 0
      ? t('done_and_refused', { done, refused: refused.length })
      : shell('done_of', { done, count: ids.length })
  return { said, fault }
}

function useAct({ act, target: { ids }, onClose, onDone }: Props) {
  const [done, setDone] = useState<number | null>(null)
  // Alerts that still lack the comment: a second press writes it to nobody twice.
  const [left, setLeft] = useState(ids)
  const isOver = useRef(false)
  useEffect(
    () => () => {
      isOver.current = true
    },
    [],
  )
  const commentAll = async (comment: string): Promise<Tried> => {
    const write = (id: string) => send('POST', `/monitoring/alerts/${id}/comments`, { comment })
    const result = await sendEach(left, write, setDone, () => isOver.current)
    setLeft(result.left)
    return { said: shell('done_of', { done: ids.length, count: ids.length }), fault: partFault(result) }
  }
  const run = async (text: string): Promise<ApiFault | null> => {
    setDone(0)
    const tried = await (act === 'comment' ? commentAll(text) : actOnAll(act, ids, text, setDone))
    if (isOver.current) return null
    setDone(null)
    if (tried.fault !== null) return tried.fault
    say(tried.said)
    onDone()
    onClose()
    return null
  }
  return { done, left, run }
}

export function AlertActDialog({ act, target, onClose, onDone }: Props) {
  const [comment, setComment] = useState('')
  const { done, left, run } = useAct({ act, target, onClose, onDone })
  const { ids } = target
  return (
    <Dialog title={t(act)} onClose={onClose}>
      <DialogForm act={t(act)} isDanger={act === 'close'} onSend={() => run(comment.trim())} onCancel={onClose}>
        {() => (
          <>
            <p class="text">{t('act_about', { count: ids.length, names: namesText(target) })}</p>
            <TextField
              label={t(act === 'comment' ? 'comment' : 'comment_optional')}
              lines={3}
              maxLength={1000}
              isRequired={act === 'comment'}
              value={comment}
              onInput={setComment}
            />
            {act === 'comment' && left.length > COMMENTS_A_MINUTE ? (
              <p class="muted">{t('comments_slow', { minutes: Math.ceil(left.length / COMMENTS_A_MINUTE) })}</p>
            ) : null}
            {done === null ? null : <p role="status">{shell('done_of', { done, count: left.length })}</p>}
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}
