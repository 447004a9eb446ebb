// Whether a webhook is told, and why not.
import type { WebhookRow } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(administrationWords)

export function WebhookState({ isEnabled, failuresInARow, disabledReason }: WebhookRow) {
  if (!isEnabled)
    return (
      <>
        <StateMark state={disabledReason === null ? 'decommissioned' : 'warning'} text={t('disabled')} />{' '}
        <span class="muted text">{disabledReason}</span>
      </>
    )
  if (failuresInARow > 0) return <StateMark state="warning" text={t('fails', { count: failuresInARow })} />
  return <StateMark state="ok" text={t('enabled')} />
}
