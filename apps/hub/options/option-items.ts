// The items of option lists: how many a list has, which may be changed or removed, and in which order they are.
import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { violatedUniqueIndex } from '../platform/db/connect.ts'
import type { AuditChanges } from '../platform/db/schema-identity.ts'
import { inTransaction, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { invalid, invalidField, notFound } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { boolean, isUuid, optional, text } from '../platform/http/request-schema.ts'
import { amount, id, nullable, string } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { checkVersion, type Expected } from '../resources/row-version.ts'
import { isOptionList, optionListId, optionLists, usedBy, usesOf } from './option-lists.ts'
import { rewrite } from './rewrite-uses.ts'

export const ITEMS_MAX = 1000

/** The members of an item, as it is answered. */
export const itemMembers = {
  id: nullable(id()),
  value: string(),
  label: string(),
  label_vi: nullable(string()),
  color: nullable(string()),
  position: nullable(Type.Integer()),
  enabled: Type.Boolean(),
  is_default: Type.Boolean(),
  uses: amount(),
  version: nullable(Type.Integer()),
  created_at: nullable(string()),
  updated_at: nullable(string()),
}

type ItemRow = {
  id: string
  value: string
  label: string
  label_vi: string | null
  color: string | null
  position: number
  enabled: boolean
  is_default: boolean
  version: number
  created_at: Date
  updated_at: Date
}
const COLUMNS = sql.raw(
  'id, value, label, label_vi, color, position, enabled, is_default, version::int as version, created_at, updated_at',
)

/** The name of the list that the path names. Throws 404. */
export function listOfPath({ params }: RouteContext): string {
  const name = params.list ?? ''
  if (!isOptionList(name)) throw notFound()
  return name
}

export async function allLists({ hub, companyId, language }: RouteContext) {
  const rows = await hub.database.db.execute<{ list: string; items: number; strict: boolean }>(sql`
    select l.list, (select count(*)::int from option_items i where i.company_id = ${companyId} and i.list = l.list) as items,
      coalesce((select strict from option_lists o where o.company_id = ${companyId} and o.list = l.list), false) as strict
    from jsonb_array_elements_text(${JSON.stringify(Object.keys(optionLists))}::jsonb) as l (list)`)
  return rows.map(({ list, items, strict }) => ({
    list,
    title: optionLists[list]?.title[language] ?? list,
    strict,
    used_by: usedBy(list),
    items_count: items,
  }))
}

/** An item as it is answered. */
export type Item = Omit<ItemRow, 'id' | 'position' | 'version' | 'created_at' | 'updated_at'> & {
  readonly id: string | null
  readonly position: number | null
  readonly uses: number
  readonly version: number | null
  readonly created_at: string | null
  readonly updated_at: string | null
}

const presented = ({ created_at, updated_at, ...row }: ItemRow, uses: number): Item => ({
  ...row,
  uses,
  created_at: new Date(created_at).toISOString(),
  updated_at: new Date(updated_at).toISOString(),
})

/** Items of all lists of a company in the order of their ids, for whoever reads all of them. */
export async function itemsAfter(
  { hub, companyId }: Pick<RouteContext, 'hub' | 'companyId'>,
  { list, enabled }: { readonly list: string | null; readonly enabled: boolean | null },
  afterId: string,
  limit: number,
): Promise<(Item & { readonly list: string })[]> {
  const { db } = hub.database
  const rows = await db.execute<ItemRow & { list: string }>(sql`
    select list, ${COLUMNS} from option_items
    where company_id = ${companyId} and id > ${afterId}::uuid
      and (${list}::text is null or list = ${list}) and (${enabled}::boolean is null or enabled = ${enabled})
    order by id limit ${limit}`)
  const lists = [...new Set(rows.map(row => row.list))]
  const uses = new Map(await Promise.all(lists.map(async name => [name, await usesOf(db, companyId, name)] as const)))
  return rows.map(({ list: name, ...row }) => ({
    list: name,
    ...presented(row, uses.get(name)?.get(row.value) ?? 0),
  }))
}

/** The items by position; with `unlisted` also values in use that have none. */
export async function itemsOf(
  { hub, companyId }: RouteContext,
  list: string,
  enabled: boolean | undefined,
  unlisted: boolean,
): Promise<Item[]> {
  const { db } = hub.database
  const [rows, uses] = await Promise.all([
    db.execute<ItemRow>(sql`
      select ${COLUMNS} from option_items where company_id = ${companyId} and list = ${list} order by position, id`),
    usesOf(db, companyId, list),
  ])
  const listed = rows.filter(row => enabled === undefined || row.enabled === enabled)
  const known = new Set(rows.map(row => row.value))
  const others = unlisted ? [...uses].filter(([value]) => !known.has(value)).sort(([a], [b]) => (a < b ? -1 : 1)) : []
  return [
    ...listed.map(row => presented(row, uses.get(row.value) ?? 0)),
    ...others.map(([value, count]) => ({
      id: null,
      value,
      label: value,
      label_vi: null,
      color: null,
      position: null,
      enabled: true,
      is_default: false,
      uses: count,
      version: null,
      created_at: null,
      updated_at: null,
    })),
  ]
}

const color = Type.String({ pattern: '^#[0-9a-fA-F]{6}$', examples: ['#336699'] })
/** What a request, or a manifest, may say of an item beside its value. */
export const itemFields = {
  label: optional(text(128)),
  label_vi: optional(text(128)),
  color: optional(color),
  enabled: Type.Optional(boolean()),
  is_default: Type.Optional(boolean()),
}

export type ItemInput = {
  readonly value?: string | undefined
  readonly label?: string | null | undefined
  readonly label_vi?: string | null | undefined
  readonly color?: string | null | undefined
  readonly enabled?: boolean | undefined
  readonly is_default?: boolean | undefined
}

async function lockItem(tx: Tx, companyId: string, list: string, id: string): Promise<ItemRow> {
  const [row] = isUuid(id)
    ? await tx.db.execute<ItemRow>(sql`
        select ${COLUMNS} from option_items where company_id = ${companyId} and list = ${list} and id = ${id} for update`)
    : []
  if (!row) throw notFound()
  return row
}

/** The list of a path that names an item of it too. Throws 404 for either, before the body is looked at. */
export async function listOfItem(context: RouteContext): Promise<string> {
  const list = listOfPath(context)
  const { hub, companyId, params } = context
  const id = params.item ?? ''
  const [row] = isUuid(id)
    ? await hub.database.db.execute(sql`
        select 1 from option_items where company_id = ${companyId} and list = ${list} and id = ${id}`)
    : []
  if (!row) throw notFound()
  return list
}

async function storing(act: Promise<unknown>): Promise<void> {
  try {
    await act
  } catch (error) {
    if (violatedUniqueIndex(error) === 'option_items_value') throw invalidField('value', 'taken')
    throw error
  }
}

/** One item of a list is the default, of those that are written at once too: under the lock of the company. */
const onlyDefault = (tx: Tx, companyId: string, list: string, id: string) =>
  tx.db.execute(sql`
    update option_items set is_default = false, version = version + 1, updated_at = now()
    where company_id = ${companyId} and list = ${list} and id <> ${id} and is_default`)

const subjectOf = (id: string, list: string, value: string) => ({ type: 'option_item', id, name: `${list}: ${value}` })

/** What the audit log says of an item that was written. */
const told = ({ value, label, label_vi, color, enabled, is_default }: ItemRow): Unchecked => ({
  value,
  label,
  label_vi,
  color,
  enabled,
  is_default,
})
const changesOf = (before: ItemRow | null, after: ItemRow | null): AuditChanges =>
  changesBetween(before ? told(before) : {}, after ? told(after) : {})

export const addItem = (context: RouteContext, list: string, input: ItemInput & { readonly value: string }) =>
  inTransaction(context.hub.database.db, async tx => {
    const { companyId } = context
    const id = randomUUID()
    await lockCompany(tx, companyId)
    const [{ count = 0, last = 0 } = {}] = await tx.db.execute<{ count: number; last: number }>(sql`
      select count(*)::int as count, coalesce(max(position), 0)::int as last from option_items
      where company_id = ${companyId} and list = ${list}`)
    if (count >= ITEMS_MAX) throw invalidField('limit', 'list_max', { max: ITEMS_MAX })
    await storing(
      tx.db.execute(sql`
        insert into option_items (id, company_id, list, value, label, label_vi, color, position, enabled, is_default)
        values (${id}, ${companyId}, ${list}, ${input.value}, ${input.label ?? input.value}, ${input.label_vi ?? null},
          ${input.color ?? null}, ${last + 1}, ${input.enabled ?? true}, ${input.is_default ?? false})`),
    )
    if (input.is_default) await onlyDefault(tx, companyId, list, id)
    const row = await lockItem(tx, companyId, list, id)
    await auditRequest(tx, context, 'option_item.create', subjectOf(id, list, input.value), changesOf(null, row))
    const uses = await usesOf(tx.db, companyId, list)
    return presented(row, uses.get(row.value) ?? 0)
  })

export const changeItem = (
  context: RouteContext,
  list: string,
  id: string,
  { rename_uses: renames, ...input }: ItemInput & { readonly rename_uses?: boolean | undefined },
  expected: Expected = {},
) =>
  inTransaction(context.hub.database.db, async tx => {
    const { companyId } = context
    await lockCompany(tx, companyId)
    const before = await lockItem(tx, companyId, list, id)
    checkVersion(before, expected)
    const value = input.value ?? before.value
    let renamed = 0
    if (value !== before.value) {
      const used = (await usesOf(tx.db, companyId, list)).get(before.value) ?? 0
      if (used > 0 && !renames) throw invalid({ value: words('option_used', { count: used }) })
      // First the item, so that a value which another one has is refused before its uses are looked at.
      await storing(tx.db.execute(sql`update option_items set value = ${value} where id = ${id}`))
      if (used > 0) renamed = await rewrite(context, tx, list, before.value, value)
    }
    const next = {
      label: input.label === undefined ? before.label : (input.label ?? value),
      label_vi: input.label_vi === undefined ? before.label_vi : input.label_vi,
      color: input.color === undefined ? before.color : input.color,
      enabled: input.enabled ?? before.enabled,
      is_default: input.is_default ?? before.is_default,
    }
    const changes = changesOf(before, { ...before, ...next, value })
    if (Object.keys(changes).length > 0) {
      await tx.db.execute(sql`
        update option_items set label = ${next.label}, label_vi = ${next.label_vi}, color = ${next.color},
          enabled = ${next.enabled}, is_default = ${next.is_default}, version = version + 1, updated_at = now()
        where id = ${id}`)
      if (next.is_default) await onlyDefault(tx, companyId, list, id)
      await auditRequest(tx, context, 'option_item.update', subjectOf(id, list, value), changes)
    }
    const uses = await usesOf(tx.db, companyId, list)
    return { ...presented(await lockItem(tx, companyId, list, id), uses.get(value) ?? 0), renamed }
  })

export const removeItem = (
  context: RouteContext,
  list: string,
  id: string,
  replaceWith?: string,
  expected: Expected = {},
) =>
  inTransaction(context.hub.database.db, async tx => {
    const { companyId } = context
    const item = await lockItem(tx, companyId, list, id)
    checkVersion(item, expected)
    const used = (await usesOf(tx.db, companyId, list)).get(item.value) ?? 0
    if (used > 0) {
      if (replaceWith === undefined) throw invalid({ item: words('option_used', { count: used }) })
      const other = await lockItem(tx, companyId, list, replaceWith).catch(() => null)
      if (!other || other.id === item.id) throw invalidField('replace_with', 'unknown_reference')
      await rewrite(context, tx, list, item.value, other.value)
    }
    await tx.db.execute(sql`delete from option_items where id = ${id}`)
    await auditRequest(tx, context, 'option_item.delete', subjectOf(id, list, item.value), changesOf(item, null))
  })

/** Every item of the list once, in its new order. */
export const orderItems = (
  context: RouteContext,
  list: string,
  order: readonly string[],
  strict: boolean | undefined,
) =>
  inTransaction(context.hub.database.db, async tx => {
    const { companyId } = context
    const rows = await tx.db.execute<{ id: string }>(sql`
      select id from option_items where company_id = ${companyId} and list = ${list} for update`)
    const known = new Set(rows.map(row => row.id))
    const ids = order.map(each => each.toLowerCase())
    const isWhole = ids.length === known.size && new Set(ids).size === ids.length && ids.every(each => known.has(each))
    if (!isWhole) throw invalidField('order', 'every_item_once')
    await tx.db.execute(sql`
      update option_items i set position = x.position
      from jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb) with ordinality as x (id, position)
      where i.company_id = ${companyId} and i.list = ${list} and i.id = x.id::uuid`)
    if (strict !== undefined)
      await tx.db.execute(sql`
        insert into option_lists (company_id, list, strict) values (${companyId}, ${list}, ${strict})
        on conflict (company_id, list) do update set strict = excluded.strict`)
    const changes: AuditChanges = strict === undefined ? {} : { strict: { old: null, new: strict } }
    await auditRequest(
      tx,
      context,
      'option_list.update',
      { type: 'option_list', id: optionListId(companyId, list), name: list },
      changes,
    )
  })
