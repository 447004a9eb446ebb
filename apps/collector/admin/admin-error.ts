// What a caller of the admin API is told (document 3 "Hub to collector admin API"; decision G-132).
export const adminCodes = {
  bad_request: 400,
  unauthorized: 401,
  not_found: 404,
  method_not_allowed: 405,
  not_implemented: 501,
  unavailable: 503,
} as const
export type AdminCode = keyof typeof adminCodes

export class AdminError extends Error {
  constructor(
    readonly code: AdminCode,
    message: string,
    /** When another call has a chance. */
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(message)
  }
}

/** The message begins with the name of the field, so that the hub can put it there. */
export const badField = (field: string, expected: string): AdminError =>
  new AdminError('bad_request', `${field} ${expected}`)

export function errorResponse(code: AdminCode, message: string, status: number = adminCodes[code]): Response {
  return Response.json({ error: { code, message } }, { status })
}

/** What was thrown for the caller, as its answer. */
export function responseOf({ code, message, retryAfterSeconds }: AdminError): Response {
  const response = errorResponse(code, message)
  if (retryAfterSeconds !== null) response.headers.set('retry-after', String(retryAfterSeconds))
  return response
}
