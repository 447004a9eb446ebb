// What is done with a check from the list and from its page: it is turned on and off, and deleted.
import { checksWords } from '../../../words/checks.ts'
import { type ApiFault, send } from '../../api.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { say } from '../../parts/notice-line.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(checksWords)

type Named = { readonly id: string; readonly name: string }

const post = (id: string, act: 'enable' | 'disable') => send('POST', `/monitoring/checks/${id}/${act}`)

/** Null when it was done, which can be taken back. */
export async function turn({ id, name }: Named, act: 'enable' | 'disable'): Promise<ApiFault | null> {
  const result = await post(id, act)
  if (!result.ok) return result.fault
  say(t(`${act}d_now`, { name }), () => post(id, act === 'enable' ? 'disable' : 'enable'))
  return null
}

type DeleteProps = { readonly check: Named; readonly onClose: () => void; readonly onDone: () => void }

export const DeleteCheck = ({ check: { id, name }, onClose, onDone }: DeleteProps) => (
  <ConfirmDialog
    title={t('delete_of', { name })}
    typed={{ text: name, label: t('type_name', { name }) }}
    act={t('delete')}
    onConfirm={async () => {
      const result = await send('DELETE', `/monitoring/checks/${id}`)
      return result.ok ? null : result.fault
    }}
    onClose={onClose}
    onDone={() => {
      onClose()
      onDone()
    }}
  >
    <p>{t('delete_text')}</p>
  </ConfirmDialog>
)
