// One place that turns results and errors into responses: JSON, the error form of the family. What an error that nobody
// expected says: unexpected-error.ts.
import { type AnyResponse, type PlainResponse, plainHead } from '../../../http/http-response.ts'
import type { ApiError } from './api-error.ts'
import { type Language, render } from './api-texts.ts'
import { Reply } from './reply.ts'

/** Who reads the response: people and their programs, a collector, or the security matcher. */
export type Family = 'user' | 'collector' | 'matcher'

export const familyOf = (path: string): Family => {
  if (path === '/monitoring/collector' || path.startsWith('/monitoring/collector/')) return 'collector'
  return path === '/security/matcher' || path.startsWith('/security/matcher/') ? 'matcher' : 'user'
}

export type ResponseHeaders = Record<string, string>

function json(status: number, body: unknown, headers: ResponseHeaders): PlainResponse {
  const head = `${plainHead(status, headers)}Content-Type: application/json; charset=utf-8\r\n`
  return { status, head, body: JSON.stringify(body) }
}

/** The response for the value that a handler returned. */
export function respond(
  result: unknown,
  status: number,
  family: Family,
  headers: ResponseHeaders,
  nowMs: number,
): AnyResponse {
  if (result instanceof Response) {
    for (const [name, value] of Object.entries(headers)) result.headers.set(name, value)
    return result
  }
  if (result instanceof Reply) {
    const { body, more } = result
    const all = { ...headers, ...more.headers }
    const ownStatus = more.status ?? status
    if (body === undefined) return { status: ownStatus, head: plainHead(ownStatus, all), body: '' }
    return json(ownStatus, body, all)
  }
  if (result === undefined) return { status: 204, head: plainHead(204, headers), body: '' }
  if (family !== 'collector') return json(status, result, headers)
  return json(status, { ...(result as object), server_time: new Date(nowMs).toISOString() }, headers)
}

/** Codes that matchers know by another word (decisions G-151, G-168). */
const MATCHER_CODES: Readonly<Record<string, string>> = { unavailable: 'server_error', invalid_request: 'invalid_data' }

/** The error in the common error format (decision G-06). */
export function respondError(
  error: ApiError,
  family: Family,
  language: Language,
  headers: ResponseHeaders,
  nowMs: number,
): PlainResponse {
  const all = {
    ...headers,
    'Content-Language': language,
    ...(error.status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}),
    ...error.more.headers,
  }
  const message = render(error.text, language)
  const code = family === 'matcher' ? (MATCHER_CODES[error.code] ?? error.code) : error.code
  if (family !== 'user') {
    const fields = Object.entries(error.more.errors ?? {}).map(
      ([field, texts]) => `${field}: ${texts.map(text => render(text, language)).join(', ')}`,
    )
    const body: Record<string, unknown> = {
      error: { code, message: fields.length > 0 ? fields.slice(0, 10).join('; ') : message },
    }
    if (family === 'collector') body.server_time = new Date(nowMs).toISOString()
    return json(error.status, body, all)
  }
  const body: Record<string, unknown> = { message }
  if (error.more.reason) body.reason = error.more.reason
  Object.assign(body, error.more.members)
  if (error.status === 422)
    body.errors = Object.fromEntries(
      Object.entries(error.more.errors ?? {}).map(([field, texts]) => [
        field,
        texts.map(text => render(text, language)),
      ]),
    )
  return json(error.status, body, all)
}
