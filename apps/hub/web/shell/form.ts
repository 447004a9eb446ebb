// What is in a form as browsers send it; whether it is taken: identity/csrf.ts.
import { ApiError } from '../../platform/http/api-error.ts'
import { readBytes } from '../../platform/http/json-body.ts'

const FORM_BYTES_MAX = 16 * 1024

/** The fields of a form; none when the body is something else or too large. */
export async function readForm(request: Request): Promise<URLSearchParams> {
  const type = request.headers.get('content-type') ?? ''
  if (!type.toLowerCase().startsWith('application/x-www-form-urlencoded')) return new URLSearchParams()
  try {
    return new URLSearchParams(new TextDecoder().decode(await readBytes(request, FORM_BYTES_MAX)))
  } catch (error) {
    if (error instanceof ApiError) return new URLSearchParams()
    throw error
  }
}
