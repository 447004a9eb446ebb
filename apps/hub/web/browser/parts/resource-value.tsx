// A value of a resource, whatever it is: texts, times, names of what it refers to, and small tables of what it holds.
import type { NamedResource } from '../../views/resource-pages.ts'
import { infrastructureWords } from '../../words/infrastructure.ts'
import { hrefTo } from '../address/router.ts'
import { isObject } from '../api.ts'
import { count, decimal, NOTHING } from '../format.ts'
import { textsOf } from '../session.ts'
import { Time } from './time.tsx'

const t = textsOf(infrastructureWords)

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
const ROWS_SHOWN = 50
const CELLS_SHOWN = 8

/** A field as it is read: the API's name without its underscores, and without saying that it is named by an id. */
export const fieldTitle = (name: string): string => name.replace(/_ids?$/, '').replaceAll('_', ' ')

/** The page of what is named; null where it has none. */
export function hrefOfNamed({ id, kind }: Pick<NamedResource, 'id' | 'kind'>): string | null {
  if (kind === 'server') return hrefTo('server', { server: id })
  if (kind === 'rule') return hrefTo('rule', { rule: id })
  if (kind === 'check') return hrefTo('check', { check: id })
  if (['team', 'user', 'webhook', 'license', 'option_item'].includes(kind)) return null
  return hrefTo('resource', { kind, resource: id })
}

export function NameOf({ named }: { readonly named: NamedResource }) {
  const href = hrefOfNamed(named)
  return href === null ? (
    <span class="text">{named.name}</span>
  ) : (
    <a class="text" href={href}>
      {named.name}
    </a>
  )
}

/** A number that names something, as a port does, is no amount: it stands without marks between its digits. */
const NAMING = /(^|_)(port|vlan|id|serial|asn|number|version|revision|code|status)$/
const isNaming = (field: string): boolean => NAMING.test(field.replace(/_id$/, ''))

type Props = {
  readonly value: unknown
  /** The field that has it. */
  readonly field?: string
  readonly names?: readonly NamedResource[]
}

/** A row about a field of the resource says which; its values are that field's. */
const fieldOf = (row: Readonly<Record<string, unknown>>, column: string): string =>
  typeof row.field === 'string' ? row.field : column

function Rows({ rows, names }: { readonly rows: readonly Readonly<Record<string, unknown>>[] } & Pick<Props, 'names'>) {
  const columns = [...new Set(rows.flatMap(row => Object.keys(row)))].slice(0, CELLS_SHOWN)
  return (
    <div class="value-rows">
      <table>
        <thead>
          <tr>
            {columns.map(column => (
              <th scope="col" key={column}>
                {fieldTitle(column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ROWS_SHOWN).map((row, at) => (
            <tr key={at}>
              {columns.map(column => (
                <td key={column}>
                  <Value value={row[column]} field={fieldOf(row, column)} names={names} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > ROWS_SHOWN ? <p class="muted">{t('more', { count: rows.length - ROWS_SHOWN })}</p> : null}
    </div>
  )
}

export function Value({ value, field = '', names = [] }: Props) {
  if (value === null || value === undefined || value === '') return <>{NOTHING}</>
  if (typeof value === 'boolean') return <>{t(value ? 'yes' : 'no')}</>
  if (typeof value === 'number')
    return <>{!Number.isInteger(value) ? decimal(value) : isNaming(field) ? String(value) : count(value)}</>
  if (typeof value === 'string') {
    const named = names.find(({ id }) => id === value)
    if (named) return <NameOf named={named} />
    return INSTANT.test(value) ? <Time atMs={Date.parse(value)} form="when" /> : <span class="text">{value}</span>
  }
  if (Array.isArray(value)) {
    if (value.length === 0) return <>{NOTHING}</>
    if (value.every(isObject)) return <Rows rows={value} names={names} />
    return (
      <ul class="plain values">
        {value.map((each, at) => (
          <li key={at}>
            <Value value={each} field={field} names={names} />
          </li>
        ))}
      </ul>
    )
  }
  if (!isObject(value)) return <>{String(value)}</>
  // What names something says its kind and id; one reads its name.
  if (typeof value.name === 'string' && typeof value.id === 'string')
    return <NameOf named={{ id: value.id, kind: String(value.kind ?? 'team'), name: value.name }} />
  return (
    <dl class="facts">
      {Object.entries(value).map(([name, each]) => (
        <>
          <dt>{fieldTitle(name)}</dt>
          <dd>
            <Value value={each} field={name} names={names} />
          </dd>
        </>
      ))}
    </dl>
  )
}
