// Deleting a rule asks for its name: it cannot be undone.
import type { RuleRow } from '../../../views/rules.ts'
import { rulesWords } from '../../../words/rules.ts'
import { goTo, hrefTo } from '../../address/router.ts'
import { send } from '../../api.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(rulesWords)

export const DeleteDialog = ({ rule, onClose }: { readonly rule: RuleRow; readonly onClose: () => void }) => (
  <ConfirmDialog
    title={t('delete_title', { name: rule.name })}
    typed={{ text: rule.name, label: t('name') }}
    act={t('delete_do')}
    onConfirm={async () => {
      const result = await send('DELETE', `/monitoring/rules/${rule.id}`)
      return result.ok ? null : result.fault
    }}
    onDone={() => goTo(hrefTo('rules'), 'replace')}
    onClose={onClose}
  >
    <p>{t('delete_text')}</p>
  </ConfirmDialog>
)
