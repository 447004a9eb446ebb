// Errors of the listeners that agents and scanners call: always JSON with a code (document 3 "Errors").

/** An error that becomes a response. `retryAfterSeconds` becomes the Retry-After header. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfterSeconds: number | null = null,
    /** Members of the response beside the error. */
    readonly more: Readonly<Record<string, unknown>> = {},
  ) {
    super(message)
  }
}

export const badRequest = (message: string): ApiError => new ApiError(400, 'bad_request', message)
export const tooLarge = (message: string): ApiError => new ApiError(413, 'too_large', message)
export const unavailable = (message: string, retryAfterSeconds = 30): ApiError =>
  new ApiError(503, 'unavailable', message, retryAfterSeconds)
export const rateLimited = (seconds: number): ApiError =>
  new ApiError(429, 'rate_limited', `too many requests; the next one is taken in ${seconds} s`, seconds)

/** The response of an error. `challenge`: how callers show who they are. */
export function errorResponse(error: ApiError, challenge = 'Bearer'): Response {
  const headers: Record<string, string> = {}
  if (error.retryAfterSeconds !== null) headers['retry-after'] = String(error.retryAfterSeconds)
  if (error.status === 401) headers['www-authenticate'] = challenge
  return Response.json(
    { error: { code: error.code, message: error.message }, ...error.more },
    { status: error.status, headers },
  )
}
