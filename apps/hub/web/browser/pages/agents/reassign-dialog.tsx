// An agent goes to another server: its values stand there from then on.
import { useState } from 'preact/hooks'
import type { AgentRow } from '../../../views/agents.ts'
import type { ServersView } from '../../../views/servers.ts'
import { licensesWords } from '../../../words/licenses.ts'
import { type ApiFault, send } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'
import { useView } from '../../view.ts'

const t = textsOf(licensesWords)

type Props = { readonly agent: AgentRow; readonly onClose: () => void; readonly onDone: () => void }

export function ReassignDialog({ agent, onClose, onDone }: Props) {
  const [search, setSearch] = useState('')
  const [chosen, setChosen] = useState('')
  const found = useView<ServersView>('servers', { q: search }).data?.rows ?? []
  const serverId = found.some(server => server.id === chosen) ? chosen : (found[0]?.id ?? '')
  const move = async (): Promise<ApiFault | null> => {
    const result = await send('POST', `/monitoring/agents/${agent.id}/reassign`, { server_id: serverId })
    if (!result.ok) return result.fault
    onDone()
    onClose()
    return null
  }
  return (
    <Dialog title={t('reassign_of', { name: agent.hostname })} onClose={onClose}>
      <DialogForm act={t('reassign')} isReady={serverId !== ''} onSend={move} onCancel={onClose}>
        {errorsOf => (
          <>
            <TextField label={t('search_server')} value={search} onInput={setSearch} autoComplete="off" />
            <SelectField
              label={t('to_server')}
              value={serverId}
              choices={found.map(({ id, name }) => ({ value: id, text: name }))}
              onChange={setChosen}
              errors={errorsOf('server_id')}
            />
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}
