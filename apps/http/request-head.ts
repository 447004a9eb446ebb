// The head of an HTTP/1 request: request line and fields (RFC 9112). Strict where two readings of one head could
// differ, since a proxy in front may have taken the other one: no folded fields, no bare CR or LF, one way to say how
// long the body is.

/** A head within these bytes is read; a larger one answers 431. */
export const HEAD_BYTES_MAX = 16 * 1024

export type RequestHead = {
  readonly method: string
  /** A path with its query, as a URL has them: without dot segments and fragment. */
  readonly target: string
  /** By name in lower case; fields of one name are joined. */
  readonly fields: Map<string, string>
  /** null: chunked. */
  readonly bodyBytes: number | null
  /** The connection may be used again. */
  readonly isKeptAlive: boolean
  readonly expectsContinue: boolean
  readonly isHttp10: boolean
}

/** What is wrong with a head, as the status and the words of the answer. */
export type HeadFault = { readonly status: 400 | 408 | 417 | 431 | 501 | 505; readonly message: string }

const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e\x80-\xff]+) HTTP\/(\d)\.(\d)$/
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Control characters but tabs, and ends of lines that are only half of one. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const NO_TEXT = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/
/** Names that were read before, in lower case: clients send the same ones again and again. */
const knownNames = new Map<string, string>()
const KNOWN_NAMES_MAX = 256

function nameOf(text: string): string | null {
  const known = knownNames.get(text)
  if (known !== undefined) return known
  if (!NAME.test(text)) return null
  const name = text.toLowerCase()
  if (knownNames.size < KNOWN_NAMES_MAX && text.length <= 64) knownNames.set(text, name)
  return name
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09
/**
 * A value without the blanks around it: spaces and tabs, and nothing else that a text may begin with. `trim` would take
 * a no-break space off too, and read `chunked` where a proxy in front read a coding that it does not know.
 */
function withoutBlanks(text: string, from: number, end: number): string {
  while (from < end && isBlank(text.charCodeAt(from))) from++
  while (end > from && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(from, end)
}
const LENGTH = /^\d{1,15}$/

const bad = (message: string): HeadFault => ({ status: 400, message })

/** Names of one field only: a second one would be another request to somebody who takes the first. */
const single: ReadonlySet<string> = new Set(['content-length', 'host', 'authorization', 'transfer-encoding'])

/** A request line, read: method, target and version. The target is null where it is neither path nor URL. */
type RequestLine = {
  readonly method: string
  readonly target: { readonly target: string; readonly host: string | null } | null
  readonly isHttp10: boolean
}

/**
 * The request line and the names of fields that were read last, as they were sent. Clients of one kind send the same
 * ones again and again, and to compare costs less than to cut out, to check and to look up.
 */
let lastLine = ''
let lastRequest: RequestLine | null = null
const lastNames: string[] = []
const lastKeys: string[] = []
const LAST_LINE_CHARS_MAX = 256
const LAST_NAMES_MAX = 32

function readRequestLine(text: string): RequestLine | HeadFault {
  if (lastRequest && text === lastLine) return lastRequest
  const parts = REQUEST_LINE.exec(text)
  if (!parts) return bad('the request line cannot be read')
  if (parts[3] !== '1' || parts[4]! > '1') return { status: 505, message: 'only HTTP/1.0 and HTTP/1.1 are spoken here' }
  const request = { method: parts[1]!, target: targetOf(parts[2]!), isHttp10: parts[4] === '0' }
  if (text.length <= LAST_LINE_CHARS_MAX) {
    lastLine = text
    lastRequest = request
  }
  return request
}

/** Reads a head, without its empty line, as one character a byte. */
export function readRequestHead(text: string): RequestHead | HeadFault {
  const lineEnd = text.indexOf('\r\n')
  const request = readRequestLine(lineEnd < 0 ? text : text.slice(0, lineEnd))
  if ('status' in request) return request
  if (NO_TEXT.test(text)) return bad('a header field has a control character')
  const fields = new Map<string, string>()
  let count = 0
  for (let at = lineEnd < 0 ? text.length : lineEnd + 2; at < text.length; count++) {
    const found = text.indexOf('\r\n', at)
    const end = found < 0 ? text.length : found
    const sent = lastNames[count]
    let name: string | null
    let valueAt: number
    if (sent !== undefined && text.startsWith(sent, at)) {
      name = lastKeys[count]!
      valueAt = at + sent.length
    } else {
      const colon = text.indexOf(':', at)
      if (colon < 0 || colon >= end) return bad('a header field has no colon')
      valueAt = colon + 1
      name = nameOf(text.slice(at, colon))
      if (name === null) return bad('the name of a header field cannot be read')
      if (count < LAST_NAMES_MAX && valueAt - at <= 64) {
        lastNames[count] = text.slice(at, valueAt)
        lastKeys[count] = name
      }
    }
    const value = withoutBlanks(text, valueAt, end)
    const before = fields.get(name)
    if (before !== undefined && single.has(name)) return bad(`header ${name} stands twice`)
    fields.set(name, before === undefined ? value : `${before}${name === 'cookie' ? ';' : ','} ${value}`)
    at = end + 2
  }
  return framed(request, fields)
}

/** What makes a target another one to a URL: dot segments, a backslash, a fragment, characters beyond ASCII. */
const ODD_TARGET = /\/(?:\.|%2e)|[\\#\x80-\xff]/i

/** A target as path and query, and the host where it names one; null for one that is neither path nor URL. */
function targetOf(sent: string): { target: string; host: string | null } | null {
  if (sent.startsWith('/') && !ODD_TARGET.test(sent)) return { target: sent, host: null }
  const isPath = sent.startsWith('/')
  if (!isPath && !/^https?:\/\//i.test(sent)) return null
  const text = Buffer.from(sent, 'latin1').toString('utf8')
  const url = URL.parse(isPath ? `http://localhost${text}` : text)
  return url && { target: url.pathname + url.search, host: isPath ? null : url.host }
}

function framed({ method, target, isHttp10 }: RequestLine, fields: Map<string, string>): RequestHead | HeadFault {
  if (!isHttp10 && !fields.has('host')) return bad('header host is missing')
  const length = fields.get('content-length')
  const coding = fields.get('transfer-encoding')
  if (coding !== undefined) {
    if (length !== undefined || isHttp10) return bad('the body has a transfer-encoding and a content-length')
    if (coding.toLowerCase() !== 'chunked') return { status: 501, message: 'the only transfer-encoding is chunked' }
  } else if (length !== undefined && !LENGTH.test(length)) return bad('header content-length is no length')
  const expect = isHttp10 ? undefined : fields.get('expect')?.toLowerCase()
  if (expect !== undefined && expect !== '100-continue')
    return { status: 417, message: 'the only expectation that is met is 100-continue' }
  if (!target) return bad('the target of the request is neither a path nor a URL')
  // A target with a host has the last word on it (RFC 9112, 3.2.2).
  if (target.host !== null) fields.set('host', target.host)
  const connection = fields.get('connection')?.toLowerCase()
  const says = (word: string): boolean => connection?.split(',').some(part => part.trim() === word) === true
  return {
    method,
    target: target.target,
    fields,
    bodyBytes: coding === undefined ? Number(length ?? 0) : null,
    isKeptAlive: isHttp10 ? says('keep-alive') : connection === undefined || !says('close'),
    expectsContinue: expect !== undefined,
    isHttp10,
  }
}
