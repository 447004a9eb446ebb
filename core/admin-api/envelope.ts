// The admin API of a collector, as the collector serves it and the hub asks it (document 3 "Hub to collector admin
// API"; decisions G-131, G-132). Here: where it is, and how answers and refusals are wrapped. The answers of single
// calls stand in the files beside it.
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

/** The body of a refusal. */
export type AdminErrorBody = { readonly error: { readonly code: AdminCode; readonly message: string } }

/**
 * The header of a refusal that says which parameters are at fault, so that nobody has to read the message for them. The
 * body of a refusal has code and message, and nothing else.
 */
export const faultsHeader = 'x-refused-parameters'

/** Faults as the value of the header: JSON in ASCII. */
export const faultsText = (faults: readonly FieldFault[]): string =>
  JSON.stringify(faults.map(({ field, message }) => ({ field, message }))).replace(
    /[^\x20-\x7e]/g,
    char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const isFieldFault = (value: unknown): value is FieldFault =>
  isObject(value) && typeof value.field === 'string' && typeof value.message === 'string'

/** The faults of a header; none where it is absent, or says nothing that can be read. */
export function parseFaults(header: string | null): readonly FieldFault[] {
  if (header === null) return []
  try {
    const parsed: unknown = JSON.parse(header)
    return Array.isArray(parsed) ? parsed.filter(isFieldFault) : []
  } catch {
    return []
  }
}

/** What a refusal says; empty where it says nothing. */
export function messageOfRefusal(body: unknown): string {
  const message = isObject(body) && isObject(body.error) ? body.error.message : ''
  return typeof message === 'string' ? message : ''
}

/** What stands under `data` of an answer; null where it is no object. */
export function dataOf(body: unknown): Unchecked | null {
  const data = isObject(body) ? body.data : null
  return isObject(data) ? data : null
}

/** Labels as they came: whatever is no text becomes its text. */
export const labelsOf = (value: unknown): Readonly<Record<string, string>> =>
  isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, label]) => [name, String(label)])) : {}
