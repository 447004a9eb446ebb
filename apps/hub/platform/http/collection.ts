// A collection defines once, for a resource, what all its lists need: who owns the rows, which filters a caller may
// give, the order, and how rows become responses. Query parameters, OpenAPI and SQL are derived from it (list.ts,
// db/page-of-rows.ts).
import assert from 'node:assert/strict'
import type { Static, TSchema } from '@sinclair/typebox'
import type { Executor } from '../db/connect.ts'
import {
  allOf,
  type Condition,
  holdsText,
  isEqual,
  type PageBy,
  type PageOfRows,
  PageReader,
  type RowRange,
  type RowSource,
  rowOfId,
} from '../db/page-of-rows.ts'
import type { Tx } from '../db/transaction.ts'
import { notFound } from './api-error.ts'
import { flag, flagOf, isUuid, text } from './request-schema.ts'
import type { RouteContext } from './route.ts'

type Column = Parameters<typeof isEqual>[0]

/** The part of a request that reading a collection needs. */
export type Asker = Pick<RouteContext, 'hub' | 'caller' | 'companyId'>

/** One filter: the schema of its value, and the condition that it puts on rows. `where` may throw an ApiError. */
type Filter<S extends TSchema = TSchema> = {
  readonly schema: S
  where(value: Static<S>, asker: Asker): Condition
}
type Filters = Readonly<Record<string, Filter>>
type Nothing = Readonly<Record<never, never>>
type SchemasOf<F extends Filters> = { readonly [K in keyof F]: F[K]['schema'] }

export type Schemas = Readonly<Record<string, TSchema>>
/** The values of the filters, by name. */
export type Given<S extends Schemas> = { readonly [K in keyof S]?: Static<S[K]> | undefined }

export const filter = <S extends TSchema>(schema: S, where: Filter<S>['where']): Filter<S> => ({ schema, where })
export const equals = <S extends TSchema>(column: Column, schema: S): Filter<S> =>
  filter(schema, value => isEqual(column, value))
/** `1` or `0` for a column that is true or false. */
export const isOn = (column: Column) => filter(flag(), value => isEqual(column, flagOf(value)))
/** Finds a text anywhere in one of the columns. */
export const search = (...columns: readonly Column[]) => filter(text(255), value => holdsText(columns, value))

/**
 * Who owns the rows of a collection: the company of the request, its caller, the parent resource of the list, or
 * nobody, so that all may see them.
 */
type Scope = {
  readonly owner: 'company' | 'caller' | 'parent' | 'everybody'
  readonly where: (ownerId: string) => Condition
}
/**
 * Rows of the request's company. `also` is a further condition that every row meets, for example not deleted. It comes
 * after the company, as in every index.
 */
export const ofCompany = (column: Column, also?: Condition): Scope => ({
  owner: 'company',
  where: companyId => allOf([isEqual(column, companyId), also]),
})
export const ofCaller = (column: Column): Scope => ({ owner: 'caller', where: userId => isEqual(column, userId) })
/** Rows of a parent that was already found in the company; indexes of such rows begin with the parent. */
export const ofParent = (also?: Condition): Scope => ({ owner: 'parent', where: () => also })
export const ofEverybody: Scope = { owner: 'everybody', where: () => undefined }

/** What a list needs of a collection, wherever its rows come from. */
export type Collection<F extends Schemas, W extends Schemas, Row, R extends TSchema> = {
  /** What a caller may filter by. */
  readonly filters: F
  /**
   * Further values that a list within another resource is bound to, such as its group or licence. Callers cannot give
   * these.
   */
  readonly within: W
  readonly read: (asker: Asker, given: Given<F> & Given<W>, range: RowRange) => Promise<PageOfRows<Row>>
  readonly response: R
  /** The response for a row. */
  readonly present: (row: Row, asker: Asker) => Static<R>
  /** The rows of a page, where a list shows more than `present` does. */
  readonly presentPage?: (
    rows: readonly Row[],
    asker: Asker,
    given: Given<F> & Given<W>,
  ) => Promise<readonly Static<R>[]>
}

/** A collection with its own way to read the page and the total. */
export const collectionReadBy = <Row, R extends TSchema, F extends Schemas = Nothing, W extends Schemas = Nothing>(
  definition: Collection<F, W, Row, R>,
): Collection<F, W, Row, R> => definition

type Definition<F extends Filters, W extends Filters, Row, R extends TSchema> = Pick<
  Collection<SchemasOf<F>, SchemasOf<W>, Row, R>,
  'response' | 'present' | 'presentPage'
