// Forms as browsers send them: where they came from, and what is in them.
import { ApiError } from '../../platform/http/api-error.ts'
import { readBytes } from '../../platform/http/json-body.ts'

const FORM_BYTES_MAX = 16 * 1024

/** Whether a form was sent from a page of this hub: by what the browser says of it, else by its origin. */
export function isOwnForm(request: Request): boolean {
  const site = request.headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin' || site === 'none'
  const origin = request.headers.get('origin')
  return origin === null || URL.parse(origin)?.host === request.headers.get('host')
}

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
