// The admin API of a collector, shared by the collector that serves it and the hub that calls it (document 3 "Hub to
// collector admin API"; decisions G-131, G-132). This file has the path prefix and the envelopes of responses and
// errors; the files beside it have the responses of single calls.
import { isObject, type Unchecked } from '../json-object.ts'

export const adminPrefix = '/internal/v1'

export const adminCodes = {
  bad_request: 400,
  unauthorized: 401,
  not_found: 404,
  method_not_allowed: 405,
  not_implemented: 501,
  unavailable: 503,
} as const
export type AdminCode = keyof typeof adminCodes

/** A fault of one parameter: its name, and what was expected. */
export type FieldFault = { readonly field: string; readonly message: string }

/** The body of a refusal. */
export type AdminErrorBody = { readonly error: { readonly code: AdminCode; readonly message: string } }

/**
 * The header in which an error response names the faulty parameters, so that nobody has to parse the message. The body
 * of an error has code and message only.
 */
export const faultsHeader = 'x-refused-parameters'

/** Encodes faults as the value of that header: JSON in ASCII. */
export const faultsText = (faults: readonly FieldFault[]): string =>
  JSON.stringify(faults.map(({ field, message }) => ({ field, message }))).replace(
    /[^\x20-\x7e]/g,
    char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const isFieldFault = (value: unknown): value is FieldFault =>
  isObject(value) && typeof value.field === 'string' && typeof value.message === 'string'

/** Decodes the faults of that header; empty when it is absent or malformed. */
export function parseFaults(header: string | null): readonly FieldFault[] {
  if (header === null) return []
  try {
    const parsed: unknown = JSON.parse(header)
    return Array.isArray(parsed) ? parsed.filter(isFieldFault) : []
  } catch {
    return []
  }
}

/** The message of an error body; empty when it has none. */
export function messageOfRefusal(body: unknown): string {
  const message = isObject(body) && isObject(body.error) ? body.error.message : ''
  return typeof message === 'string' ? message : ''
}

/** The member `data` of a response; null when it is not an object. */
export function dataOf(body: unknown): Unchecked | null {
  const data = isObject(body) ? body.data : null
  return isObject(data) ? data : null
}

/** Reads labels; values that are not text are converted to text. */
export const labelsOf = (value: unknown): Readonly<Record<string, string>> =>
  isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, label]) => [name, String(label)])) : {}
