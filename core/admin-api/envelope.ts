// The admin API of a collector, as the collector serves it and the hub asks it (document 3 "Hub to collector admin API"; decisions G-131,
// G-132). Here: where it is, and how answers and refusals are wrapped. The answers of single calls stand in the files beside it.
import { isObject, type Unchecked } from '../unchecked.ts'

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

/** What is wrong with one parameter: which, and what was expected of it. */
export type FieldFault = { readonly field: string; readonly message: string }

/** The body of a refusal. `fields` is there where parameters are at fault, so that nobody has to read the message for them. */
export type AdminErrorBody = {
  readonly error: { readonly code: AdminCode; readonly message: string; readonly fields?: readonly FieldFault[] }
}

export function adminErrorBody(code: AdminCode, message: string, fields: readonly FieldFault[] = []): AdminErrorBody {
  return { error: { code, message, ...(fields.length > 0 ? { fields } : {}) } }
}

const isFieldFault = (value: unknown): value is FieldFault =>
  isObject(value) && typeof value.field === 'string' && typeof value.message === 'string'

/** What a refusal says. Without `fields` where it is about no parameter, or comes of a collector that does not name them. */
export function parseRefusal(body: unknown): { readonly message: string; readonly fields: readonly FieldFault[] } {
  const error = isObject(body) && isObject(body.error) ? body.error : {}
  return {
    message: typeof error.message === 'string' ? error.message : '',
    fields: Array.isArray(error.fields) ? error.fields.filter(isFieldFault) : [],
  }
}

/** What stands under `data` of an answer; null where it is no object. */
export function dataOf(body: unknown): Unchecked | null {
  const data = isObject(body) ? body.data : null
  return isObject(data) ? data : null
}

/** Labels as they came: whatever is no text becomes its text. */
export const labelsOf = (value: unknown): Readonly<Record<string, string>> =>
  isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, label]) => [name, String(label)])) : {}
