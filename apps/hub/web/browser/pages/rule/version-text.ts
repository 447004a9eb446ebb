// What an edit of a rule changed, in words: its fields as the editor calls them, and values with their units.
import type { RuleRow } from '../../../views/rules.ts'
import { ruleVersionWords } from '../../../words/rule-versions.ts'
import { rulesWords } from '../../../words/rules.ts'
import { shellWords } from '../../../words/shell.ts'
import { duration, NOTHING, valueText } from '../../format.ts'
import { metricTitle } from '../../metric-title.ts'
import { textsOf } from '../../session.ts'
import { scopeText } from '../rules/condition-text.ts'

const t = textsOf(rulesWords)
const version = textsOf(ruleVersionWords)
const shell = textsOf(shellWords)

const ACTS = ['create', 'update', 'enable', 'disable', 'duplicate'] as const

/** `rule.update` in words. */
export function actText(action: string): string {
  const known = ACTS.find(act => action === `rule.${act}`)
  return version(known ? `act_${known}` : 'act_other')
}

const FIELDS = [
  ...(['kind', 'metric', 'matchers', 'operator', 'threshold', 'for_seconds', 'recover_threshold'] as const),
  ...(['recover_for_seconds', 'no_data', 'renotify_seconds', 'enabled'] as const),
]
const PLAIN = ['name', 'scope', 'severity'] as const

export function fieldText(name: string): string {
  const plain = PLAIN.find(field => field === name)
  const known = FIELDS.find(field => field === name)
  return plain !== undefined ? t(plain) : known !== undefined ? version(`field_${known}`) : name
}

const NO_DATA = ['ignore', 'alert', 'resolve'] as const
const SEVERITIES = ['info', 'warning', 'critical'] as const

/** As a record has it, which names its servers, or a request, which leaves out what is empty. */
type StoredScope = Partial<Omit<RuleRow['scope'], 'servers'>> & { readonly server_ids?: readonly string[] }

const NO_SCOPE = { all: false, tags: [], environments: [], roles: [], datacenters: [] }

const scopeOf = ({ server_ids: ids = [], ...scope }: StoredScope): string =>
  scopeText({ ...NO_SCOPE, ...scope, servers: ids.length })

/** Without a known unit a number stands alone. */
export function changedText(field: string, value: unknown, unit: string | null): string {
  if (value === null || value === undefined || value === '') return NOTHING
  if (typeof value === 'boolean') return value ? version('enabled') : t('disabled')
  if (typeof value === 'number')
    return field.endsWith('_seconds')
      ? duration(value * 1000)
      : valueText(field.includes('threshold') ? unit : null, value)
  if (typeof value !== 'string') return field === 'scope' ? scopeOf(value) : JSON.stringify(value)
  if (field === 'metric') return metricTitle(value)
  const noData = field === 'no_data' ? NO_DATA.find(each => each === value) : undefined
  if (noData !== undefined) return version(`no_data_${noData}`)
  const severity = field === 'severity' ? SEVERITIES.find(each => each === value) : undefined
  return severity === undefined ? value : shell(`state_${severity}`)
}
