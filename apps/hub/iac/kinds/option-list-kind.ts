// Option lists in manifests: which lists there are is fixed, so `metadata.name` is the key of one of them, and a
// manifest says all of its items in their order. Which items come first is no difference by itself.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../../core/json-object.ts'
import {
  addItem,
  changeItem,
  ITEMS_MAX,
  type ItemInput,
  itemFields,
  itemsOf,
  orderItems,
  removeItem,
} from '../../options/option-items.ts'
import { isOptionList, optionListId, optionLists } from '../../options/option-lists.ts'
import { type Words, words } from '../../platform/http/api-texts.ts'
import { boolean, listOf, optional, text } from '../../platform/http/request-schema.ts'
import { countPart, type Existing, type ManifestKind, type Reading, type Writing } from './manifest-kind.ts'
import { filled, itemsOf as objectsOf } from './parts.ts'

const names = Object.keys(optionLists)
const hyphened = names.map(name => name.replaceAll('_', '-'))
/** A list by its key; a hyphen stands for an underscore, as in other names of manifests. */
const listNamed = (name: string): string => name.toLowerCase().replaceAll('-', '_')

type Item = ItemInput & { readonly value: string }
// Held to the schema when the manifest was read.
const wanted = (spec: Unchecked): Item[] => objectsOf(spec.items) as Unchecked[] as Item[]

async function read({ db, companyId }: Reading, lists: readonly string[]): Promise<Existing[]> {
  const rows = await db.execute<{ list: string; items: Unchecked[]; strict: boolean }>(sql`
    select l.list, coalesce(o.strict, false) as strict, (
      select coalesce(jsonb_agg(jsonb_build_object('value', i.value, 'label', i.label, 'label_vi', i.label_vi,
        'color', i.color, 'enabled', i.enabled, 'is_default', i.is_default) order by i.position, i.id), '[]')
      from option_items i where i.company_id = ${companyId} and i.list = l.list) as items
    from jsonb_array_elements_text(${JSON.stringify(lists)}::jsonb) as l (list)
    left join option_lists o on o.company_id = ${companyId} and o.list = l.list`)
  // One without items that allows everything says nothing.
  return rows
    .filter(row => row.items.length > 0 || row.strict)
    .map(({ list, items, strict }) => ({
      id: optionListId(companyId, list),
      name: list,
      version: 0,
      spec: { strict, items: items.map(filled) },
    }))
}

/** A value twice, and a second default. */
function itemFaults(spec: Unchecked): Map<string, Words> {
  const faults = new Map<string, Words>()
  const seen = new Set<string>()
  const defaults = wanted(spec).flatMap(({ is_default }, index) => (is_default ? [index] : []))
  for (const [index, { value }] of wanted(spec).entries()) {
    if (seen.has(value.toLowerCase())) faults.set(`items.${index}.value`, words('taken'))
    seen.add(value.toLowerCase())
  }
  for (const index of defaults.slice(1)) faults.set(`items.${index}.is_default`, words('option_one_default'))
  return faults
}

/** Whether an item has every value that a manifest gives. */
const isAs = (existing: Unchecked, item: Item): boolean =>
  Object.entries(item).every(([name, value]) => existing[name] === value)

/** Makes a list what the spec says. */
async function write(writing: Writing, list: string, spec: Unchecked): Promise<void> {
  const { context } = writing
  const strict = typeof spec.strict === 'boolean' ? spec.strict : undefined
  const known = await itemsOf(context, list, undefined, false)
  const keyOf = ({ value }: { readonly value: string }): string => value.toLowerCase()
  const items = spec.items ? wanted(spec) : known.map(({ value }) => ({ value }))
  const kept = new Set(items.map(keyOf))
  for (const item of known) if (item.id !== null && !kept.has(keyOf(item))) await removeItem(context, list, item.id)
  const ids: string[] = []
  for (const item of items) {
    const existing = known.find(each => keyOf(each) === keyOf(item))
    if (!existing?.id || !isAs(existing, item)) countPart(writing)
    const stored = !existing?.id
      ? await addItem(context, list, item)
      : isAs(existing, item)
        ? existing
        : await changeItem(context, list, existing.id, item)
    if (stored.id !== null) ids.push(stored.id)
  }
  const isInOrder = ids.join() === known.map(({ id }) => id).join()
  if (strict !== undefined || !isInOrder) await orderItems(context, list, ids, strict)
}

const listOfId = (companyId: string, id: string): string | undefined =>
  names.find(list => optionListId(companyId, list) === id)

const meant = (spec: Unchecked): Unchecked =>
  spec.items === undefined || spec.items === null ? spec : { ...spec, items: objectsOf(spec.items).map(filled) }

export const optionListKind: ManifestKind = {
  kind: 'option-list',
  title: 'Option lists',
  order: 1,
  resourceKind: 'option_list',
  permissions: { view: 'options.view', manage: 'options.manage' },
  dependsOn: [],
  spec: Type.Object({
    strict: Type.Optional(boolean()),
    items: optional(listOf(Type.Object({ value: text(128), ...itemFields }), ITEMS_MAX)),
  }),
  defaults: { strict: false, items: [] },
  whole: { items: ['value'] },
  slugs: { values: [...new Set([...names, ...hyphened])], isOne: slug => isOptionList(listNamed(slug)) },
  isNameUnique: true,
  referencesOf: () => [],
  normal: meant,
  faults: async (_reading, spec) => itemFaults(spec),
  names: async ({ companyId }, { ids, names: asked }) =>
    names
      .map(list => ({ id: optionListId(companyId, list), name: list }))
      .filter(({ id, name }) => ids.includes(id) || asked.some(each => listNamed(each) === name)),
  namesAfter: async ({ companyId }, after) =>
    after === null ? names.map(list => ({ id: optionListId(companyId, list), name: list })) : [],
  byIds: (reading, ids) =>
    read(
      reading,
      ids.flatMap(id => listOfId(reading.companyId, id) ?? []),
    ),
  candidates: (reading, _spec, slug) => read(reading, [listNamed(slug)]),
  async list(reading, { name, tag, origin }, { limit, offset }) {
    if (tag !== undefined || (origin !== undefined && origin !== 'manual')) return []
    const lists = names.filter(list => name === undefined || list === listNamed(name)).sort()
    return (await read(reading, lists)).slice(offset, offset + limit)
  },
  async count(reading, filter) {
    return (await optionListKind.list(reading, filter, { limit: names.length, offset: 0 })).length
  },
  async create(writing, spec, _find, slug) {
    const list = listNamed(slug)
    await write(writing, list, spec)
    return optionListId(writing.companyId, list)
  },
  update: (writing, { name }, _changed, spec) => write(writing, name, spec),
  remove: (writing, { name }) => write(writing, name, { strict: false, items: [] }),
}
