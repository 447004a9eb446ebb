// A route is a schema, a permission, one call and one mapping. This file turns a definition into something that the
// pipeline (pipeline.ts) can run, and keeps the order of checks: resource (404) before data (422).
import { type Static, type TObject, type TSchema, type TUndefined, Type } from '@sinclair/typebox'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import type { IncomingRequest } from '../../../http/http-request.ts'
import type { Hub } from '../../hub-context.ts'
import type { AuditChanges } from '../db/schema-identity.ts'
import type { Language, Words } from './api-texts.ts'
import type { Caller } from './caller.ts'
import type { Reply } from './reply.ts'
import { parseBody, parseQuery } from './request-schema.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** What a handler may know about the request besides its data. */
export type RouteContext = {
  readonly hub: Hub
  readonly caller: Caller
  /** The company the request works in; empty for the collector and matcher families. */
  readonly companyId: string
  readonly params: Readonly<Record<string, string>>
  readonly ip: string
  /** X-Forwarded-For as it was sent; used by enrollment only, where a collector's token vouches for it. */
  readonly forwardedFor: string | null
  readonly userAgent: string | null
  readonly language: Language
  readonly url: URL
  /** A header of the request by its name; null when it was not sent. */
  readonly header: (name: string) => string | null
  /** Made when it is asked for. */
  readonly signal: () => AbortSignal
  /**
   * Whether the caller would be admitted again now: for a response that stays open. Not counted as a request; never
   * rejects.
   */
  readonly isStillAdmitted: () => Promise<boolean>
  /** What every entry in the audit log of what follows says beside its own changes: the run of manifests behind it. */
  readonly auditNote?: AuditChanges
}

/** The caller that a link in the query stands for, and the company that it works in. */
export type LinkedCaller = { readonly caller: Caller; readonly companyId: string }
type ByLink = (hub: Hub, request: IncomingRequest) => Promise<LinkedCaller | null>

/** Text that a client may send instead of JSON, for example a file. */
type TextBody = { readonly type: string; readonly member: string; readonly example?: string }

type Definition<Q extends TObject, B extends TObject, S, A extends TSchema> = {
  readonly method: Method
  /** The path below /api/v1, with parameters as `:name`. */
  readonly path: string
  readonly tag: string
  readonly tagText?: string
  readonly summary: string
  /** The caller needs all of these; with none, any authenticated caller may call. */
  readonly permissions?: readonly string[]
  /**
   * For routes that show only what belongs to the caller, which needs no permission; a token that is restricted to some
   * permissions must have this one.
   */
  readonly accountPermission?: string
  readonly superAdmin?: boolean
  /** For what a link alone may open: null for a request without one; throws 401 for one that is over. */
  readonly byLink?: ByLink
  /** False for a route added to a group of LEGACY_PATHS after the paths without v1 were frozen. */
  readonly legacy?: false
  readonly query?: Q
  readonly body?: B
  readonly bodyBytesMax?: number
  /** A body of this media type is read as text and becomes the member named here. */
  readonly textBody?: TextBody
  /**
   * A form (multipart/form-data) is taken too: its texts become members, its file the members `name` and
   * `content_base64`.
   */
  readonly formBody?: boolean
  /** Media types beside that of the answer, which the handler may answer with. */
  readonly otherTypes?: readonly string[]
  /** The error code for invalid data in the collector and matcher families. */
  readonly invalidCode?: string
  /** True when the handler of a matcher's route sees to characters that the database cannot store. */
  readonly keepsText?: boolean
  /**
   * Faults of a body that its schema cannot express, by field. Called for any JSON object whose schema check failed, so
   * that one response lists all faults; when the schema check passes, the handler makes the same check.
   */
  readonly crossFieldErrors?: (
    context: RouteContext & { readonly resource: S },
    given: Unchecked,
  ) => Promise<ReadonlyMap<string, Words>>
  /** Finds the resource of the path; throws 404. Runs before the data are validated. */
  readonly resource?: (context: RouteContext) => Promise<S>
  /** Status of the response; a result of `undefined` is answered with 204. */
  readonly status?: number
  /** The schema of the response's body; a route without one answers 204. */
  readonly answer?: A
  /** The media type of the response when it is not JSON; of any type, ANYTHING. */
  readonly answerType?: string
  /** What the handler answers with other statuses (a `Reply`): the schema of the body, null for none. */
  readonly otherResponses?: Readonly<Record<number, TSchema | null>>
  /** True for a route that can answer 404 although its path has no parameter. */
  readonly may404?: boolean
  /** Statuses of errors beyond those that every route has (409, 412). */
  readonly refusals?: readonly number[]
  /** Schemas of path parameters that are not uuids. */
  readonly pathParameters?: Readonly<Record<string, TSchema>>
  /** The schema that the document shows for a body that the handler validates itself, member by member. */
  readonly docBody?: TObject
  readonly handle: (
    context: RouteContext & { readonly query: Static<Q>; readonly body: Static<B>; readonly resource: S },
  ) => Promise<Static<A> | Reply>
}

