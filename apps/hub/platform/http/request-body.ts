// The body of a request as JSON or text: bounded in bytes and depth, UTF-8, and without characters that the database
// cannot store.
import { isNestedDeeper } from '../../../../core/wire/json-depth.ts'
import { ApiError, invalidField } from './api-error.ts'
import { words } from './api-texts.ts'
import { faultsError } from './request-schema.ts'
import type { Family } from './respond.ts'
import type { Route } from './route.ts'

const MIB = 1024 * 1024
const BODY_BYTES_MAX = 2 * MIB
/** Far deeper than any body of this API needs; functions that walk a body may recurse once for each level. */
const BODY_DEPTH_MAX = 100

/** The bytes of a body. Throws 413 when it is larger. */
export async function readBytes(request: Request, bytesMax: number): Promise<Uint8Array> {
  const tooLarge = () => new ApiError(413, 'too_large', words('too_large', { limit: bytesMax }))
  if (Number(request.headers.get('content-length') ?? 0) > bytesMax) throw tooLarge()
  if (!request.body) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body) {
    size += chunk.byteLength
    if (size > bytesMax) throw tooLarge()
    chunks.push(chunk)
  }
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)
}

/** The JSON body, or the text that the route takes instead; an absent body is an empty object. */
export async function readBody(request: Request, route: Route, family: Family, invalidCode?: string): Promise<unknown> {
  const bytes = await readBytes(request, route.bodyBytesMax ?? BODY_BYTES_MAX)
  if (bytes.byteLength === 0) return {}
  const type = (request.headers.get('content-type') ?? '').split(';')[0]!.trim().toLowerCase()
  const { textBody } = route
  const isText = textBody !== null && type === textBody.type
  if (!isText && type !== 'application/json' && !type.endsWith('+json'))
    throw new ApiError(415, 'unsupported_media_type', words('unsupported_type'))
  if (!isText && isNestedDeeper(bytes, BODY_DEPTH_MAX))
    throw new ApiError(400, 'bad_request', words('too_deep', { max: BODY_DEPTH_MAX }))
  let text: string
  let body: unknown
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    body = isText ? { [textBody.member]: text } : JSON.parse(text)
  } catch {
    throw faultsError(new Map([['body', words(isText ? 'utf8' : 'json')]]), invalidCode)
  }
  // The database can store neither NUL nor half of a surrogate pair. A user gets an error that names the field with
  // NUL; in a body of a collector, whose events contain what agents sent, it is replaced, so that nothing is lost.
  if (!/\\u(0000|d[89a-f])|\0/i.test(text)) return body
  if (family === 'user') {
    const field = fieldWithNul(body, '')
    if (field !== null) throw invalidField(field || 'body', 'no_nul')
  }
  return storable(body)
}

const storableText = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()

function storable(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value)
  if (Array.isArray(value)) return value.map(storable)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [storableText(key), storable(member)]))
}

/** The path, with dots, of the first text that contains NUL; null when none does. */
function fieldWithNul(value: unknown, path: string): string | null {
  if (typeof value === 'string') return value.includes('\0') ? path : null
  if (typeof value !== 'object' || value === null) return null
  for (const [key, member] of Object.entries(value)) {
    const here = path ? `${path}.${key}` : key
    const found = key.includes('\0') ? path || 'body' : fieldWithNul(member, here)
    if (found !== null) return found
  }
  return null
}
