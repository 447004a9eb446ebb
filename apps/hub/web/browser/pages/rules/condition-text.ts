// A rule as a sentence, the same in lists, on its page and in the editor.
import type { RuleRow } from '../../../views/rules.ts'
import { rulesWords } from '../../../words/rules.ts'
import { conditionPart } from '../../condition-part.ts'
import { duration, valueText } from '../../format.ts'
import { metricTitle } from '../../metric-title.ts'
import { textsOf } from '../../session.ts'

const t = textsOf(rulesWords)

type Condition = RuleRow['condition']
type Matcher = NonNullable<Condition['matchers']>[string]

function matcherText(label: string, matcher: Matcher): string {
  if (typeof matcher === 'string') return `${label}="${matcher}"`
  return 'regex' in matcher
    ? `${label}=~"${matcher.regex}"`
    : `${label}=[${matcher.map(value => `"${value}"`).join(',')}]`
}

/** `Disk usage mount="/"` */
function seriesText({ metric, matchers }: Condition): string {
  const parts = Object.entries(matchers ?? {}).map(([label, matcher]) => matcherText(label, matcher))
  return [metric === null ? '' : metricTitle(metric), ...parts].join(' ')
}

/** `Disk usage over 95 % for 5m, until below 80 %` */
export function conditionText({ kind, condition, unit }: Pick<RuleRow, 'kind' | 'condition' | 'unit'>): string {
  const { operator, threshold, for_seconds: forSeconds, recover_threshold: recover } = condition
  if (kind === 'agent_down' || operator === null) return t('agent_silent')
  const text = [
    conditionPart({ series: seriesText(condition), operator, value: valueText(unit, threshold), forSeconds }),
  ]
  if (recover !== null && operator !== '==' && operator !== '!=')
    text.push(t(operator.startsWith('>') ? 'recovers_below' : 'recovers_above', { value: valueText(unit, recover) }))
  if (condition.recover_for_seconds)
    text.push(t('recovers_for', { time: duration(condition.recover_for_seconds * 1000) }))
  if (condition.no_data === 'alert') text.push(t('tells_no_data'))
  return text.join(', ')
}

/** What a scope names, in words. */
export function scopeText(scope: RuleRow['scope']): string {
  if (scope.all) return t('all_servers')
  const lists = [
    ['scope_tags', scope.tags],
    ['scope_environments', scope.environments],
    ['scope_roles', scope.roles],
    ['scope_datacenters', scope.datacenters],
  ] as const
  const parts = lists.filter(([, names]) => names.length > 0).map(([key, names]) => t(key, { names: names.join(', ') }))
  if (scope.servers > 0) parts.push(t('scope_named', { count: scope.servers }))
  return parts.join('; ')
}
