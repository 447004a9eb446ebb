// What is said beside the name of a rule, in the list and on its own page.
import type { RuleRow } from '../../../views/rules.ts'
import { rulesWords } from '../../../words/rules.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(rulesWords)

/** What is said beside the name of a rule: it is off, came with the product, or is not run. */
export function RuleNotes({ rule }: { readonly rule: RuleRow }) {
  return (
    <span class="rule-notes">
      {rule.isEnabled ? null : <span class="note off">{t('disabled')}</span>}
      {rule.isDefault ? <span class="note">{t('default_rule')}</span> : null}
      {rule.checkId === null ? null : <span class="note">{t('from_check')}</span>}
      {rule.invalid === null ? null : <StateMark state="warning" text={t('invalid', { message: rule.invalid })} />}
    </span>
  )
}
