// The ends of connections: resources of several kinds, services (a name, for what has no record of its own) and
// external hosts. One is known by its key: `kind:id`, `service:name` or `external:host`.
import { Type } from '@sinclair/typebox'
import { text as textColumn, uuid as uuidColumn } from 'drizzle-orm/pg-core'
import { parseHostName } from '../../../core/dns/domain-name.ts'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { parseAddress } from '../../../core/network/ip-address.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { isUuid, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { id, nullable, string } from '../platform/http/response-schema.ts'
import { compositeField, type Field, type Values } from '../resources/field.ts'
import type { Reference } from '../resources/kind-info.ts'

/** The kinds of resources that can be an end. One that the hub does not have has no resources. */
export const nodeKinds = ['server', 'load_balancer', 'virtual_server', 'proxy', 'proxy_site'] as const
const sourceKinds = [...nodeKinds, 'service'] as const
const targetKinds = [...sourceKinds, 'external'] as const
const NAME_MAX = 255
const HOST_MAX = 253
const KEY_MAX = 300

/** An end as a connection keeps it: `name` is that of a service, or the host of what is external. */
export type Node = {
  readonly kind: string
  readonly id: string | null
  readonly name: string | null
  readonly key: string
}

const isNamed = (kind: string): boolean => kind === 'service' || kind === 'external'
/** Services are told apart regardless of case. */
const keyOf = (kind: string, id: string | null, name: string | null): string =>
  `${kind}:${isNamed(kind) ? (name ?? '').toLowerCase() : (id ?? '')}`

/** The node that a key names. Throws 422 on `field` for another text. */
export function nodeOfKey(field: string, key: string): Node {
  const [, kind = '', rest = ''] = /^([a-z_]+):(.+)$/.exec(key.trim()) ?? []
  const isKnown = isNamed(kind) || (nodeKinds.some(each => each === kind) && isUuid(rest))
  if (!isKnown) throw invalidField(field, 'node_key')
  const [nodeId, name] = isNamed(kind)
    ? [null, kind === 'external' ? normalHost(rest) : rest]
    : [rest.toLowerCase(), null]
  return { kind, id: nodeId, name, key: keyOf(kind, nodeId, name) }
}

export const nodeKey = () => text(KEY_MAX)

const normalHost = (host: string): string => parseAddress(host)?.toString() ?? parseHostName(host) ?? host

/** The faults of an end, by member. */
function nodeFaults({ kind, id: nodeId, name, host }: Unchecked): ReadonlyMap<string, Words> | null {
  const given =
    kind === 'service'
      ? (['name', name] as const)
      : kind === 'external'
        ? (['host', host] as const)
        : (['id', nodeId] as const)
  const [member, value] = given
  if (value === undefined || value === null || value === '') return new Map([[member, words('required')]])
  if (kind === 'external' && !parseAddress(String(host)) && !parseHostName(String(host)))
    return new Map([['host', words('host_or_address')]])
  return null
}

type Columns<P extends string> = {
  readonly [K in `${P}_kind` | `${P}_key`]: string
} & { readonly [K in `${P}_id` | `${P}_name`]: string | null }

/** An end of a connection as a field: the columns `<name>_kind`, `_id`, `_name` and `_key`. */
function nodeField<const P extends string>(prefix: P, kinds: readonly string[]): Field<Columns<P>> {
  const column = (part: string): string => `${prefix}_${part}`
  return compositeField<Columns<P>>({
    required: true,
    immutable: true,
    toOneOf: nodeKinds,
    value: Type.Object({
      kind: oneOf(kinds),
      id: optional(uuid()),
      name: optional(text(NAME_MAX)),
      ...(kinds.includes('external') ? { host: optional(text(HOST_MAX)) } : {}),
    }),
    check: nodeFaults,
    columns: {
      [column('kind')]: textColumn(column('kind')).notNull(),
      [column('id')]: uuidColumn(column('id')),
      [column('name')]: textColumn(column('name')),
      [column('key')]: textColumn(column('key')).notNull(),
    },
    response: Type.Object({
      kind: string(),
      id: nullable(id()),
      name: string(),
      host: nullable(string()),
      state: string(),
    }),
    store: value => {
      const { kind: givenKind, id: givenId, name, host } = isObject(value) ? value : {}
      const kind = String(givenKind ?? '')
      const nodeId = isNamed(kind) || !givenId ? null : String(givenId).toLowerCase()
      const ownName = kind === 'service' ? String(name).trim() : kind === 'external' ? normalHost(String(host)) : null
      return {
        [column('kind')]: kind,
        [column('id')]: nodeId,
        [column('name')]: ownName,
        [column('key')]: keyOf(kind, nodeId, ownName),
      }
    },
    show: (row: Values) => {
      const kind = row[column('kind')]
      const name = row[column('name')]
      return kind === 'external'
        ? { kind, id: null, name: null, host: name }
        : { kind, id: row[column('id')], name, host: null }
    },
  })
}

export const sourceField = nodeField('source', sourceKinds)
export const targetField = nodeField('target', targetKinds)

/** What connections name of other resources. */
export const nodeReferences: readonly Reference[] = ['source', 'target'].map(field => ({
  field,
  to: null,
  column: `${field}_id`,
  kindColumn: `${field}_kind`,
}))

type EndColumns = Columns<'source'> & Columns<'target'>
export const sourceOf = (row: EndColumns): Node => ({
  kind: row.source_kind,
  id: row.source_id,
  name: row.source_name,
  key: row.source_key,
})
export const targetOf = (row: EndColumns): Node => ({
  kind: row.target_kind,
  id: row.target_id,
  name: row.target_name,
  key: row.target_key,
})
