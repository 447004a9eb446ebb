// An error that becomes a response. Any code below a route may throw it; respond.ts turns it into the response.
import { render, type TextKey, type Words, words } from './api-texts.ts'

/** The `reason` member of user-facing errors (decisions G-06, R-005). */
type Reason =
  | 'company_not_allowed'
  | 'permission_denied'
  | 'ip_not_allowed'
  | 'iac_upload_disabled'
  | 'invalid_token'
  | 'token_expired'
  | 'token_revoked'
  | 'rate_limited'
  | 'company_quota'
  | 'in_use'
  | 'version_conflict'
  | 'not_approver'
  | 'self_approval'
  | 'maintenance_mode'

export class ApiError extends Error {
  constructor(
    readonly status: number,
    /** The error code, in errors for collectors and matchers. */
    readonly code: string,
    readonly text: Words,
    readonly more: {
      readonly reason?: Reason
      readonly errors?: Readonly<Record<string, readonly Words[]>>
      readonly headers?: Readonly<Record<string, string>>
      /** Further members of the body, for people's programs: what refers to it, the version that it has. */
      readonly members?: Readonly<Record<string, unknown>>
    } = {},
  ) {
    super(code)
  }

  /** The same error with another code for collectors and matchers. */
  withCode(code: string): ApiError {
    return new ApiError(this.status, code, this.text, this.more)
  }
}

/** The first fault of an error, for the record of a run: `port: is required`. */
export function firstFaultText({ more, text }: ApiError): string {
  const [first] = Object.entries(more.errors ?? {})
  const said = render(first?.[1][0] ?? text, 'en')
  return first ? `${first[0]}: ${said}` : said
}

export const notFound = (): ApiError => new ApiError(404, 'not_found', words('not_found'))

export const permissionDenied = (permission: string): ApiError =>
  new ApiError(403, 'forbidden', words('permission_denied', { permission }), { reason: 'permission_denied' })

export const superAdminOnly = (): ApiError =>
  new ApiError(403, 'forbidden', words('super_admin_only'), { reason: 'permission_denied' })

/** A 422 with one text for each field. */
export function invalid(errors: Readonly<Record<string, Words>>, code = 'invalid_request'): ApiError {
  const lists = Object.fromEntries(Object.entries(errors).map(([field, text]) => [field, [text]]))
  return new ApiError(422, code, words('invalid'), { errors: lists })
}

export const invalidField = (
  field: string,
  key: TextKey,
  params?: Readonly<Record<string, string | number>>,
): ApiError => invalid({ [field]: words(key, params) })

export const tooManyRequests = (retryAfterSeconds: number): ApiError =>
  new ApiError(429, 'rate_limited', words('rate_limited', { seconds: retryAfterSeconds }), {
    reason: 'rate_limited',
    headers: { 'Retry-After': String(retryAfterSeconds) },
  })
