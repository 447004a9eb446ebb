// Deleting a rule asks for its name: it cannot be undone.
import { useState } from 'preact/hooks'
import type { RuleRow } from '../../../views/rules.ts'
import { rulesWords } from '../../../words/rules.ts'
import { shellWords } from '../../../words/shell.ts'
import { goTo, hrefTo } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ActFault } from '../../parts/fault.tsx'
import { TextField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(rulesWords)
const shell = textsOf(shellWords)

export function DeleteDialog({ rule, onClose }: { readonly rule: RuleRow; readonly onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const [fault, setFault] = useState<ApiFault | null>(null)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (typed !== rule.name) return
    const result = await send('DELETE', `/monitoring/rules/${rule.id}`)
    if (result.ok) goTo(hrefTo('rules'), 'replace')
    else setFault(result.fault)
  }
  return (
    <Dialog title={t('delete_title', { name: rule.name })} onClose={onClose}>
      <form onSubmit={event => void submit(event)}>
        <p>{t('delete_text')}</p>
        <TextField label={t('name')} value={typed} onInput={setTyped} autoComplete="off" />
        <ActFault fault={fault} />
        <div class="dialog-acts">
          <button type="button" onClick={onClose}>
            {shell('cancel')}
          </button>
          <button type="submit" class="danger" disabled={typed !== rule.name}>
            {t('delete_do')}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
