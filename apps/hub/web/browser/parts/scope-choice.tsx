// Whom something is about, as a form chooses it: all servers, named ones, or those of a tag, an environment, a role or
// a data centre. What says more than that is kept as it is.
import '../view.ts'
import { useState } from 'preact/hooks'
import type { SilenceRow } from '../../views/silences.ts'
import { scopesWords } from '../../words/scopes.ts'
import { useRecords } from '../records.ts'
import { textsOf } from '../session.ts'
import { Combobox } from './combobox.tsx'
import { SelectField, TextField } from './field.tsx'
import { Icon } from './icons.tsx'

const t = textsOf(scopesWords)

const kinds = ['given', 'all', 'named', 'tag', 'env', 'role', 'dc'] as const
type Kind = (typeof kinds)[number]

export type Named = { readonly id: string; readonly name: string }
export type ChosenScope = { readonly kind: Kind; readonly value: string; readonly named: readonly Named[] }

/** A scope as the API takes it. */
export type SentScope = Readonly<Record<string, unknown>>

/** A scope as the fields say it: of one kind and its values, or as it is where it names several things. */
export function chosenOf(scope: SilenceRow['scope']): ChosenScope {
  if (scope.all) return { kind: 'all', value: '', named: [] }
  const lists = (
    [
      ['tag', scope.tags],
      ['env', scope.environments],
      ['role', scope.roles],
      ['dc', scope.datacenters],
    ] as const
  ).filter(([, values]) => values.length > 0)
  const [only] = lists
  const isPlain = lists.length === 1 && scope.server_ids.length === 0 && only?.[1].every(each => !each.includes(','))
  return isPlain && only
    ? { kind: only[0], value: only[1].join(', '), named: [] }
    : { kind: 'given', value: '', named: [] }
}

/** `given`: what the kind of that name stands for. */
export function scopeOf({ kind, value, named }: ChosenScope, given: SentScope): SentScope {
  const values = value
    .split(',')
    .map(each => each.trim())
    .filter(each => each !== '')
  switch (kind) {
    case 'given':
      return given
    case 'all':
      return { all: true }
    case 'named':
      return { server_ids: named.map(({ id }) => id) }
    case 'tag':
      return { tags: values }
    case 'env':
      return { environments: values }
    case 'role':
      return { roles: values }
    case 'dc':
      return { datacenters: values }
  }
}

export const isIncomplete = ({ kind, value, named }: ChosenScope): boolean =>
  kind === 'named' ? named.length === 0 : kind !== 'all' && kind !== 'given' && value.trim() === ''

type Change = (change: Partial<ChosenScope>) => void

type Props = {
  readonly chosen: ChosenScope
  readonly change: Change
  /** What the scope that it begins with is called; null: it begins with none. */
  readonly given: string | null
  readonly errors: readonly string[]
}

export function ScopeChoice({ chosen, change, given, errors }: Props) {
  const choices = kinds
    .filter(kind => kind !== 'given' || given !== null)
    .map(kind => ({ value: kind, text: kind === 'given' ? (given ?? '') : t(kind) }))
  return (
    <>
      <SelectField
        label={t('servers')}
        value={chosen.kind}
        choices={choices}
        onChange={value => change({ kind: kinds.find(kind => kind === value) ?? 'all' })}
        errors={errors}
      />
      {chosen.kind === 'given' || chosen.kind === 'all' ? null : chosen.kind === 'named' ? (
        <NamedChoice of="servers" label={t('add')} named={chosen.named} onChange={named => change({ named })} />
      ) : (
        <TextField
          label={t('value')}
          hint={t('value_hint')}
          value={chosen.value}
          onInput={value => change({ value })}
          isRequired
        />
      )}
    </>
  )
}

type NamedProps = {
  readonly of: 'servers' | 'rules'
  readonly label: string
  readonly named: readonly Named[]
  readonly onChange: (named: readonly Named[]) => void
}

/** Some of the company's servers or rules, found by what they are called. */
export function NamedChoice({ of, label, named, onChange }: NamedProps) {
  const [text, setText] = useState('')
  const { records } = useRecords(text.trim())
  const found = of === 'rules' ? records.rules.map(rule => ({ ...rule, about: '' })) : records.servers
  const options = found
    .filter(({ id }) => !named.some(each => each.id === id))
    .map(({ id, name, about }) => ({
      ...{ id, text: name },
      content: (
        <>
          <span class="text">{name}</span>
          <span class="muted text">{about}</span>
        </>
      ),
    }))
  return (
    <div class="field">
      <span class="chips">
        {named.map(({ id, name }) => (
          <button
            type="button"
            class="chip"
            key={id}
            aria-label={t('remove', { name })}
            onClick={() => onChange(named.filter(each => each.id !== id))}
          >
            {name}
            <Icon name="close" />
          </button>
        ))}
      </span>
      <Combobox
        label={label}
        placeholder={label}
        value={text}
        options={text.trim() === '' ? [] : options}
        takesFirst
        onInput={setText}
        onEscape={() => setText('')}
        onChoose={({ id, text: name }) => {
          setText('')
          onChange([...named, { id, name }])
        }}
      />
    </div>
  )
}
