// What one may do with a server. Without the right to act a button is absent; while the connection is lost nothing is
// done.
import { useSignal } from '@preact/signals'
import type { ServerHead } from '../../../views/server/head.ts'
import { serverWords } from '../../../words/server.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, type ApiResult, send } from '../../api.ts'
import { connection } from '../../connection/live.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { LateServerDialog, LateSilenceDialog } from '../../parts/late-dialog.tsx'
import { may, textsOf } from '../../session.ts'
import type { ServerDialogProps } from './late-props.ts'

const t = textsOf(serverWords)
const common = textsOf(shellWords)

type Shown = ServerDialogProps['shown'] | 'silence' | 'end_silence'
type DialogsProps = Omit<ServerDialogProps, 'shown'> & { readonly shown: Shown }

function Dialogs({ shown, server, onClose, onDone }: DialogsProps) {
  if (shown === 'silence')
    return <LateSilenceDialog start={{ serverIds: [server.id], hours: 4 }} onClose={onClose} onDone={onDone} />
  if (shown !== 'end_silence') return <LateServerDialog {...{ shown, server, onClose, onDone }} />
  const { silence } = server
  // Ended meanwhile.
  if (silence === null) return null
  return (
    <ConfirmDialog
      title={t('end_silence')}
      typed={null}
      act={t('end_silence')}
      onConfirm={async () => {
        const result = await send('POST', `/monitoring/silences/${silence.id}/end`)
        return result.ok ? null : result.fault
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        {silence.servers === null ? t('end_silence_all') : t('end_silence_servers', { count: silence.servers })}{' '}
        {silence.isRepeated ? t('end_silence_repeated') : null}
      </p>
    </ConfirmDialog>
  )
}

export function ServerActs({ server, onChanged }: { readonly server: ServerHead; readonly onChanged: () => void }) {
  const open = useSignal<Shown | null>(null)
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
  const opens = (which: Shown) => () => {
    open.value = which
  }
  const { silence, status, isDeleted } = server
  const isDraft = status === 'draft'
  /** What ends for this server alone, and this once, needs no question. */
  const isOwn = silence?.servers === 1 && !silence.isRepeated
  const ofDeleted = () =>
    may('servers.delete') ? button(t('restore'), () => act(() => send('POST', `${path}/restore`)), true) : null
  const ofLiving = () => (
    <>
      {may('servers.manage') && isDraft
        ? button(t('approve'), () => act(() => send('POST', `${path}/approve`)), true)
        : null}
      {may('monitoring.manage') ? button(t('silence'), opens('silence')) : null}
      {may('monitoring.manage') && silence !== null
        ? button(
            t('end_silence'),
            isOwn ? () => act(() => send('POST', `/monitoring/silences/${silence.id}/end`)) : opens('end_silence'),
          )
        : null}
      {may('monitoring.manage') || (may('servers.manage') && status === 'active')
        ? button(t('maintenance_until'), opens('maintenance'))
        : null}
      {may('servers.manage') && status === 'maintenance'
        ? button(t('end_maintenance'), () => act(() => send('PUT', `${path}/status`, { status: 'active' })))
        : null}
      {may('servers.manage') ? button(t('edit'), opens('edit')) : null}
      {may('servers.delete') ? button(t('delete'), opens('delete')) : null}
    </>
  )
  return (
    <div class="toolbar server-acts">
      {isDeleted ? ofDeleted() : ofLiving()}
      {fault.value === null ? null : (
        <p class="fault" role="alert">
          {common('not_done', { message: fault.value.message })}
        </p>
      )}
      {/* One that is open stays when the server is deleted meanwhile: what was typed is not lost. */}
      {open.value === null ? null : <Dialogs shown={open.value} server={server} onClose={close} onDone={changed} />}
    </div>
  )
}
