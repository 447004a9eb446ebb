// What is done with selected servers: status, tags, a silence.
import { useState } from 'preact/hooks'
import { serversWords } from '../../../words/servers.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, type BulkResult, sendBulk } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ActFault } from '../../parts/fault.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { say } from '../../parts/notice-line.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(serversWords)
const shell = textsOf(shellWords)

export type ServerAct = 'status' | 'tags'
const statuses = ['active', 'maintenance', 'decommissioned'] as const

type Props = {
  readonly act: ServerAct
  readonly ids: readonly string[]
  readonly names: readonly string[]
  readonly onClose: () => void
  readonly onDone: () => void
}

const tagsIn = (text: string): string[] =>
  text
    .split(',')
    .map(tag => tag.trim())
    .filter(tag => tag !== '')

export function ServerActDialog({ act, ids, names, onClose, onDone }: Props) {
  const [status, setStatus] = useState<string>('maintenance')
  const [added, setAdded] = useState('')
  const [removed, setRemoved] = useState('')
  const [done, setDone] = useState<number | null>(null)
  const [fault, setFault] = useState<ApiFault | null>(null)
  const run = (): Promise<BulkResult> =>
    act === 'status'
      ? sendBulk('/servers/bulk/status', 'server_ids', ids, { status }, setDone)
      : sendBulk('/servers/bulk/tags', 'server_ids', ids, { add: tagsIn(added), remove: tagsIn(removed) }, setDone)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setDone(0)
    const result = await run()
    setDone(null)
    if (result.fault !== null) return setFault(result.fault)
    say(shell('done_of', { done: result.done, count: ids.length }))
    onDone()
    onClose()
  }
  return (
    <Dialog title={t(`act_${act}`)} onClose={onClose}>
      <form onSubmit={event => void submit(event)}>
        <p class="text">{t('act_about', { count: ids.length, names: names.slice(0, 5).join(', ') })}</p>
        {act === 'status' ? (
          <SelectField
            label={t('status')}
            value={status}
            choices={statuses.map(value => ({ value, text: t(`status_${value}`) }))}
            onChange={setStatus}
          />
        ) : (
          <>
            <TextField label={t('tags_add')} hint={t('tags_hint')} value={added} onInput={setAdded} />
            <TextField label={t('tags_remove')} value={removed} onInput={setRemoved} />
          </>
        )}
        {done === null ? null : <p role="status">{shell('done_of', { done, count: ids.length })}</p>}
        <ActFault fault={fault} />
        <div class="dialog-acts">
          <button type="button" onClick={onClose}>
            {shell('cancel')}
          </button>
          <button type="submit" class="primary" disabled={done !== null}>
            {t(`act_${act}`)}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
