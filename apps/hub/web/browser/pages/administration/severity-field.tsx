// From which severity on somebody is told.
import type { WebhookRow } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { SelectField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(administrationWords)

type Severity = WebhookRow['minSeverity']
const SEVERITIES = ['info', 'warning', 'critical'] as const satisfies readonly Severity[]

type Props = {
  readonly value: Severity
  readonly onChange: (severity: Severity) => void
  readonly errorsOf: (field: string) => readonly string[]
}

export const SeverityField = ({ value, onChange, errorsOf }: Props) => (
  <SelectField
    label={t('min_severity')}
    value={value}
    choices={SEVERITIES.map(each => ({ value: each, text: t(`severity_${each}`) }))}
    onChange={chosen => onChange(SEVERITIES.find(each => each === chosen) ?? 'info')}
    errors={errorsOf('min_severity')}
  />
)
