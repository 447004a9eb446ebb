// The body of a request as JSON or text: bounded in bytes and depth, UTF-8, and without characters that the database
// cannot store.

import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { isNestedDeeper } from '../../../../core/wire/json-depth.ts'
import { readZstdFrames } from '../../../../core/wire/zstd-frame.ts'
import type { IncomingRequest } from '../../../http/http-request.ts'
import { ApiError, invalidField } from './api-error.ts'
import { type TextKey, words } from './api-texts.ts'
import { faultsError } from './request-schema.ts'
import type { Family } from './respond.ts'
import type { Route } from './route.ts'

const MIB = 1024 * 1024
const BODY_BYTES_MAX = 2 * MIB
/** Far deeper than any body of this API needs; functions that walk a body may recurse once for each level. */
const BODY_DEPTH_MAX = 100

/** The bytes of a body. Throws 413 when it is larger. */
export async function readBytes(request: IncomingRequest, bytesMax: number): Promise<Uint8Array> {
  const tooLarge = () => new ApiError(413, 'too_large', words('too_large', { limit: bytesMax }))
  if (Number(request.headers.get('content-length') ?? 0) > bytesMax) throw tooLarge()
  if (!request.body) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = request.body.getReader()
  for (;;) {
    const { done, value: chunk } = await reader.read()
    if (done || !chunk) break
    size += chunk.byteLength
    if (size > bytesMax) {
      await reader.cancel()
      throw tooLarge()
    }
    chunks.push(chunk)
  }
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)
}

const MATCHER_BYTES_MAX = 16 * MIB
const MATCHER_INFLATED_BYTES_MAX = 64 * MIB

/** A matcher's body as it was before it was compressed; null when it is too large, broken or compressed otherwise. */
function inflated(bytes: Uint8Array, encoding: string): Uint8Array | null {
  const maxOutputLength = MATCHER_INFLATED_BYTES_MAX
  try {
    if (encoding === '' || encoding === 'identity') return bytes
    if (encoding === 'gzip' || encoding === 'x-gzip') return gunzipSync(bytes, { maxOutputLength })
    // The decompressor does not notice that a body ended early; its frames tell.
    if (encoding === 'zstd' && readZstdFrames(bytes)) return zstdDecompressSync(bytes, { maxOutputLength })
  } catch {
    // Broken, or larger than it may become.
  }
  return null
}

/**
 * The JSON body of a matcher, of any media type. Whatever is wrong with it answers 422, since a matcher gives up what
 * is refused with another status (decision G-167). Characters that the database cannot store are left to the handler.
 */
async function readMatcherBody(request: IncomingRequest, code: string): Promise<unknown> {
  const refused = (key: TextKey, params?: Readonly<Record<string, number>>) =>
    faultsError(new Map([['body', words(key, params)]]), code)
  let bytes: Uint8Array
  try {
    bytes = await readBytes(request, MATCHER_BYTES_MAX)
  } catch (error) {
    if (error instanceof ApiError) throw refused('too_large', { limit: MATCHER_BYTES_MAX })
    throw error
  }
  const whole = inflated(bytes, (request.headers.get('content-encoding') ?? '').trim().toLowerCase())
  if (whole === null) throw refused('inflate')
  if (isNestedDeeper(whole, BODY_DEPTH_MAX)) throw refused('too_deep', { max: BODY_DEPTH_MAX })
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(whole))
  } catch {
    throw refused('json')
  }
}

/** A form as the JSON body that it stands for. Throws 422 for one that is none, or without its file. */
async function readForm(request: IncomingRequest, bytes: Uint8Array): Promise<Readonly<Record<string, unknown>>> {
  const members: Record<string, unknown> = {}
  try {
    const form = await new Response(new Uint8Array(bytes), {
      headers: { 'Content-Type': request.headers.get('content-type') ?? '' },
    }).formData()
    for (const [name, value] of form) {
      if (typeof value === 'string') members[name] = value
      else if (name === 'file') {
        members.name ??= value.name
        members.content_base64 = Buffer.from(await value.arrayBuffer()).toString('base64')
      }
    }
  } catch {
    throw faultsError(new Map([['body', words('form')]]))
  }
  if (members.content_base64 === undefined) throw faultsError(new Map([['file', words('required')]]))
  return members
}

/** The JSON body, or the text that the route takes instead; an absent body is an empty object. */
export async function readBody(
  request: IncomingRequest,
  route: Route,
  family: Family,
  invalidCode?: string,
): Promise<unknown> {
  if (family === 'matcher') {
    const body = await readMatcherBody(request, invalidCode ?? 'invalid_data')
    return route.keepsText ? body : storable(body)
  }
  const bytes = await readBytes(request, route.bodyBytesMax ?? BODY_BYTES_MAX)
  if (bytes.byteLength === 0) return {}
  const type = (request.headers.get('content-type') ?? '').split(';')[0]!.trim().toLowerCase()
  if (route.formBody && type === 'multipart/form-data') return storable(await readForm(request, bytes))
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

/** JSON of others as the database can hold it: without NUL and halves of characters. */
export function storable(value: unknown): unknown {
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
