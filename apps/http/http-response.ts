// Responses of the listeners, and their heads as HTTP/1 writes them.
import { assert } from '../../core/assert.ts'

/** A response whose head is text already, up to its length: a Response costs more than the rest of a short request. */
export type PlainResponse = {
  readonly status: number
  readonly head: string
  readonly body: Uint8Array<ArrayBuffer> | string
}
export type AnyResponse = Response | PlainResponse

const statusTexts: Readonly<Record<number, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No Content',
  301: 'Moved Permanently',
  302: 'Found',
  303: 'See Other',
  304: 'Not Modified',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  417: 'Expectation Failed',
  421: 'Misdirected Request',
  422: 'Unprocessable Content',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
}
const statusLine = (status: number): string => `HTTP/1.1 ${status} ${statusTexts[status] ?? ''}\r\n`

/** What no value of a header field may hold: it would begin another field, or end the head. */
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/

/** Header fields as they are written. */
export function headerLines(headers: Readonly<Record<string, string>>): string {
  let lines = ''
  for (const name in headers) {
    const value = headers[name]!
    assert(!NO_VALUE.test(value), `the header field ${name} has a character that no field may have`)
    lines += `${name}: ${value}\r\n`
  }
  return lines
}

/** The first lines of a response. */
export const plainHead = (status: number, headers: Readonly<Record<string, string>>): string =>
  statusLine(status) + headerLines(headers)

/** The header fields of a response; those of its connection are left out. */
export const headersOf = (response: AnyResponse): [string, string][] =>
  response instanceof Response
    ? [...response.headers].filter(([name]) => name !== 'content-length' && name !== 'transfer-encoding')
    : response.head
        .split('\r\n')
        .slice(1, -1)
        .map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)])

/** Up to the lines that say how long the body is. */
export function headOf(response: AnyResponse): string {
  if (!(response instanceof Response)) return response.head
  let head = statusLine(response.status)
  for (const [name, value] of headersOf(response)) head += `${name}: ${value}\r\n`
  return head
}

/** The same as the runtime's own server takes it. */
export const standard = (response: AnyResponse): Response =>
  response instanceof Response
    ? response
    : new Response(response.body, { status: response.status, headers: headersOf(response) })

/** Server-sent events go out as they come and may have no end. */
export const isEventStream = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') === true

/** How many bytes a response says that it has; null where it says nothing. */
export function declaredBytes({ headers }: Response): number | null {
  const declared = headers.get('content-length')
  return declared === null ? null : Number(declared)
}

/** Of a response whose length is not known before it is read. */
export const sentInChunks = { 'Transfer-Encoding': 'chunked' } as const

/**
 * Whether a body goes out as it is read, and is never in memory as a whole: of a response that says how long it is, or
 * that it comes in chunks. Every other body is sent whole.
 */
export const isSentAsRead = (response: Response): boolean =>
  response.headers.has('content-length') || response.headers.has('transfer-encoding') || isEventStream(response)

const bytesOf = (body: PlainResponse['body']): Uint8Array<ArrayBuffer> =>
  typeof body === 'string' ? new TextEncoder().encode(body) : body

/** All of a body. One of no type is text, as the runtime's own server has it. */
export async function wholeBody(response: AnyResponse): Promise<Uint8Array<ArrayBuffer>> {
  if (!(response instanceof Response)) return bytesOf(response.body)
  const bytes = new Uint8Array(await response.arrayBuffer())
  if (bytes.length > 0 && !response.headers.has('content-type'))
    response.headers.set('content-type', 'text/plain;charset=utf-8')
  return bytes
}

/** The date of the second, as HTTP writes it. */
let dateSecond = 0
let dateText = ''
export function httpDate(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1000).toUTCString()
  }
  return dateText
}
