// What one may do with a server. Without the right to act a button is absent; while the connection is lost nothing is
// done.
import { useSignal } from '@preact/signals'
import type { ServerHead } from '../../../views/server/head.ts'
import { serverWords } from '../../../words/server.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, type ApiResult, send } from '../../api.ts'
import { connection } from '../../connection/live.ts'
import { LateServerDialog } from '../../parts/late-dialog.tsx'
import { may, textsOf } from '../../session.ts'
import type { ServerDialogProps } from './late-props.ts'

const t = textsOf(serverWords)
const common = textsOf(shellWords)

export function ServerActs({ server, onChanged }: { readonly server: ServerHead; readonly onChanged: () => void }) {
  const open = useSignal<ServerDialogProps['shown'] | null>(null)
  const fault = useSignal<ApiFault | null>(null)
  const isBusy = useSignal(false)
  const path = `/servers/${server.id}`
  const close = () => {
    open.value = null
  }
  const changed = () => {
    close()
    onChanged()
  }
  const act = async (request: () => Promise<ApiResult>) => {
    isBusy.value = true
    const result = await request()
    isBusy.value = false
    fault.value = result.ok ? null : result.fault
    if (result.ok) onChanged()
  }
  const isOff = isBusy.value || connection.value === 'lost'
  const button = (text: string, onClick: () => void, isPrimary = false) => (
    <button type="button" class={isPrimary ? 'primary' : undefined} disabled={isOff} onClick={onClick}>
      {text}
    </button>
  )
  const opens = (which: ServerDialogProps['shown']) => () => {
    open.value = which
  }
  const { silence, status, isDeleted } = server
  const isDraft = status === 'draft'
  if (isDeleted)
    return (
      <div class="toolbar server-acts">
        {may('servers.delete') ? button(t('restore'), () => act(() => send('POST', `${path}/restore`)), true) : null}
        {fault.value === null ? null : <p class="fault">{common('not_done', { message: fault.value.message })}</p>}
      </div>
    )
  return (
    <div class="toolbar server-acts">
      {may('servers.manage') && isDraft
        ? button(t('approve'), () => act(() => send('POST', `${path}/approve`)), true)
        : null}
      {may('monitoring.manage') && silence === null ? button(t('silence'), opens('silence')) : null}
      {may('monitoring.manage') && silence !== null
        ? button(t('end_silence'), () => act(() => send('POST', `/monitoring/silences/${silence.id}/end`)))
        : null}
      {(may('monitoring.manage') && silence === null) || (may('servers.manage') && status === 'active')
        ? button(t('maintenance_until'), opens('maintenance'))
        : null}
      {may('servers.manage') && status === 'maintenance'
        ? button(t('end_maintenance'), () => act(() => send('PUT', `${path}/status`, { status: 'active' })))
        : null}
      {may('servers.manage') ? button(t('edit'), opens('edit')) : null}
      {may('servers.delete') ? button(t('delete'), opens('delete')) : null}
      {fault.value === null ? null : (
        <p class="fault" role="alert">
          {common('not_done', { message: fault.value.message })}
        </p>
      )}
      {open.value === null ? null : (
        <LateServerDialog shown={open.value} server={server} onClose={close} onDone={changed} />
      )}
    </div>
  )
}
