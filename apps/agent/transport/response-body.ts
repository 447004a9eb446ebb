// What the collector answers, up to a bound: as it is sent, and inflated (decision G-196). The agent inflates by
// itself, because `fetch` does so without any bound: a zstd answer of 32 KB may stand for a GiB.
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { readZstdFrames } from '../../../core/wire/zstd-frame.ts'

/**
 * An answer above this, as it is sent or inflated, is an error like a broken one. A configuration has 150 KB at most.
 */
const RESPONSE_BYTES_MAX = 1024 * 1024

/** The encodings that the agent asks for, and the only ones that it takes. */
export const acceptedEncodings = 'zstd, gzip'

/**
 * The body of an answer that was fetched with `decompress: false`. Rejects when it is too large, cut, or in an encoding
 * that was not asked for.
 */
export async function readResponseBody(response: Response): Promise<Uint8Array> {
  const raw = await readBounded(response)
  const encoding = response.headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity'
  if (encoding === 'identity' || encoding === '' || raw.length === 0) return raw
  try {
    return inflate(raw, encoding)
  } catch (error) {
    throw new Error(
      `a ${encoding.slice(0, 20)} answer that inflates to more than ${RESPONSE_BYTES_MAX} bytes, or is broken`,
      {
        cause: error,
      },
    )
  }
}

function inflate(raw: Uint8Array, encoding: string): Uint8Array {
  const options = { maxOutputLength: RESPONSE_BYTES_MAX }
  switch (encoding) {
    case 'gzip':
      return gunzipSync(raw, options)
    case 'zstd':
      // The decompressor does not notice a body that was cut.
      if (readZstdFrames(raw) === null) throw new Error('no whole zstd frames')
      return zstdDecompressSync(raw, options)
    default:
      throw new Error('this encoding was not asked for')
  }
}

async function readBounded(response: Response): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of response.body ?? []) {
    size += part.length
    if (size > RESPONSE_BYTES_MAX) throw new Error(`an answer of more than ${RESPONSE_BYTES_MAX} bytes`)
    parts.push(part)
  }
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
}
