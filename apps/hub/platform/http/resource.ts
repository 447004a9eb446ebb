// The usual endpoints of a resource: show, create, change, delete, and actions on one (`POST /teams/{team}/archive`).
// Each is defined by a summary, a permission, a body and one call; this file does the rest for all of them: it finds
// the row of the path (404 before 422), and sets the status and the shape of the response.
import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import type { Unchecked } from '../../../../core/json-object.ts'
import type { Executor } from '../db/connect.ts'
import type { Words } from './api-texts.ts'
import { BULK_MAX, bulkResponse, forEachId, type Refusal } from './bulk.ts'
import type { Asker } from './collection.ts'
import { isKnown, notModified, Reply, versionTag } from './reply.ts'
import { listOf, uuid } from './request-schema.ts'
import { answer } from './response-schema.ts'
import { type Method, type Route, type RouteContext, route } from './route.ts'

/** The parts of a collection that a response with one row needs. */
type Shown<Row, R extends TSchema> = {
  readonly response: R
  readonly present: (row: Row, asker: Asker) => Static<R>
}
type Finder<Row> = (context: RouteContext, id: string) => Promise<Row>
type FindingCollection<Row> = {
  readonly find: (db: Executor, ownerId: string, id: string) => Promise<Row>
  readonly ownerOf: (asker: Asker) => string
}

type ResourceDefinition<Row, R extends TSchema> = {
  /** The path of the collection, below /api/v1. */
  readonly path: string
  /** The name of the id in paths: `team` for /teams/{team}. */
  readonly parameter: string
  readonly tag: string
  /**
   * The id and version of a row whose changes are guarded by If-Match: answers carry its ETag, and who asks
   * with it is not told again.
   */
  readonly versioned?: (row: Row) => { readonly id: string; readonly version: number }
} & (
  | { readonly of: Shown<Row, R> & FindingCollection<Row>; readonly find?: undefined }
  /** For rows with their own way to be found; throws 404. */
  | { readonly of: Shown<Row, R>; readonly find: Finder<Row> }
)

const finderOf = <Row, R extends TSchema>(definition: ResourceDefinition<Row, R>): Finder<Row> => {
  if (definition.find) return definition.find
  const { of } = definition
  return (context, id) => of.find(context.hub.database.db, of.ownerOf(context), id)
}

type Common = {
  readonly summary: string
  readonly permissions?: readonly string[]
  readonly superAdmin?: boolean
  readonly refusals?: readonly number[]
}
type WithBody<B extends TObject> = { readonly body?: B }
/** Faults of a body that its schema cannot express (see route.ts). */
type Further<C> = { readonly crossFieldErrors?: (context: C, given: Unchecked) => Promise<ReadonlyMap<string, Words>> }
type OnResource<Row> = RouteContext & { readonly resource: Row }
/** A row, and the further members of its response. */
type With<Row, P extends TProperties> = { readonly row: Row; readonly beside: Static<TObject<P>> }
type OnRow<Row, B> = (context: RouteContext, row: Row, body: B) => Promise<Row>

type BulkDefinition<Row, P extends TProperties> = Common & {
  /** The member of the body that lists the ids. */
  readonly ids: string
  readonly idsMax?: number
  /** Further members of the body. */
  readonly body?: P
  readonly act: (context: RouteContext, id: string, body: Static<TObject<P>>) => Promise<Row>
}

const NO_BODY = Type.Object({})

class ResourceRoutes<Row, R extends TSchema> {
  private readonly find: Finder<Row>
  private readonly onePath: string
  // The compiler knows the type of a generic schema only once it is instantiated, so the type is stated here.
  private readonly form: ReturnType<typeof Type.Unsafe<{ data: Static<R> }>>

  constructor(private readonly definition: ResourceDefinition<Row, R>) {
    this.find = finderOf(definition)
    this.onePath = `${definition.path}/:${definition.parameter}`
    this.form = Type.Unsafe<{ data: Static<R> }>(answer(definition.of.response))
  }

  /** The row of the path. Throws 404. */
  readonly resource = (context: RouteContext): Promise<Row> =>
    this.find(context, context.params[this.definition.parameter] ?? '')

  private data(row: Row, context: RouteContext): { data: Static<R> } {
    return { data: this.definition.of.present(row, context) }
  }

  /** One row, with what tells its version. */
  private one(row: Row, context: RouteContext, isNew = false): { data: Static<R> } | Reply<{ data: Static<R> }> {
    const data = this.data(row, context)
    const known = this.definition.versioned?.(row)
    if (known === undefined) return data
    const tag = { ETag: versionTag(known) }
    return new Reply(data, { headers: isNew ? { ...tag, Location: `${context.url.pathname}/${known.id}` } : tag })
  }

  /** One row, or 304 to who has this version of it: what changes without a version, as its uses do, does not count. */
  private oneUnlessKnown(row: Row, context: RouteContext) {
    const known = this.definition.versioned?.(row)
    const tag = known && versionTag(known)
    return tag !== undefined && isKnown(context, tag) ? notModified(tag) : this.one(row, context)
  }

  private formWith<P extends TProperties>(beside: P) {
    const { response } = this.definition.of
    return Type.Unsafe<{ data: Static<R> } & Static<TObject<P>>>(Type.Object({ data: response, ...beside }))
  }

