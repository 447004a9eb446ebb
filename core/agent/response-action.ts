// What the agent does with a response of the collector: the error table of document 3, row by row (decisions G-27,
// G-37, G-50, G-56).

export type Call = 'enroll' | 'metrics' | 'config' | 'inventory' | 'renew' | 'update'

/** A response, reduced to what the decision needs; `code` is error.code of the JSON body, or null. */
export type Answer =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly code: string | null
      readonly retryAfterMs: number | null
      /** False where something in between answered: a proxy, a portal that wants a login. */
      readonly isOfCollector: boolean
    }
  | { readonly kind: 'no_answer'; readonly cause: string }

/**
 * - success: the work is done; a batch leaves the buffer
 * - unchanged: keep the present config
 * - drop: give this body up, log, do not retry it
 * - split: send the batch in two parts, once
 * - unauthorized: stop sending, read /config every 10 minutes
 * - revoked: stop until enrolled again
 * - report: tell the operator, no retry
 * - upgrade: keep the work, back off, report that an upgrade is needed
 * - hourly: keep, warn once, retry in an hour
 * - back_off: keep the work and retry later
 */
export type Action =
  | 'success'
  | 'unchanged'
  | 'drop'
  | 'split'
  | 'unauthorized'
  | 'revoked'
  | 'report'
  | 'upgrade'
  | 'hourly'
  | 'back_off'

/** True when the collector answered with an error and took nothing of the request. */
export const isRefusal = (answer: Answer): boolean => answer.kind === 'answer' && answer.status >= 400

/** Types of texts. */
const IS_TEXT = /^text\/|json|xml/

const typeOf = (contentType: string | null): string => contentType?.split(';')[0]?.trim().toLowerCase() ?? ''
const isWebPage = (contentType: string | null): boolean => typeOf(contentType) === 'text/html'

/** What an operator is told of an answer that is not the collector's. */
export const somethingElse = (contentType: string | null): string =>
  `${isWebPage(contentType) ? 'a web page' : 'something else'} answered instead of the collector`

export function isJson(body: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
    return true
  } catch {
    return false
  }
}

/**
 * Whether an answer may be the collector's: it sends protobuf, JSON or nothing. Errors are believed in any form but a
 * web page; that something was kept, in no other text. Of a body that calls itself no text its reader decides.
 */
export function isFromCollector(status: number, contentType: string | null, body: Uint8Array): boolean {
  const type = typeOf(contentType)
  if (isWebPage(contentType)) return status >= 300 && body.length === 0
  return status >= 300 || body.length === 0 || !IS_TEXT.test(type) || isJson(body)
}

/** Statuses of an enrollment that a retry cannot change. */
const FINAL_AT_ENROLMENT = new Set([400, 401, 403, 409, 413, 422])

/**
 * The agent's action. For a status outside the table (a proxy's 404, a redirect), and for an answer that is not the
 * collector's, the agent backs off and keeps its data. Only a batch that a proxy calls too large is split all the same:
 * whole it would never get through.
 */
export function actionFor(call: Call, answer: Answer): Action {
  if (answer.kind === 'no_answer') return 'back_off'
  const { status, code } = answer
  if (!answer.isOfCollector && !(status === 413 && call === 'metrics')) return 'back_off'
  if (status === 200 || status === 201 || status === 202 || status === 204) return 'success'
  if (status === 426) return 'upgrade'
  if (call === 'enroll') return FINAL_AT_ENROLMENT.has(status) ? 'report' : 'back_off'
  switch (status) {
    case 304:
      return call === 'config' ? 'unchanged' : 'back_off'
    case 400:
    case 422:
      return 'drop'
    case 401:
      return 'unauthorized'
    case 403:
      // Only the collector's own error code stops an agent for good, since a proxy in between can answer 403 too.
      return code === 'agent_revoked' ? 'revoked' : 'back_off'
    case 413:
      return call === 'metrics' ? 'split' : 'drop'
    case 503:
      return call === 'renew' ? 'hourly' : 'back_off'
    default:
      return 'back_off'
  }
}

/**
 * Milliseconds that a Retry-After header asks for: whole seconds or an HTTP date; null when absent or unreadable. A
 * date is compared with the responder's own clock (its Date header), since the clock of a host that has just started
 * may be years behind.
 */
export function parseRetryAfter(header: string | null, date: string | null, nowMs: number): number | null {
  if (header === null) return null
  const trimmed = header.trim()
  if (/^\d{1,9}$/.test(trimmed)) return Number(trimmed) * 1000
  const atMs = /^[A-Za-z]{3},/.test(trimmed) ? Date.parse(trimmed) : Number.NaN
  const serverNowMs = Date.parse(date ?? '')
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - (Number.isNaN(serverNowMs) ? nowMs : serverNowMs))
}

/** error.code and error.message of a JSON error body; nulls for anything else. */
export function parseErrorBody(text: string): { code: string | null; message: string | null } {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return { code: null, message: null }
  }
  const error = member(parsed, 'error')
  const code = member(error, 'code')
  const message = member(error, 'message')
  return {
    code: typeof code === 'string' ? code : null,
    message: typeof message === 'string' ? message.slice(0, 300) : null,
  }
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  const found = Object.entries(value).find(([key]) => key === name)
  return found?.[1]
}
