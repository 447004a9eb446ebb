// The one server of before for which a licence is made, found by what it is called.
import { useState } from 'preact/hooks'
import { enrollWords } from '../../../words/enroll.ts'
import { Combobox } from '../../parts/combobox.tsx'
import { Field } from '../../parts/field.tsx'
import { useRecords } from '../../records.ts'
import { textsOf } from '../../session.ts'

const t = textsOf(enrollWords)

type Known = { readonly id: string; readonly name: string } | null
type Props = {
  readonly known: Known
  readonly onChange: (known: Known) => void
  readonly errors: readonly string[]
}

export function KnownServer({ known, onChange, errors }: Props) {
  const [text, setText] = useState('')
  const { records } = useRecords(text.trim())
  const options = records.servers.map(({ id, name, about }) => ({
    ...{ id, text: name },
    content: (
      <>
        <span class="text">{name}</span>
        <span class="muted text">{about}</span>
      </>
    ),
  }))
  if (known !== null)
    return (
      <div class="field">
        <p>
          {t('known_server')}: <strong class="text">{known.name}</strong>{' '}
          <button
            type="button"
            onClick={() => {
              setText('')
              onChange(null)
            }}
          >
            {t('known_other')}
          </button>
        </p>
        <p class="muted">{t('known_hint')}</p>
        {errors.map(error => (
          <p class="fault" role="alert" key={error}>
            {error}
          </p>
        ))}
      </div>
    )
  return (
    <Field label={t('known_server')} hint={t('known_hint')} errors={errors}>
      {({ id }) => (
        <Combobox
          inputId={id}
          label={t('known_server')}
          value={text}
          options={text.trim() === '' ? [] : options}
          takesFirst
          onInput={setText}
          onEscape={() => setText('')}
          onChoose={({ id, text: name }) => onChange({ id, name })}
        />
      )}
    </Field>
  )
}