  private formOfMany() {
    const { response } = this.definition.of
    return Type.Unsafe<{ data: readonly Static<R>[]; refused: readonly Refusal[] }>(bulkResponse(response))
  }

  /** A call on the row of the path. The response shows the row after the call. */
  private onRow<B extends TObject = typeof NO_BODY>(
    method: Method,
    rowPath: string,
    {
      act,
      ...rest
    }: Common &
      WithBody<B> &
      Further<OnResource<Row>> & { readonly status?: number; readonly act: OnRow<Row, Static<B>> },
  ): Route {
    return route({
      ...rest,
      method,
      path: rowPath,
      tag: this.definition.tag,
      resource: this.resource,
      answer: this.form,
      handle: async context => this.one(await act(context, context.resource, context.body), context),
    })
  }

  readonly show = (common: Common): Route =>
    route({
      ...common,
      method: 'GET',
      path: this.onePath,
      tag: this.definition.tag,
      resource: this.resource,
      answer: this.form,
      ...(this.definition.versioned ? { otherResponses: { 304: null } } : {}),
      handle: async context => this.oneUnlessKnown(context.resource, context),
    })

  readonly create = <B extends TObject>({
    act,
    ...rest
  }: Common &
    Further<RouteContext> & {
      readonly body: B
      readonly bodyBytesMax?: number
      readonly formBody?: boolean
      readonly act: (context: RouteContext, body: Static<B>) => Promise<Row>
    }): Route =>
    route({
      ...rest,
      method: 'POST',
      path: this.definition.path,
      tag: this.definition.tag,
      status: 201,
      answer: this.form,
      handle: async context => this.one(await act(context, context.body), context, true),
    })

  /** Create, with further members that only this response has: a secret, a token. */
  readonly createWith = <B extends TObject, P extends TProperties>({
    act,
    beside,
    ...rest
  }: Common & {
    readonly body: B
    readonly beside: P
    readonly act: (context: RouteContext, body: Static<B>) => Promise<With<Row, P>>
  }): Route =>
    route({
      ...rest,
      method: 'POST',
      path: this.definition.path,
      tag: this.definition.tag,
      status: 201,
      answer: this.formWith(beside),
      handle: async context => {
        const made = await act(context, context.body)
        return { ...this.data(made.row, context), ...made.beside }
      },
    })

  readonly change = <B extends TObject>(
    definition: Common & Further<OnResource<Row>> & { readonly body: B; readonly act: OnRow<Row, Static<B>> },
  ): Route => this.onRow<B>('PATCH', this.onePath, definition)

  readonly replace = <B extends TObject>(
    definition: Common & Further<OnResource<Row>> & { readonly body: B; readonly act: OnRow<Row, Static<B>> },
  ): Route => this.onRow<B>('PUT', this.onePath, definition)

  /** Answers 204. */
  readonly delete = ({
    act,
    ...common
  }: Common & { readonly act: (context: RouteContext, row: Row) => Promise<void> }): Route =>
    route({
      ...common,
      method: 'DELETE',
      path: this.onePath,
      tag: this.definition.tag,
      resource: this.resource,
      handle: async context => {
        await act(context, context.resource)
        return undefined
      },
    })

  /** POST (or PUT) of an action on the row or on a part of it. */
  readonly act = <B extends TObject = typeof NO_BODY>(
    name: string,
    definition: Common &
      WithBody<B> & { readonly method?: Method; readonly status?: number; readonly act: OnRow<Row, Static<B>> },
  ): Route => {
    const { method = 'POST', ...rest } = definition
    return this.onRow<B>(method, `${this.onePath}/${name}`, rest)
  }

  readonly actWith = <P extends TProperties>(
    name: string,
    {
      act,
      beside,
      ...rest
    }: Common & {
      readonly beside: P
      readonly act: (context: RouteContext, row: Row) => Promise<With<Row, P>>
    },
  ): Route =>
    route({
      ...rest,
      method: 'POST',
      path: `${this.onePath}/${name}`,
      tag: this.definition.tag,
      resource: this.resource,
      answer: this.formWith(beside),
      handle: async context => {
        const changed = await act(context, context.resource)
        return { ...this.data(changed.row, context), ...changed.beside }
      },
    })

  /** POST /bulk/… with many ids: acts on each row that it can, and names the others with the reason (bulk.ts). */
  readonly bulk = <P extends TProperties>(
    name: string,
    { act, ids, idsMax = BULK_MAX, body, ...common }: BulkDefinition<Row, P>,
  ): Route => {
    const schema = Type.Object({ [ids]: listOf(uuid(), idsMax, 1), ...body })
    return route<typeof NO_BODY, TObject, null, ReturnType<typeof this.formOfMany>>({
      ...common,
      method: 'POST',
      path: `${this.definition.path}/bulk/${name}`,
      tag: this.definition.tag,
      body: schema,
      answer: this.formOfMany(),
      may404: true,
      handle: async context => {
        // The schema above has validated it.
        const given = context.body as Static<TObject<P>> & Readonly<Record<string, unknown>>
        const { done, refused } = await forEachId(
          given[ids] as readonly string[],
          context.language,
          id => this.find(context, id),
          id => act(context, id, given),
        )
        return { data: done.map(row => this.definition.of.present(row, context)), refused }
      },
    })
  }
}

export const resourceRoutes = <Row, R extends TSchema>(definition: ResourceDefinition<Row, R>) =>
  new ResourceRoutes(definition)
