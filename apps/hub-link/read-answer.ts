// Reads the body of a response of the hub within a bound: a larger body is not held in memory. Of a page of a feed that
// is too large, the members before and after the records are still extracted, which is what skipping it takes.

/** Bytes kept from the beginning and the end of a body that is too large: enough for the members around the records. */
const EDGE_BYTES = 16 * 1024
/** Reading of a larger body is given up. */
const SKIMMED_BYTES_MAX = 2 * 1024 * 1024 * 1024

type LargeResponse = {
  readonly bytes: number
  readonly end: { readonly nextSince: number; readonly more: boolean } | null
  readonly first: { readonly id: string | null; readonly companyId: string | null }
}

const lastOf = (pattern: RegExp, text: string): string | null => [...text.matchAll(pattern)].at(-1)?.[1] ?? null

/** The members of a page stand before its records or after them. */
function seen(bytes: number, head: string, tail: string): LargeResponse {
  const member = (pattern: RegExp): string | null => lastOf(pattern, tail) ?? pattern.exec(head)?.[1] ?? null
  const nextSince = member(/"next_since"\s*:\s*(\d{1,15})\b/g)
  const more = member(/"more"\s*:\s*(true|false)\b/g)
  const ID = '"\\s*:\\s*"([0-9A-Za-z._-]{1,64})"'
  return {
    bytes,
    end: nextSince === null || more === null ? null : { nextSince: Number(nextSince), more: more === 'true' },
    first: {
      id: new RegExp(`"(?:agent_)?id${ID}`).exec(head)?.[1] ?? null,
      companyId: new RegExp(`"company_id${ID}`).exec(head)?.[1] ?? null,
    },
  }
}

/** The last bytes of a stream. */
class Tail {
  private kept = new Uint8Array(0)

  add(chunk: Uint8Array): void {
    const joined = new Uint8Array(Math.min(EDGE_BYTES, this.kept.length + chunk.length))
    const fromChunk = Math.min(chunk.length, joined.length)
    joined.set(chunk.subarray(chunk.length - fromChunk), joined.length - fromChunk)
    const fromKept = joined.length - fromChunk
    if (fromKept > 0) joined.set(this.kept.subarray(this.kept.length - fromKept))
    this.kept = joined
  }

  get text(): string {
    return new TextDecoder().decode(this.kept)
  }
}

/**
 * The text of a body of at most `bytesMax`. A larger one gives the facts that could be extracted: with `isSkimmed` it
 * is read to its end, else reading stops. Throws what the connection throws.
 */
export async function readResponse(
  response: Response,
  bytesMax: number,
  isSkimmed: boolean,
): Promise<string | LargeResponse> {
  const announced = Number(response.headers.get('content-length') ?? Number.NaN)
  // Content-Length counts the bytes on the wire; it says nothing about the size of a compressed body after
  // decompression.
  if (announced <= bytesMax && response.headers.get('content-encoding') === null) return response.text()
  if (response.body === null) return ''
  const reader = response.body.getReader()
  const chunks: Uint8Array[] = []
  const tail = new Tail()
  let head = ''
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    bytes += value.length
    if (bytes <= bytesMax) {
      chunks.push(value)
      continue
    }
    if (chunks.length > 0) {
      const held = Buffer.concat(chunks)
      head = held.toString('utf8', 0, EDGE_BYTES)
      tail.add(held.subarray(-EDGE_BYTES))
      chunks.length = 0
    }
    if (head === '') head = new TextDecoder().decode(value.subarray(0, EDGE_BYTES))
    tail.add(value)
    if (isSkimmed && bytes <= SKIMMED_BYTES_MAX) continue
    await reader.cancel()
    return { bytes, end: null, first: { id: null, companyId: null } }
  }
  return bytes <= bytesMax ? Buffer.concat(chunks).toString('utf8') : seen(bytes, head, tail.text)
}
