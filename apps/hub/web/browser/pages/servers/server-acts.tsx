// What is done with selected servers: status, tags, a silence.
import '../../view.ts'
import { useState } from 'preact/hooks'
import { serversWords } from '../../../words/servers.ts'
import { shellWords } from '../../../words/shell.ts'
import { resultOfAll, sendBulk } from '../../acts-on-many.ts'
import type { ApiFault, ApiResult } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { say } from '../../parts/notice-line.tsx'
import { textsOf } from '../../session.ts'
import type { ServerActProps, ServerBefore } from './late-props.ts'

const t = textsOf(serversWords)
const shell = textsOf(shellWords)

const statuses = ['active', 'maintenance', 'decommissioned'] as const

const tagsIn = (text: string): string[] =>
  text
    .split(',')
    .map(tag => tag.trim())
    .filter(tag => tag !== '')

type Tags = { readonly add: readonly string[]; readonly remove: readonly string[] }

type Change = { readonly status: string } | Tags

/** What sets a server back to what it was; null: it was so before. */
function backOf(before: ServerBefore, wanted: Change): Change | null {
  if ('status' in wanted) return wanted.status === before.status ? null : { status: before.status }
  const add = wanted.remove.filter(tag => before.tags.includes(tag))
  const remove = wanted.add.filter(tag => !before.tags.includes(tag))
  return add.length + remove.length === 0 ? null : { add, remove }
}

/** Takes an act back, of each server what it changed there; null where that is nothing, or not known of all of them. */
function undoOf(path: string, ids: readonly string[], rows: readonly ServerBefore[], wanted: Change) {
  const known = new Map(rows.map(row => [row.id, row]))
  const idsOf = new Map<string, string[]>()
  for (const id of ids) {
    const before = known.get(id)
    if (before === undefined) return null
    const back = backOf(before, wanted)
    if (back === null) continue
    const body = JSON.stringify(back)
    idsOf.set(body, [...(idsOf.get(body) ?? []), id])
  }
  if (idsOf.size === 0) return null
  return async (): Promise<ApiResult> => {
    for (const [body, some] of idsOf) {
      const result = resultOfAll(await sendBulk(path, 'server_ids', some, JSON.parse(body)))
      if (!result.ok) return result
    }
    return { ok: true, body: null }
  }
}

export function ServerActDialog({ act, ids, names, rows, onClose, onDone }: ServerActProps) {
  const [status, setStatus] = useState<string>('maintenance')
  const [added, setAdded] = useState('')
  const [removed, setRemoved] = useState('')
  const [done, setDone] = useState<number | null>(null)
  const path = `/servers/bulk/${act}`
  const wanted: Change = act === 'tags' ? { add: tagsIn(added), remove: tagsIn(removed) } : { status }
  const submit = async (): Promise<ApiFault | null> => {
    setDone(0)
    const result = await sendBulk(path, 'server_ids', ids, wanted, setDone)
    setDone(null)
    if (result.fault !== null) return result.fault
    const undo = result.refused.length === 0 ? undoOf(path, ids, rows, wanted) : null
    say(shell('done_of', { done: result.done, count: ids.length }), undo)
    onDone()
    onClose()
    return null
  }
  return (
    <Dialog title={t(`act_${act}`)} onClose={onClose}>
      <DialogForm act={t(`act_${act}`)} onSend={submit} onCancel={onClose}>
        {() => (
          <>
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
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}
