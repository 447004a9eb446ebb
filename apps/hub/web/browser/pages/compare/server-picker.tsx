// One more server beside those that are compared, found by its name, host name or address.
import { useState } from 'preact/hooks'
import { compareWords } from '../../../words/compare.ts'
import { setParams } from '../../address/router.ts'
import { Combobox, type ComboboxOption } from '../../parts/combobox.tsx'
import { useRecords } from '../../records.ts'
import { textsOf } from '../../session.ts'

const t = textsOf(compareWords)

/** `chosen`: the ids of those that are compared already. */
export function ServerPicker({ chosen }: { readonly chosen: readonly string[] }) {
  const [text, setText] = useState('')
  const typed = text.trim()
  const found = useRecords(typed)
  const options = found.records.servers
    .filter(({ id }) => !chosen.includes(id))
    .map(
      ({ id, name, about }): ComboboxOption => ({
        id,
        text: name,
        content: (
          <>
            <span class="text">{name}</span>
            <span class="muted text">{about}</span>
          </>
        ),
      }),
    )
  return (
    <span class="server-picker">
      <Combobox
        label={t('add')}
        placeholder={t('add')}
        value={text}
        options={options}
        takesFirst
        onInput={setText}
        onEscape={() => setText('')}
        onChoose={({ id }) => {
          setText('')
          setParams({ servers: [...chosen, id].join(',') })
        }}
      />
      <span class="visually-hidden" role="status">
        {typed !== '' && found.typed === typed && options.length === 0 ? t('nobody_called') : ''}
      </span>
    </span>
  )
}
