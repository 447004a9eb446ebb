// A request's body within its limits: as it is sent (document 3: 1 MiB) and once inflated (8 MiB). A compression bomb
// is stopped before it inflates where the frame declares its size, and at the limit where it does not.
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { readZstdFrames } from '../../core/wire/zstd-frame.ts'
import { type ApiError, badRequest, tooLarge } from './api-error.ts'
import { free } from './body-framing.ts'
import type { IncomingRequest } from './http-request.ts'

/** What is read of a body that is refused anyway, so that its sender gets to read the answer. */
const DISCARD_BYTES_MAX = 32 * 1024 * 1024
type BodyReader = {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(): Promise<void>
}

const noBytes = new Uint8Array(0)

/** Reads and drops a body. An HTTP/2 client that is answered in the middle of its body may not see the answer. */
export async function discardBody(request: IncomingRequest): Promise<void> {
  const declared = Number(request.headers.get('content-length') ?? 0)
  if (!request.body || declared > DISCARD_BYTES_MAX) return
  await discardRest(request.body.getReader(), 0)
}

async function discardRest(reader: BodyReader, already: number): Promise<void> {
  let total = already
  try {
    while (total <= DISCARD_BYTES_MAX) {
      const { done, value } = await reader.read()
      if (done || !value) return
      total += value.length
    }
    await reader.cancel()
  } catch {
    // The sender is gone; there is nobody left to answer.
  }
}

/**
 * The bytes of a body, at most `bytesMax`; an ApiError beyond it. Rejects when the sender breaks off: see
 * `isBrokenOff`.
 */
export function readBody(request: IncomingRequest, bytesMax: number): Promise<Uint8Array | ApiError> {
  const declared = request.headers.get('content-length')
  if (declared === null) return readStream(request, bytesMax)
  if (Number(declared) > bytesMax) return refuseBody(request, bytesMax)
  return request.bytes()
}

/**
 * The same for a reader that needs the bytes no longer than until its response, and keeps nothing of them: a body that
 * is there is not copied.
 */
export function viewBody(request: IncomingRequest, bytesMax: number): Uint8Array | Promise<Uint8Array | ApiError> {
  const { view } = request
  return view && view.length <= bytesMax ? view : readBody(request, bytesMax)
}

/** True for the error of a body whose sender is gone; there is nobody to be answered. */
export const isBrokenOff = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError'

async function refuseBody(request: IncomingRequest, bytesMax: number): Promise<ApiError> {
  await discardBody(request)
  return tooLarge(`the body is larger than ${bytesMax} bytes`)
}

/** A body of unknown length (chunked, or HTTP/2 without a length). */
async function readStream(request: IncomingRequest, bytesMax: number): Promise<Uint8Array | ApiError> {
  if (!request.body) return noBytes
  const reader: BodyReader = request.body.getReader()
  const parts: Uint8Array[] = []
  let total = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done || !value) break
      total += value.length
      if (total > bytesMax) {
        parts.length = 0
        await discardRest(reader, total)
        return tooLarge(`the body is larger than ${bytesMax} bytes`)
      }
      parts.push(value)
    }
  } catch {
    return badRequest('the body ended early')
  }
  if (parts.length === 1) return parts[0]!
  const bytes = new Uint8Array(total)
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/**
 * Frees the memory of bytes that nobody reads any more. The garbage collector would come for it late: meanwhile every
 * body would be read into memory that no cache holds. Costs nothing where the bytes are part of something larger, which
 * stays.
 */
export function giveBack({ buffer, byteLength }: Uint8Array): void {
  if (byteLength === buffer.byteLength) free(buffer)
}

/** The body once inflated, at most `bytesMax`, by its Content-Encoding: none, identity, zstd or gzip. */
export function inflate(bytes: Uint8Array, encoding: string | null, bytesMax: number): Uint8Array | ApiError {
  // An empty message has no bytes to compress.
  if (bytes.length === 0) return bytes
  switch (encoding === 'zstd' ? encoding : (encoding ?? '').trim().toLowerCase()) {
    case 'zstd':
      return inflateZstd(bytes, bytesMax)
    case 'gzip':
    case 'x-gzip':
      return guarded(() => gunzipSync(bytes, { maxOutputLength: bytesMax }), bytesMax)
    case '':
    case 'identity':
      return bytes.length > bytesMax ? tooLarge(`the body is larger than ${bytesMax} bytes`) : bytes
    default:
      return badRequest('the Content-Encoding must be zstd, gzip or none')
  }
}

/** The body once inflated; `bytesMax` as for `inflate`. */
export function inflateZstd(bytes: Uint8Array, bytesMax: number): Uint8Array | ApiError {
  const frames = readZstdFrames(bytes)
  if (!frames) return badRequest('the body is no whole zstd frame')
  const { frameCount, contentBytes } = frames
  if (contentBytes !== null && contentBytes > bytesMax)
    return tooLarge(`the body inflates to more than ${bytesMax} bytes`)
  // The fast decompressor has no limit of its own: it is given a frame only where the frame says how large it becomes.
  return contentBytes !== null && frameCount === 1
    ? guarded(() => Bun.zstdDecompressSync(bytes as Uint8Array<ArrayBuffer>), bytesMax)
    : guarded(() => zstdDecompressSync(bytes, { maxOutputLength: bytesMax }), bytesMax)
}

function guarded(run: () => Uint8Array, bytesMax: number): Uint8Array | ApiError {
  try {
    return run()
  } catch (error) {
    const isTooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
    return isTooLarge
      ? tooLarge(`the body inflates to more than ${bytesMax} bytes`)
      : badRequest('the body cannot be inflated')
  }
}
