// Bytes of a file given or fetched, inflated as they are read (MAT-074): gzip, zstd or plain by their first bytes. A
// stream that grows beyond 200 times what was read of it is refused before the rest is inflated.
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { SourceRefused } from '../source-refused.ts'
import { ZstdEnd } from './zstd-end.ts'

export const INFLATION_MAX = 200
/** Below it nothing is a bomb, whatever its ratio: small texts of one repeated line are honest. */
export const INFLATION_FREE_BYTES = 64 * 1024

export type Packing = 'zip' | 'gzip' | 'zstd' | 'tar' | 'plain'

const HEAD_BYTES = 512
const TAR_MAGIC_AT = 257

/** What a file is, by its first 512 bytes. */
function packingOf(head: Uint8Array): Packing {
  const begins = (...bytes: number[]): boolean => bytes.every((byte, at) => head[at] === byte)
  if (begins(0x50, 0x4b, 0x03, 0x04) || begins(0x50, 0x4b, 0x05, 0x06)) return 'zip'
  if (begins(0x1f, 0x8b)) return 'gzip'
  if (begins(0x28, 0xb5, 0x2f, 0xfd)) return 'zstd'
  const isTar = Buffer.from(head.subarray(TAR_MAGIC_AT, TAR_MAGIC_AT + 5)).toString('latin1') === 'ustar'
  return isTar ? 'tar' : 'plain'
}

export async function packingOfFile(path: string): Promise<Packing> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    return packingOf(buffer.subarray(0, bytesRead))
  } finally {
    await file.close()
  }
}

/** The first bytes of a stream, and the whole stream again. */
export async function peekPacking(
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ readonly packing: Packing; readonly chunks: AsyncIterable<Uint8Array> }> {
  const iterator = chunks[Symbol.asyncIterator]()
  const held: Uint8Array[] = []
  let bytes = 0
  while (bytes < HEAD_BYTES) {
    const next = await iterator.next()
    if (next.done) break
    held.push(next.value)
    bytes += next.value.length
  }
  async function* again(): AsyncGenerator<Uint8Array> {
    yield* held
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value
  }
  return { packing: packingOf(Buffer.concat(held)), chunks: again() }
}

/** A file's bytes, inflated when it is packed by gzip or zstd. Throws SourceRefused for a bomb or a broken stream. */
export async function* inflatedFile(path: string, packing: Packing): AsyncGenerator<Uint8Array> {
  const source = createReadStream(path, { highWaterMark: 256 * 1024 })
  if (packing !== 'gzip' && packing !== 'zstd') {
    for await (const chunk of source) if (chunk instanceof Uint8Array) yield chunk
    return
  }
  yield* inflated(source, packing)
}

/** Inflates a stream within the limit of MAT-074, or another one where the size is announced and signed. */
export async function* inflated(
  source: Readable,
  packing: 'gzip' | 'zstd',
  inflationMax = INFLATION_MAX,
): AsyncGenerator<Uint8Array> {
  let bytesIn = 0
  let bytesOut = 0
  const end = new ZstdEnd()
  const counter = new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      bytesIn += chunk.length
      if (packing === 'zstd') end.push(chunk)
      done(null, chunk)
    },
  })
  const inflater = packing === 'gzip' ? createGunzip() : createZstdDecompress()
  let failure: unknown = null
  const piping = pipeline(source, counter, inflater).catch(error => {
    failure = error
  })
  try {
    for await (const chunk of inflater) {
      if (!(chunk instanceof Uint8Array)) continue
      bytesOut += chunk.length
      if (bytesOut > INFLATION_FREE_BYTES && bytesOut > bytesIn * inflationMax)
        throw new SourceRefused(`it inflates beyond ${inflationMax} times its size`)
      yield chunk
    }
    await piping
    if (failure !== null) throw failure
    if (packing === 'zstd' && !end.isWhole) throw new SourceRefused('its zstd stream is truncated or broken')
  } catch (error) {
    if (error instanceof SourceRefused) throw error
    throw new SourceRefused(`its ${packing} stream is truncated or broken`, { cause: error })
  } finally {
    source.destroy()
    inflater.destroy()
  }
}
