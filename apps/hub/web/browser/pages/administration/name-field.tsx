// What a person, a role, a team or a webhook is called.
import { administrationWords } from '../../../words/administration.ts'
import { TextField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(administrationWords)

type Props = {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly errorsOf: (field: string) => readonly string[]
}

export const NameField = ({ value, onInput, errorsOf }: Props) => (
  <TextField label={t('name')} isRequired maxLength={255} value={value} onInput={onInput} errors={errorsOf('name')} />
)
