// A route is a schema, a permission, one call and one mapping. This file turns a definition into something that the
// pipeline (pipeline.ts) can run, and keeps the order of checks: resource (404) before data (422).
import { type Static, type TObject, type TSchema, type TUndefined, Type } from '@sinclair/typebox'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import type { Hub } from '../../hub-context.ts'
import type { Language, Words } from './api-texts.ts'
import type { Caller } from './caller.ts'
import { parseBody, parseQuery } from './request-schema.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Everything a handler may know of the request besides its data. */
export type RouteContext = {
  readonly hub: Hub
  readonly caller: Caller
  /** The company the request works in; empty for the collector and matcher families. */
  readonly companyId: string
  readonly params: Readonly<Record<string, string>>
  readonly ip: string
  /** X-Forwarded-For as it came; believed by the enrollment only, from a collector's token. */
  readonly forwardedFor: string | null
  readonly userAgent: string | null
  readonly language: Language
  readonly url: URL
  readonly signal: AbortSignal
  /**
   * Whether the caller would be admitted again now: for an answer that goes on. Not counted as a request; never
   * rejects.
   */
  readonly isStillAdmitted: () => Promise<boolean>
}

/** Text that may be sent instead of JSON, for example a file. */
type TextBody = { readonly type: string; readonly member: string }

type Definition<Q extends TObject, B extends TObject, S, A extends TSchema> = {
  readonly method: Method
  /** Below /api/v1, parameters as `:name`. */
  readonly path: string
  readonly tag: string
  readonly summary: string
  /** All are needed; none: any authenticated caller. */
  readonly permissions?: readonly string[]
  /**
   * What belongs to the caller alone needs no permission; a token that is limited to some permissions must have this
   * one.
   */
  readonly accountPermission?: string
  readonly superAdmin?: boolean
  /** False for what comes to a group of LEGACY_PATHS later: the paths without v1 are frozen. */
  readonly legacy?: false
  readonly query?: Q
  readonly body?: B
  readonly bodyBytesMax?: number
  /** A body of this type is text, and becomes the one member named. */
  readonly textBody?: TextBody
  /** The error code of bad data in the collector and matcher families. */
  readonly invalidCode?: string
  /**
   * Faults of a body that its schema cannot express, by field. Called for any JSON object whose schema check failed, so
   * that one response lists all faults; when the schema check passes, the handler makes the same check.
   */
  readonly crossFieldErrors?: (
    context: RouteContext & { readonly resource: S },
    given: Unchecked,
  ) => Promise<ReadonlyMap<string, Words>>
  /** Finds the resource of the path; throws 404. Runs before the data are looked at. */
  readonly resource?: (context: RouteContext) => Promise<S>
  /** Status of the answer; an answer of `undefined` is 204. */
  readonly status?: number
  /** The body of the answer; a route without one answers 204. */
  readonly answer?: A
  /** Another form than JSON that the answer has. */
  readonly answerType?: string
  /** Answers 404 although its path names nothing. */
  readonly may404?: boolean
  /** Parameters of the path that are no uuid. */
  readonly pathParameters?: Readonly<Record<string, TSchema>>
  /** What the document shows for a body that the handler itself looks at, member by member. */
  readonly docBody?: TObject
  readonly handle: (
    context: RouteContext & { readonly query: Static<Q>; readonly body: Static<B>; readonly resource: S },
  ) => Promise<Static<A>>
}

/** A definition with its types folded away. */
export type Route = {
  readonly method: Method
  readonly path: string
  readonly tag: string
  readonly summary: string
  readonly permissions: readonly string[]
  readonly accountPermission: string | null
  readonly superAdmin: boolean
  readonly legacy: boolean
  readonly status: number
  readonly querySchema: TObject | null
  readonly bodySchema: TObject | null
  readonly docBody: TObject | null
  readonly answerSchema: TSchema | null
  readonly answerType: string
  readonly may404: boolean
  readonly pathParameters: Readonly<Record<string, TSchema>>
  readonly bodyBytesMax: number | null
  readonly textBody: TextBody | null
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
    summary: definition.summary,
    permissions: definition.permissions ?? [],
    accountPermission: definition.accountPermission ?? null,
    superAdmin: definition.superAdmin ?? false,
    legacy: definition.legacy ?? LEGACY_PATHS.test(definition.path),
    status: definition.status ?? (definition.answer ? 200 : 204),
    querySchema: definition.query ?? null,
    bodySchema: definition.body ?? null,
    docBody: definition.docBody ?? definition.body ?? null,
    answerSchema: definition.answer ?? null,
    answerType: definition.answerType ?? 'application/json',
    may404: definition.may404 ?? false,
    pathParameters: definition.pathParameters ?? {},
    bodyBytesMax: definition.bodyBytesMax ?? null,
    textBody: definition.textBody ?? null,
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
