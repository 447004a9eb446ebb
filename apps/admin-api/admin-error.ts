// What a caller of the admin API is told (document 3 "Hub to collector admin API"; decision G-132).
import {
  type AdminCode,
  type AdminErrorBody,
  adminCodes,
  type FieldFault,
  faultsHeader,
  faultsText,
} from '../../core/admin-api/envelope.ts'

export class AdminError extends Error {
  constructor(
    readonly code: AdminCode,
    message: string,
    /** When another call has a chance. */
    readonly retryAfterSeconds: number | null = null,
    /** The parameters that are at fault. */
    readonly fields: readonly FieldFault[] = [],
  ) {
    super(message)
  }
}

/** Refuses parameters, each with what was expected of it. */
export const badFields = (faults: readonly FieldFault[]): AdminError =>
  new AdminError('bad_request', faults.map(({ field, message }) => `${field} ${message}`).join('; '), null, faults)
export const badField = (field: string, message: string): AdminError => badFields([{ field, message }])

export function errorResponse(code: AdminCode, message: string, status: number = adminCodes[code]): Response {
  return Response.json({ error: { code, message } } satisfies AdminErrorBody, { status })
}

/** What was thrown for the caller, as its answer. */
export function responseOf({ code, message, fields, retryAfterSeconds }: AdminError): Response {
  const response = errorResponse(code, message)
  if (fields.length > 0) response.headers.set(faultsHeader, faultsText(fields))
  if (retryAfterSeconds !== null) response.headers.set('retry-after', String(retryAfterSeconds))
  return response
}
