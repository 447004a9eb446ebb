// The resources of a kind, by the orders and filters that its list in the API has.

import { isObject } from '../../../../core/json-object.ts'
import type { Values } from '../../resources/field.ts'
import type { Kind } from '../../resources/kind.ts'
import { readKind } from '../../resources/resource-list.ts'
import { pathsOf } from '../../resources/resource-paths.ts'
import { findRow } from '../../resources/resource-rows.ts'
import { presentList } from '../../resources/resource-show.ts'
import { type FilterTerm, parseFilter } from '../address/filter-language.ts'
import { sitePages } from '../address/site-map.ts'
import { NAME_KEYS, namesOf } from './named-resources.ts'
import { fieldsOf, formFieldsOf, shownKind } from './resource-fields.ts'
import type { FieldForm, NamedResource, ResourceColumn, ResourceRow, ResourcesView } from './resource-pages.ts'
import { askedOffset, type View, type ViewContext } from './view.ts'

const WINDOW = 60
/** Columns of a kind's own, beside those of all kinds. */
const OWN_COLUMNS = 5
/** Of those what the hub finds out. */
const DERIVED_COLUMNS = 2
/** Every kind has them, and they have a place of their own. */
const COMMON = new Set(['name', 'description', 'tags', 'owner_team_id', 'status'])
/** Values that a cell of a list has room for. */
const IN_CELLS: ReadonlySet<FieldForm> = new Set(['text', 'choice', 'boolean', 'number', 'time', 'reference', 'texts'])

/** Terms of the filter that the list of a kind knows; words search. */
function givenBy(kind: Kind, terms: readonly FilterTerm[]): Record<string, unknown> {
  const words = terms.filter(({ key, isExcluded }) => key === null && !isExcluded).map(({ value }) => value)
  const chosen = (wanted: string): string | undefined => terms.find(({ key }) => key === wanted)?.value
  const choice = (name: string, known: readonly string[]) => {
    const value = chosen(name)
    return value !== undefined && known.includes(value) ? { [name]: value } : {}
  }
  const tags = terms.filter(({ key }) => key === 'tag').map(({ value }) => value)
  return {
    ...(words.length > 0 ? { search: words.join(' ').slice(0, 255) } : {}),
    ...(tags.length > 0 ? { tag: tags.slice(0, 50) } : {}),
    ...choice('status', statusesOf(kind)),
    ...choice('health', ['ok', 'warning', 'critical', 'unknown']),
    ...choice('origin', ['manual', 'iac', 'import', 'discovered']),
    ...(chosen('drifted') === 'yes' ? { drifted: '1' } : {}),
  }
}

const statusesOf = ({ fields }: Kind): readonly string[] => fields.status?.value.enum ?? []

/** What the hub finds out that fits into a cell: numbers, words of a fixed set, how much of something is used. */
function derivedColumns({ derived }: Kind): readonly ResourceColumn[] {
  return Object.entries(derived.list).flatMap(([name, schema]): ResourceColumn[] => {
    const [first = schema] = schema.anyOf ?? []
    if (name === 'usage') return [{ name, form: 'percent', to: null, sort: false }]
    if (first.type === 'integer') return [{ name, form: 'number', to: null, sort: false }]
    return Array.isArray(first.enum) ? [{ name, form: 'choice', to: null, sort: false }] : []
  })
}

/** Of `usage` a list shows how much is used. */
function cellOf({ name, form }: ResourceColumn, shown: Values): unknown {
  const value = shown[name] ?? null
  return form === 'percent' && isObject(value) ? value.used_percent : value
}

/** The first fields that fit into cells. */
function columnsOf(kind: Kind): readonly ResourceColumn[] {
  const own = fieldsOf(kind).filter(({ name, form }) => !COMMON.has(name) && IN_CELLS.has(form))
  const shown = own.filter(({ name }) => !kind.fields[name]?.showOnly)
  const known = shown.map(({ name, form, to }) => ({ name, form, to, sort: name in kind.sorts }))
  const derived = derivedColumns(kind).slice(0, DERIVED_COLUMNS)
  return [...known.slice(0, OWN_COLUMNS - derived.length), ...derived]
}

/** The parent whose parts are listed. Throws 404. */
async function parentOf({ hub, companyId, param }: ViewContext, { parent }: Kind): Promise<NamedResource | null> {
  if (!parent) return null
  const row = await findRow(parent.of, hub.database.db, companyId, param('parent'))
  return { id: row.id, kind: parent.of.info.kind, name: row.name }
}

/** Where resources of the kind are created. */
async function collectionPath({ hub, companyId }: ViewContext, { info }: Kind, parent: NamedResource | null) {
  if (parent === null) return info.path
  const above = (await pathsOf(hub.database.db, hub.kinds, companyId, parent.kind, [parent.id])).get(parent.id)
  return above === undefined ? null : above + info.path.slice(info.path.lastIndexOf('/'))
}

export const resourcesView: View<ResourcesView> = {
  permissions: [],
  optional: NAME_KEYS,
  params: ['kind', ...sitePages.resources.takes],
  async make(context) {
    const { hub, companyId, may, param } = context
    const kind = shownKind(context)
    const { info } = kind
    const mayManage = may(info.permissions.manage)
    const parent = await parentOf(context, kind)
    const isTrash = param('trash') !== '' && mayManage
    const sort = param('sort')
    const offset = askedOffset(param('offset'))
    const given = {
      ...givenBy(kind, parseFilter(param('q'))),
      ...(parent === null ? {} : { parent_id: parent.id }),
      ...(Object.hasOwn(kind.sorts, sort) ? { sort } : {}),
    }
    const { rows: found, total } = await readKind(kind, hub, companyId, given, isTrash, { limit: WINDOW, offset })
    const presented = await presentList(kind, { hub, companyId }, found)
    const columns = columnsOf(kind).filter(({ name }) => presented.some(row => row[name] !== row.name))
    const references = columns.flatMap(({ name, to }) =>
      to === null ? [] : presented.flatMap(row => (typeof row[name] === 'string' ? { kind: to, id: row[name] } : [])),
    )
    const mayCreate = mayManage && !isTrash && !kind.without.includes('create')
    return {
      ...{ kind: info.kind, title: info.title, parent, isTrash, mayManage, matching: total, offset, columns },
      createPath: mayCreate ? await collectionPath(context, kind, parent) : null,
      form: mayCreate ? formFieldsOf(kind) : [],
      statuses: statusesOf(kind),
      rows: found.map((row, at): ResourceRow => {
        const shown = presented[at] ?? {}
        return {
          ...{ id: row.id, name: row.name, status: row.status, origin: row.origin, isDrifted: row.drifted },
          health: shown.health as ResourceRow['health'],
          updatedAtMs: row.updated_at.getTime(),
          values: columns.map(column => cellOf(column, shown)),
        }
      }),
      names: await namesOf(context, references),
    }
  },
}
