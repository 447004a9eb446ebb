// The columns of the list of rules.
import type { RuleRow } from '../../../views/rules.ts'
import { rulesWords } from '../../../words/rules.ts'
import { rulesListWords } from '../../../words/rules-list.ts'
import { hrefTo } from '../../address/router.ts'
import { count } from '../../format.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import type { Column } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'
import { conditionText, scopeText } from './condition-text.ts'
import { RuleNotes } from './rule-notes.tsx'

const t = textsOf(rulesWords)
const list = textsOf(rulesListWords)

type RuleActs = {
  readonly setEnabled: (rule: RuleRow, isEnabled: boolean) => void
  readonly duplicate: (rule: RuleRow) => void
}

const RowActs = ({ rule, acts }: { readonly rule: RuleRow; readonly acts: RuleActs }) => (
  <span class="row-acts">
    <button
      type="button"
      aria-label={list(rule.isEnabled ? 'disable_named' : 'enable_named', { name: rule.name })}
      onClick={() => acts.setEnabled(rule, !rule.isEnabled)}
    >
      {t(rule.isEnabled ? 'disable' : 'enable')}
    </button>
    {rule.kind === 'agent_down' ? null : (
      <button
        type="button"
        aria-label={list('duplicate_named', { name: rule.name })}
        onClick={() => acts.duplicate(rule)}
      >
        {t('duplicate')}
      </button>
    )}
  </span>
)

export const ruleColumns = (acts: RuleActs): readonly Column<RuleRow>[] => [
  {
    key: 'name',
    title: t('name'),
    isName: true,
    sort: 'name',
    cell: rule => (
      <span class="rule-name">
        <a href={hrefTo('rule', { rule: rule.id })}>{rule.name}</a> <RuleNotes rule={rule} />
      </span>
    ),
  },
  {
    key: 'severity',
    title: t('severity'),
    sort: 'severity',
    cell: rule => <StateMark state={rule.severity} />,
  },
  {
    key: 'condition',
    title: t('condition'),
    cell: rule => (
      <span class="sentence" title={conditionText(rule)}>
        {conditionText(rule)}
      </span>
    ),
  },
  {
    key: 'scope',
    title: t('scope'),
    sort: 'servers',
    cell: rule => (
      <span title={scopeText(rule.scope)}>
        {scopeText(rule.scope)} <span class="muted">({count(rule.serverCount)})</span>
      </span>
    ),
  },
  {
    key: 'firing',
    title: t('firing'),
    sort: 'firing',
    isNumber: true,
    cell: rule => (rule.firing > 0 ? <strong>{count(rule.firing)}</strong> : count(0)),
  },
  { key: 'fired', title: list('fired'), sort: 'fired', isNumber: true, cell: rule => count(rule.firedInWeek) },
  {
    key: 'edited',
    title: list('edited'),
    sort: 'edited',
    from: 'wide',
    cell: rule => <Time atMs={rule.updatedAtMs} />,
  },
  {
    key: 'acts',
    title: list('acts'),
    cell: rule => <RowActs rule={rule} acts={acts} />,
  },
]
