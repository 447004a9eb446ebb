// The form of a resource of any kind, made of the fields of its kind: for a new one, or with what one has.
import { useState } from 'preact/hooks'
import type { NamedResource, ResourceChoicesView, ResourceField } from '../../../views/resource-pages.ts'
import { infrastructureWords } from '../../../words/infrastructure.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send } from '../../api.ts'
import { shownZone } from '../../format.ts'
import { Combobox } from '../../parts/combobox.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { Field, SelectField, TextField } from '../../parts/field.tsx'
import { fieldTitle } from '../../parts/resource-value.tsx'
import { textsOf } from '../../session.ts'
import { useView } from '../../view.ts'
import { changedValues, type Draft, draftOf, fallbacksOf } from './form-values.ts'

const t = textsOf(infrastructureWords)
const shell = textsOf(shellWords)

type InputProps = {
  readonly field: ResourceField
  readonly value: string
  readonly names: readonly NamedResource[]
  readonly onInput: (value: string) => void
  readonly errors: readonly string[]
}

/** What a field names, found by a part of its name; several where the field takes several. */
function ReferenceField({ field, value, names, onInput, errors }: InputProps) {
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState<readonly NamedResource[]>(names)
  const { data } = useView<ResourceChoicesView>('resource-choices', { kind: field.to ?? '', search: text.trim() })
  const ids = value.split('\n').filter(id => id !== '')
  const isMany = field.form === 'references'
  const label = fieldTitle(field.name)
  const nameOf = (id: string): string => chosen.find(each => each.id === id)?.name ?? id
  const options = (data?.choices ?? [])
    .filter(({ id }) => !ids.includes(id))
    .map(({ id, name }) => ({ id, text: name, content: <span class="text">{name}</span> }))
  return (
    <Field label={label} hint={t('search_name')} errors={errors}>
      {({ id: inputId }) => (
        <>
          <ul class="plain chosen">
            {ids.map(id => (
              <li key={id}>
                <span class="text">{nameOf(id)}</span>{' '}
                <button
                  type="button"
                  aria-label={t('remove_of', { name: nameOf(id) })}
                  onClick={() => onInput(ids.filter(other => other !== id).join('\n'))}
                >
                  {shell('close')}
                </button>
              </li>
            ))}
          </ul>
          <Combobox
            inputId={inputId}
            label={label}
            value={text}
            options={options}
            takesFirst
            onInput={setText}
            onEscape={() => setText('')}
            onChoose={({ id, text: name }) => {
              setChosen([...chosen, { id, name, kind: field.to ?? '' }])
              setText('')
              onInput(isMany ? [...ids, id].join('\n') : id)
            }}
          />
        </>
      )}
    </Field>
  )
}

const LINES: Partial<Record<ResourceField['form'], number>> = { long_text: 3, texts: 3, json: 8 }
const hints: Partial<Record<ResourceField['form'], string>> = {
  texts: t('one_a_line'),
  json: t('as_json'),
  time: shownZone(),
  secret: t('secret_hint'),
}

function InputOf(props: InputProps) {
  const { field, value, onInput, errors } = props
  const { form, isRequired } = field
  const label = fieldTitle(field.name)
  if (form === 'reference' || form === 'references') return <ReferenceField {...props} />
  if (form === 'choice' || form === 'boolean') {
    const known = form === 'boolean' ? ['true', 'false'] : field.choices
    const none = isRequired || field.fallback !== null ? [] : [{ value: '', text: t('not_set') }]
    const choices = known.map(each => ({
      value: each,
      text: form === 'boolean' ? t(each === 'true' ? 'yes' : 'no') : each,
    }))
    return (
      <SelectField label={label} value={value} choices={[...none, ...choices]} onChange={onInput} errors={errors} />
    )
  }
  const type =
    form === 'number' ? 'number' : form === 'time' ? 'datetime-local' : form === 'secret' ? 'password' : 'text'
  return (
    <TextField
      label={label}
      hint={hints[form]}
      value={value}
      onInput={onInput}
      type={type}
      isRequired={isRequired}
      {...(LINES[form] === undefined ? {} : { lines: LINES[form] })}
      {...(field.charsMax === null || form === 'texts' || form === 'json' ? {} : { maxLength: field.charsMax })}
      autoComplete="off"
      errors={errors}
    />
  )
}

type Props = {
  readonly title: string
  readonly fields: readonly ResourceField[]
  /** Where the form is sent: of a new one to the list, with the values that it has none of. */
  readonly path: string
  readonly existing: { readonly values: Readonly<Record<string, unknown>>; readonly version: number } | null
  readonly names: readonly NamedResource[]
  readonly onClose: () => void
  /** With the id of what was written. */
  readonly onDone: (id: string) => void
}

export function ResourceForm({ title, fields: all, path, existing, names, onClose, onDone }: Props) {
  // What must be given first.
  const fields = all
    .filter(({ isImmutable }) => existing === null || !isImmutable)
    .sort((one, other) => Number(other.isRequired) - Number(one.isRequired))
  const [before] = useState<Draft>(() => draftOf(fields, existing?.values ?? fallbacksOf(fields)))
  const [draft, setDraft] = useState<Draft>(before)
  const save = async (): Promise<ApiFault | null> => {
    const changed = changedValues(fields, before, draft)
    if ('fault' in changed) return changed.fault
    const result =
      existing === null
        ? await send<{ data: { id: string } }>('POST', path, changed.body)
        : await send<{ data: { id: string } }>('PATCH', path, { ...changed.body, version: existing.version })
    if (!result.ok) return result.fault
    onDone(result.body.data.id)
    return null
  }
  return (
    <Dialog title={title} onClose={onClose} isWide>
      <DialogForm act={shell('save')} onSend={save} onCancel={onClose}>
        {errorsOf =>
          fields.map(field => (
            <InputOf
              key={field.name}
              field={field}
              value={draft[field.name] ?? ''}
              names={names}
              onInput={value => setDraft(now => ({ ...now, [field.name]: value }))}
              errors={errorsOf(field.name)}
            />
          ))
        }
      </DialogForm>
    </Dialog>
  )
}
