// Bodies of the scan API: how large they are, how they are compressed, and whether they are JSON (MAT-039).
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { isNestedDeeper } from '../../../core/wire/json-depth.ts'
import { ApiError, badRequest, tooLarge } from '../../http/api-error.ts'
import { inflateZstd } from '../../http/body-limits.ts'

/** A report is nested three deep; what a later schema adds has room. */
const DEPTH_MAX = 16

/**
 * The body once inflated. A frame that says that it becomes `bytesMax` or more is refused before it is inflated, and
 * one that does not say it when it gets there.
 */
export function inflateBody(bytes: Uint8Array, encoding: string | null, bytesMax: number): Uint8Array | ApiError {
  switch ((encoding ?? '').trim().toLowerCase()) {
    case '':
    case 'identity':
      return bytes.length > bytesMax ? tooLarge(`the body is larger than ${bytesMax} bytes`) : bytes
    case 'zstd':
      return bytes.length === 0 ? bytes : inflateZstd(bytes, bytesMax - 1)
    default:
      return new ApiError(415, 'unsupported_encoding', 'the Content-Encoding must be zstd or none')
  }
}

/** Text that the databases behind cannot keep: U+0000, and halves of a pair of surrogates. */
const isUnstorable = (text: string): boolean => text.includes('\u0000') || !text.isWellFormed()

/** The path of the first text, member names included, that cannot be kept; null when there is none. */
function unstorablePath(value: unknown, path: string): string | null {
  if (typeof value === 'string') return isUnstorable(value) ? path : null
  if (typeof value !== 'object' || value === null) return null
  for (const [name, member] of Object.entries(value)) {
    if (isUnstorable(name)) return path
    const found = unstorablePath(member, `${path}/${name}`)
    if (found !== null) return found
  }
  return null
}

/** The object that a body is; an ApiError with the path of the fault when it is none. */
export function parseObject(bytes: Uint8Array): Unchecked | ApiError {
  if (isNestedDeeper(bytes, DEPTH_MAX)) return badRequest('the body is nested too deep')
  let text: string
  let value: unknown
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    value = JSON.parse(text)
  } catch {
    return badRequest('the body is no JSON')
  }
  if (!isObject(value)) return badRequest('the body is no JSON object')
  // Such characters can only come as an escape: JSON takes no control characters, and UTF-8 no halves.
  const path = text.includes('\\u') ? unstorablePath(value, '') : null
  return path === null ? value : badRequest(`${shownPath(path)} holds a character that cannot be kept`)
}

const PATH_CHARS_MAX = 128

/** A path of the body for a message: names in it are the sender's. */
export const shownPath = (path: string): string =>
  path === '' ? 'the body' : path.replace(/[^\x21-\x7e]/g, '?').slice(0, PATH_CHARS_MAX)