/** A definition with its types folded away. */
export type Route = {
  readonly method: Method
  readonly path: string
  readonly tag: string
  /** What the document says of the tag, where the route knows it; null where the document does. */
  readonly tagText: string | null
  readonly summary: string
  readonly permissions: readonly string[]
  readonly accountPermission: string | null
  readonly superAdmin: boolean
  readonly byLink: ByLink | null
  readonly legacy: boolean
  readonly status: number
  readonly querySchema: TObject | null
  readonly bodySchema: TObject | null
  readonly docBody: TObject | null
  readonly answerSchema: TSchema | null
  readonly answerType: string
  readonly otherResponses: Readonly<Record<number, TSchema | null>>
  readonly may404: boolean
  readonly refusals: readonly number[]
  readonly pathParameters: Readonly<Record<string, TSchema>>
  readonly bodyBytesMax: number | null
  readonly textBody: TextBody | null
  readonly formBody: boolean
  readonly otherTypes: readonly string[]
  readonly keepsText: boolean
  readonly run: (context: RouteContext, readBody: (invalidCode?: string) => Promise<unknown>) => Promise<unknown>
}

const NOTHING = Type.Object({})
const NO_FAULTS: Promise<ReadonlyMap<string, Words>> = Promise.resolve(new Map())
/** Groups that are also served without v1 (decision G-11). */
const LEGACY_PATHS = /^\/(servers|monitoring\/licenses|monitoring\/alerts|iac)(\/|$)/

export function route<
  Q extends TObject = typeof NOTHING,
  B extends TObject = typeof NOTHING,
  S = null,
  A extends TSchema = TUndefined,
>(definition: Definition<Q, B, S, A>): Route {
  return {
    method: definition.method,
    path: definition.path,
    tag: definition.tag,
    tagText: definition.tagText ?? null,
    summary: definition.summary,
    permissions: definition.permissions ?? [],
    accountPermission: definition.accountPermission ?? null,
    superAdmin: definition.superAdmin ?? false,
    byLink: definition.byLink ?? null,
    legacy: definition.legacy ?? LEGACY_PATHS.test(definition.path),
    status: definition.status ?? (definition.answer ? 200 : 204),
    querySchema: definition.query ?? null,
    bodySchema: definition.body ?? null,
    docBody: definition.docBody ?? definition.body ?? null,
    answerSchema: definition.answer ?? null,
    answerType: definition.answerType ?? 'application/json',
    otherResponses: definition.otherResponses ?? {},
    may404: definition.may404 ?? false,
    refusals: definition.refusals ?? [],
    pathParameters: definition.pathParameters ?? {},
    bodyBytesMax: definition.bodyBytesMax ?? null,
    textBody: definition.textBody ?? null,
    formBody: definition.formBody ?? false,
    otherTypes: definition.otherTypes ?? [],
    keepsText: definition.keepsText ?? false,
    async run(context, readBody) {
      const resource = (definition.resource ? await definition.resource(context) : null) as S
      const query = (definition.query ? parseQuery(definition.query, context.url.searchParams) : {}) as Static<Q>
      const { body: schema, invalidCode, crossFieldErrors } = definition
      const further = (given: unknown) =>
        crossFieldErrors && isObject(given) ? crossFieldErrors({ ...context, resource }, given) : NO_FAULTS
      const body = (
        schema ? await parseBody(schema, await readBody(invalidCode), invalidCode, further) : {}
      ) as Static<B>
      return definition.handle({ ...context, query, body, resource })
    },
  }
}
