// How a file or an export is sent: which range of it, under which name, and never to be shown by a browser.
import type { Hub } from '../hub-context.ts'
import { type Kept, streamOf } from './stored-objects.ts'

/** What a Range header asks for of so many bytes (RFC 9110 section 14.2): null for all, 'outside' for none of them. */
export function rangeOf(header: string | null, bytes: number): { from: number; to: number } | 'outside' | null {
  const found = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '')
  // Several ranges, other units and malformed ones may be ignored.
  if (!found || (found[1] === '' && found[2] === '')) return null
  const [, first = '', last = ''] = found
  if (first === '') {
    const count = Math.min(Number(last), bytes)
    return count === 0 ? 'outside' : { from: bytes - count, to: bytes - 1 }
  }
  const [from, to] = [Number(first), last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1)]
  if (last !== '' && Number(last) < from) return null
  return from >= bytes ? 'outside' : { from, to }
}

/** A name in a Content-Disposition header: ASCII, and the whole of it encoded (RFC 6266, RFC 8187). */
export function attachmentOf(name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%/]/g, '_')
  const encoded = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    letter => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}

/** Sends an object, or the range of it that is asked for. A browser saves it and never shows it. */
export function download(
  hub: Hub,
  { objectId, bytes, sha256, type, name }: Downloadable,
  header: (name: string) => string | null,
): Response {
  const etag = `"${sha256}"`
  const headers: Record<string, string> = {
    'Content-Type': type,
    'Content-Disposition': attachmentOf(name),
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "default-src 'none'; sandbox",
    'Accept-Ranges': 'bytes',
    ETag: etag,
  }
  const known = header('if-none-match')
  if (known !== null && (known.trim() === '*' || known.split(',').some(each => each.trim() === etag)))
    return new Response(null, { status: 304, headers: { ETag: etag } })
  // A range of what has changed since is no use to the client.
  const ifRange = header('if-range')
  const range = ifRange === null || ifRange.trim() === etag ? rangeOf(header('range'), bytes) : null
  if (range === 'outside')
    return new Response(null, { status: 416, headers: { 'Content-Range': `bytes */${bytes}`, ETag: etag } })
  const { from, to } = range ?? { from: 0, to: bytes - 1 }
  if (range) headers['Content-Range'] = `bytes ${from}-${to}/${bytes}`
  headers['Content-Length'] = String(to - from + 1)
  return new Response(streamOf(hub, objectId, from, to), { status: range ? 206 : 200, headers })
}

type Downloadable = Kept & { readonly objectId: string; readonly type: string; readonly name: string }
