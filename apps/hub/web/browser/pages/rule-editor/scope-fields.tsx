// The scope of a rule: all servers, or those that have one of the chosen words or are named.
import { useState } from 'preact/hooks'
import type { RuleEditorView } from '../../../views/rule-editor.ts'
import type { ServersView } from '../../../views/servers.ts'
import { ruleEditorWords } from '../../../words/rule-editor.ts'
import { count } from '../../format.ts'
import { Combobox } from '../../parts/combobox.tsx'
import { Icon } from '../../parts/icons.tsx'
import { textsOf } from '../../session.ts'
import { useView } from '../../view.ts'
import type { FieldProps } from './condition-fields.tsx'
import type { DraftScope } from './draft.ts'

const t = textsOf(ruleEditorWords)

const LISTS = [
  ['tags', 'tag'],
  ['environments', 'env'],
  ['roles', 'role'],
  ['datacenters', 'dc'],
] as const
const OPTIONS_MAX = 10

export function ScopeFields({ draft, change, errorsOf, data }: FieldProps & { readonly data: RuleEditorView }) {
  const { scope } = draft
  const put = (changes: Partial<DraftScope>): void => change({ scope: { ...scope, ...changes } })
  const errors = ['scope', 'scope.server_ids', ...LISTS.map(([list]) => `scope.${list}`)].flatMap(errorsOf)
  return (
    <fieldset class="panel">
      <legend>{t('scope')}</legend>
      {[true, false].map(isAll => (
        <label class="radio" key={String(isAll)}>
          <input type="radio" name="scope" checked={scope.all === isAll} onChange={() => put({ all: isAll })} />
          {t(isAll ? 'scope_all' : 'scope_some')}
        </label>
      ))}
      {scope.all
        ? null
        : LISTS.map(([list, facet]) => (
            <WordList
              key={list}
              label={t(`scope_${list}`)}
              chosen={scope[list]}
              known={data.facets[facet] ?? []}
              onChange={names => put({ [list]: names })}
            />
          ))}
      {scope.all ? null : <ServerList scope={scope} put={put} />}
      {errors.map(error => (
        <p class="fault" key={error}>
          {error}
        </p>
      ))}
    </fieldset>
  )
}

type WordListProps = {
  readonly label: string
  readonly chosen: readonly string[]
  readonly known: readonly (readonly [value: string, count: number])[]
  readonly onChange: (names: readonly string[]) => void
}

/** Words that servers have, each with how many have it; chosen ones that no server has stay visible. */
function WordList({ label, chosen, known, onChange }: WordListProps) {
  const missing = chosen.filter(name => !known.some(([value]) => value === name))
  const all = [...known, ...missing.map(name => [name, 0] as const)]
  if (all.length === 0) return null
  return (
    <fieldset class="words">
      <legend>{label}</legend>
      {all.map(([value, servers]) => (
        <label key={value}>
          <input
            type="checkbox"
            checked={chosen.includes(value)}
            onChange={event =>
              onChange(event.currentTarget.checked ? [...chosen, value] : chosen.filter(name => name !== value))
            }
          />
          {value} <span class="muted">{count(servers)}</span>
        </label>
      ))}
    </fieldset>
  )
}

type ServerListProps = { readonly scope: DraftScope; readonly put: (changes: Partial<DraftScope>) => void }

function ServerList({ scope, put }: ServerListProps) {
  const [typed, setTyped] = useState('')
  const found = useView<ServersView>('servers', { q: typed })
  const rows = typed === '' ? [] : (found.data?.rows ?? [])
  const options = rows
    .filter(row => !scope.servers.some(server => server.id === row.id))
    .slice(0, OPTIONS_MAX)
    .map(({ id, name }) => ({ id, text: name, content: <span>{name}</span> }))
  return (
    <fieldset class="words">
      <legend>{t('scope_servers')}</legend>
      <span class="chips">
        {scope.servers.map(({ id, name }) => (
          <button
            type="button"
            class="chip"
            key={id}
            aria-label={t('remove', { name })}
            onClick={() => put({ servers: scope.servers.filter(server => server.id !== id) })}
          >
            {name}
            <Icon name="close" />
          </button>
        ))}
      </span>
      <Combobox
        label={t('add_server')}
        placeholder={t('add_server')}
        value={typed}
        options={options}
        onInput={setTyped}
        onChoose={({ id, text }) => {
          put({ servers: [...scope.servers, { id, name: text }] })
          setTyped('')
        }}
      />
    </fieldset>
  )
}
