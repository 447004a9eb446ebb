// The list of a kind: its filters, those of its fields and traits among them, and its order.
import { Type } from '@sinclair/typebox'
import { and, eq, gte, or, sql } from 'drizzle-orm'
import { assert } from '../../../core/assert.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { likePattern, type PageOfRows, PageReader, type RowRange } from '../platform/db/page-of-rows.ts'
import { permissionDenied } from '../platform/http/api-error.ts'
import { type Asker, equals, filter, isOn, ofCompany } from '../platform/http/collection.ts'
import { flag, flagOf, instant, oneOf, text, uuid } from '../platform/http/request-schema.ts'
import type { Values } from './field.ts'
import { columnNamed, healths, type Kind, origins } from './kind.ts'
import { type Found, ofWhich, selectRows } from './resource-rows.ts'

type AnyFilter = ReturnType<typeof filter>

function healthFilter({ table }: Kind) {
  // Written out, so that PostgreSQL knows how many rows meet it.
  const isOld = sql`${table}.probe_until < now()`
  const isFresh = sql`(${table}.probe_until is null or ${table}.probe_until >= now())`
  return filter(oneOf(healths), value =>
    value === 'unknown' ? or(eq(table.health, 'unknown'), isOld) : and(eq(table.health, value), isFresh),
  )
}

/** The filters that follow from the traits of fields. */
const fieldFilters = ({ fields, table }: Kind) =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { filter: isFilter, value }]) => {
      if (!isFilter) return []
      const column = columnNamed(table, name)
      return [[name, value.type === 'boolean' ? isOn(column) : equals(column, value)]]
    }),
  )

/** The filters and the order of a kind's list; `present` and `presentPage` make answers of its rows. */
export function rowCollection(kind: Kind) {
  const { table, info, parent } = kind
  const filters = {
    search: filter(text(255), value => sql`${table.search_text} like lower(${likePattern(value)})`),
    tag: filter(Type.Array(text(128), { maxItems: 50 }), tags => sql`${table}.tags @> ${textList(tags)}::text[]`),
    ...fieldFilters(kind),
    health: healthFilter(kind),
    origin: equals(table.origin, oneOf(origins)),
    drifted: isOn(table.drifted),
    updated_from: filter(instant(), value => gte(table.updated_at, new Date(value))),
    trashed: filter(flag(), () => undefined),
    sort: filter(oneOf(Object.keys(kind.sorts)), () => undefined),
    ...kind.filters,
  }
  const within: Readonly<Record<string, ReturnType<typeof filter>>> = parent
    ? { parent_id: equals(columnNamed(table, parent.column), uuid()) }
    : {}
  return {
    filters,
    table,
    scope: ofCompany(table.company_id),
    order: kind.sorts[kind.usualSort] ?? [],
    sorts: kind.sorts,
    pageBy: 'ids' as const,
    within,
    select: (db: Executor) => selectRows(kind, db),
    always: (given: Values, asker: { readonly caller: { readonly permissions: ReadonlySet<string> } }) => {
      const isTrash = flagOf(given.trashed as Parameters<typeof flagOf>[0]) === true
      if (isTrash && !asker.caller.permissions.has(info.permissions.manage))
        throw permissionDenied(info.permissions.manage)
      return ofWhich(kind, isTrash ? 'deleted' : 'kept')
    },
  }
}

/** The list of a kind, and what reads a page of it by the name of the order. */
function newReader(kind: Kind) {
  const list = rowCollection(kind)
  const pages = Object.entries(kind.sorts).map(
    ([name, order]) => [name, new PageReader({ ...list, order, pageBy: list.pageBy })] as const,
  )
  return { list, pages: new Map(pages) }
}
const readers = new WeakMap<Kind['info'], ReturnType<typeof newReader>>()

function readerOf(kind: Kind): ReturnType<typeof newReader> {
  const known = readers.get(kind.info) ?? newReader(kind)
  readers.set(kind.info, known)
  return known
}

/** A page of the rows of a company, or of its trash, by the filters and orders of the list. */
export async function readKind(
  kind: Kind,
  { database: { db } }: Pick<Hub, 'database'>,
  companyId: string,
  given: Values,
  isTrash: boolean,
  range: RowRange,
): Promise<PageOfRows<Found>> {
  const { list, pages } = readerOf(kind)
  const all: Readonly<Record<string, AnyFilter>> = { ...list.filters, ...list.within }
  // None of these filters looks at who asks.
  const where = and(
    ofWhich(kind, isTrash ? 'deleted' : 'kept'),
    ...Object.entries(given).map(([name, value]) => all[name]?.where(value as never, {} as Asker)),
  )
  const pageReader = pages.get(String(given.sort ?? kind.usualSort))
  assert(pageReader !== undefined, 'a list has the order that was asked for')
  const page = await pageReader.read(db, { ownerId: companyId, owned: list.scope.where(companyId), where }, range)
  // The columns of the table are those of the kind's fields.
  return page as PageOfRows<Found>
}

/** A list of texts as one parameter of a raw query. */
const textList = (texts: readonly string[]): string =>
  `{${texts.map(each => `"${each.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`).join(',')}}`