> &
  Pick<RowSource<Row>, 'table' | 'select' | 'order'> & {
    readonly scope: Scope
    readonly filters?: F
    readonly within?: W
    readonly pageBy?: PageBy
    /** Further orders, each total, by the value of the filter `sort` that chooses one; `order` is the usual one. */
    readonly sorts?: Readonly<Record<string, RowSource<Row>['order']>>
    /** A condition of every list, which may depend on its filters; it may throw an ApiError. */
    readonly always?: (given: Readonly<Record<string, unknown>>, asker: Asker) => Condition
    /** Another way to get the exact total. */
    readonly count?: (asker: Asker, given: Given<SchemasOf<F>> & Given<SchemasOf<W>>) => Promise<number> | null
  }

/** A collection of the rows of one table. */
type TableCollection<F extends Schemas, W extends Schemas, Row, R extends TSchema> = Collection<F, W, Row, R> & {
  /** Returns the row of an owner with an id, in a transaction or outside. Throws 404. */
  readonly find: (db: Executor, ownerId: string, id: string) => Promise<Row>
  /** The same, and locks the row until the transaction ends. */
  readonly lock: (tx: Tx, ownerId: string, id: string) => Promise<Row>
  readonly ownerOf: (asker: Asker) => string
  /** The rows after one, by their ids: for whoever reads all of them. */
  readonly readAfter: (
    asker: Asker,
    given: Given<F> & Given<W>,
    afterId: string,
    limit: number,
  ) => Promise<readonly Row[]>
}

const OWNER_IDS: Readonly<Record<Scope['owner'], (asker: Asker) => string>> = {
  company: asker => asker.companyId,
  caller: asker => asker.caller.user.id,
  parent: () => '',
  everybody: () => '',
}

/** The conditions of the filters that have a value, in the order of their definition. */
function conditionsOf(filters: Filters, given: Readonly<Record<string, unknown>>, asker: Asker): Condition[] {
  return Object.entries(filters).map(([name, { where }]) =>
    given[name] === undefined ? undefined : where(given[name], asker),
  )
}

/** The schemas of filters, by the same names. */
const schemasOf = <F extends Filters>(filters: F | undefined): SchemasOf<F> =>
  Object.fromEntries(Object.entries(filters ?? {}).map(([name, { schema }]) => [name, schema])) as SchemasOf<F>

export function collection<Row, R extends TSchema, F extends Filters = Nothing, W extends Filters = Nothing>(
  definition: Definition<F, W, Row, R>,
): TableCollection<SchemasOf<F>, SchemasOf<W>, Row, R> {
  const { scope } = definition
  const conditions: Filters = { ...definition.filters, ...definition.within }
  const within = schemasOf(definition.within)
  const source: RowSource<Row> = { ...definition, pageBy: definition.pageBy ?? 'rows' }
  const pages = new PageReader(source)
  const sorted = new Map(
    Object.entries(definition.sorts ?? {}).map(([name, order]) => [name, new PageReader({ ...source, order })]),
  )
  const ownerOf = OWNER_IDS[scope.owner]
  const found = async (db: Executor, ownerId: string, id: string, locks: boolean): Promise<Row> => {
    const row = isUuid(id) ? await rowOfId(db, source, ownerId, scope.where(ownerId), id, locks) : null
    if (row === null) throw notFound()
    return row
  }
  const askedBy = (asker: Asker, given: Readonly<Record<string, unknown>>) => {
    const ownerId = ownerOf(asker)
    const where = allOf([definition.always?.(given, asker), ...conditionsOf(conditions, given, asker)])
    return { ownerId, owned: scope.where(ownerId), where }
  }
  return {
    ...definition,
    readAfter: (asker, given, afterId, limit) =>
      pages.readAfter(asker.hub.database.db, askedBy(asker, given), afterId, limit),
    filters: schemasOf(definition.filters),
    within,
    ownerOf,
    find: (db, ownerId, id) => found(db, ownerId, id, false),
    lock: (tx, ownerId, id) => found(tx.db, ownerId, id, true),
    read(asker, given, range) {
      assert(
        scope.owner !== 'parent' ||
          Object.entries(given).some(([name, value]) => name in within && value !== undefined),
        'a list of what belongs to a resource is within one',
      )
      const asked = askedBy(asker, given)
      const { db } = asker.hub.database
      const counted = definition.count?.(asker, given) ?? null
      const reader = ('sort' in given ? sorted.get(String(given.sort)) : undefined) ?? pages
      return reader.read(db, asked, range, counted ? () => counted : undefined)
    },
  }
}
