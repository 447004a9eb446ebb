// An agent goes to another server: its values stand there from then on.
import { useEffect, useState } from 'preact/hooks'
import type { AgentRow } from '../../../views/agents.ts'
import type { ServersView } from '../../../views/servers.ts'
import { licensesWords } from '../../../words/licenses.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ActFault } from '../../parts/fault.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'
import { useView } from '../../view.ts'

const t = textsOf(licensesWords)
const shell = textsOf(shellWords)

type Props = { readonly agent: AgentRow; readonly onClose: () => void; readonly onDone: () => void }

export function ReassignDialog({ agent, onClose, onDone }: Props) {
  const [search, setSearch] = useState('')
  const [chosen, setChosen] = useState('')
  const [fault, setFault] = useState<ApiFault | null>(null)
  const found = useView<ServersView>('servers', { q: search }).data?.rows ?? []
  const serverId = found.some(server => server.id === chosen) ? chosen : (found[0]?.id ?? '')
  useEffect(() => setFault(null), [serverId])
  const onSubmit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const result = await send('POST', `/monitoring/agents/${agent.id}/reassign`, { server_id: serverId })
    if (!result.ok) return setFault(result.fault)
    onDone()
    onClose()
  }
  return (
    <Dialog title={t('reassign_of', { name: agent.hostname })} onClose={onClose}>
      <form onSubmit={event => void onSubmit(event)}>
        <TextField label={t('search_server')} value={search} onInput={setSearch} autoComplete="off" />
        <SelectField
          label={t('to_server')}
          value={serverId}
          choices={found.map(({ id, name }) => ({ value: id, text: name }))}
          onChange={setChosen}
          errors={fault?.errors.server_id}
        />
        <ActFault fault={fault} />
        <div class="dialog-acts">
          <button type="button" onClick={onClose}>
            {shell('cancel')}
          </button>
          <button type="submit" class="primary" disabled={serverId === ''}>
            {t('reassign')}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
