// GET of a collection: filters and paging as its collection says them, 15 rows a page, an exact total (decision G-07).
import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import type { Collection, Given, Schemas } from './collection.ts'
import { paged, pageOf, pageQuery } from './paging.ts'
import { answerPage } from './response-schema.ts'
import { type Route, type RouteContext, route } from './route.ts'

type ListDefinition<F extends Schemas, W extends Schemas, Row, R extends TSchema, S, P extends TProperties> = {
  readonly path: string
  readonly tag: string
  readonly summary: string
  readonly permissions?: readonly string[]
  readonly accountPermission?: string
  readonly superAdmin?: boolean
  readonly pathParameters?: Readonly<Record<string, TSchema>>
  readonly of: Collection<F, W, Row, R>
  /** Finds the resource of the path; throws 404. */
  readonly resource?: (context: RouteContext) => Promise<S>
  /** True for a list within a resource that callers may filter all the same. */
  readonly isFiltered?: boolean
  /** The resource that the rows belong to. */
  readonly within?: (context: RouteContext & { readonly resource: S }) => Given<F> & Given<W>
  /** Further members of the response, beside `data`. */
  readonly beside?: {
    readonly answer: P
    readonly read: (context: RouteContext & { readonly resource: S }) => Promise<Static<TObject<P>>>
  }
  /** Further members of `meta`, read before the rows. */
  readonly meta?: {
    readonly answer: TProperties
    readonly read: (context: RouteContext) => Readonly<Record<string, unknown>>
  }
}

const optionalOf = (schemas: Schemas): TProperties =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, Type.Optional(schema)]))

export function list<
  F extends Schemas,
  W extends Schemas,
  Row,
  R extends TSchema,
  S = null,
  P extends TProperties = Record<never, never>,
>({
  of,
  within,
  isFiltered = within === undefined,
  beside,
  meta,
  ...definition
}: ListDefinition<F, W, Row, R, S, P>): Route {
  const query: TObject = Type.Object({ ...(isFiltered ? optionalOf(of.filters) : {}), ...pageQuery })
  const { properties } = answerPage(of.response)
  const metaSchema = { meta: Type.Object({ ...properties.meta.properties, ...meta?.answer }) }
  return route<typeof query, TObject, S, ReturnType<typeof answerPage<R>>>({
    ...definition,
    method: 'GET',
    query,
    answer: Type.Object({ ...properties, ...(meta && metaSchema), ...beside?.answer }),
    async handle(context) {
      const { page: number, ...filters } = context.query
      const page = pageOf({ page: number as number | undefined })
      // The schema of the query is built from the schemas of the filters, so the parsed query has their types.
      const given = { ...filters, ...within?.(context) } as Given<F> & Given<W>
      const more = meta?.read(context)
      const { rows, total } = await of.read(context, given, page)
      const data = of.presentPage
        ? await of.presentPage(rows, context, given)
        : rows.map(row => of.present(row, context))
      const answered = paged(context.url, page, total, data)
      return { ...answered, meta: { ...answered.meta, ...more }, ...(await beside?.read(context)) }
    },
  })
}
