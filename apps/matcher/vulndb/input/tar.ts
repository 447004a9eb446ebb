// A tar archive read as a stream: the names and the bytes of its plain files (ustar, with GNU and pax long names).

import { SourceRefused } from '../source-refused.ts'
import type { ArchiveEntry } from './zip.ts'
import { checkEntryName, ENTRY_BYTES_MAX } from './zip.ts'

const BLOCK = 512

/** Hands out exact numbers of bytes of a stream. */
class ByteReader {
  private readonly iterator: AsyncIterator<Uint8Array>
  private held: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.iterator = chunks[Symbol.asyncIterator]()
  }

  /** Null at the end; throws when the stream ends inside. */
  async take(count: number): Promise<Buffer | null> {
    const pieces: Buffer[] = [this.held]
    let bytes = this.held.length
    while (bytes < count) {
      const next = await this.iterator.next()
      if (next.done) {
        if (bytes === 0) return null
        throw new SourceRefused('the tar archive is truncated')
      }
      pieces.push(Buffer.from(next.value))
      bytes += next.value.length
    }
    const all = Buffer.concat(pieces)
    this.held = all.subarray(count)
    return all.subarray(0, count)
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) {
      const piece = await this.take(Math.min(left, 64 * 1024))
      if (piece === null) throw new SourceRefused('the tar archive is truncated')
      left -= piece.length
    }
  }
}

const textAt = (block: Buffer, at: number, length: number): string => {
  const field = block.subarray(at, at + length)
  const end = field.indexOf(0)
  return field.subarray(0, end < 0 ? length : end).toString('utf8')
}

function sizeOf(block: Buffer): number {
  const text = textAt(block, 124, 12).trim()
  if (!/^[0-7]+$/.test(text)) throw new SourceRefused('the tar archive is broken: an entry has no size')
  return Number.parseInt(text, 8)
}

const SUM_AT = 148
const SUM_BYTES = 8

/** Whether the sum of the header's bytes, its own field taken as spaces, is another one than the header says. */
function hasOtherSum(block: Buffer): boolean {
  const said = textAt(block, SUM_AT, SUM_BYTES).trim()
  // Some programs write none.
  if (said === '') return false
  const sum = block.reduce((total, byte) => total + byte, 0)
  const field = block.subarray(SUM_AT, SUM_AT + SUM_BYTES).reduce((total, byte) => total + byte, 0)
  return Number.parseInt(said, 8) !== sum - field + SUM_BYTES * 0x20
}

const paxPath = (text: string): string | null => /(?:^|\n)\d+ path=([^\n]*)\n/.exec(text)?.[1] ?? null

export async function* tarEntries(
  chunks: AsyncIterable<Uint8Array>,
  isWanted: (name: string) => boolean,
): AsyncGenerator<ArchiveEntry> {
  const reader = new ByteReader(chunks)
  let longName: string | null = null
  for (let block = await reader.take(BLOCK); block !== null; block = await reader.take(BLOCK)) {
    if (block.every(byte => byte === 0)) return
    if (textAt(block, 257, 5) !== 'ustar')
      throw new SourceRefused('the tar archive is broken: no header where one must be')
    if (hasOtherSum(block)) throw new SourceRefused('the tar archive is broken: a header has another check sum')
    const size = sizeOf(block)
    const padded = Math.ceil(size / BLOCK) * BLOCK
    const kind = textAt(block, 156, 1)
    const prefix = textAt(block, 345, 155)
    const shortName = textAt(block, 0, 100)
    if (kind === 'L' || kind === 'x') {
      if (size > BLOCK * 128) throw new SourceRefused('the tar archive is broken: a name of more than 64 KiB')
      const text = (await reader.take(padded))?.subarray(0, size).toString('utf8') ?? ''
      longName = kind === 'L' ? text.replace(/\0.*$/s, '') : (paxPath(text) ?? longName)
      continue
    }
    const name = longName ?? (prefix === '' || block[257 + 5] === 0x20 ? shortName : `${prefix}/${shortName}`)
    longName = null
    checkEntryName(name)
    if ((kind !== '0' && kind !== '') || !isWanted(name)) {
      await reader.skip(padded)
      continue
    }
    if (size > ENTRY_BYTES_MAX) throw new SourceRefused('an entry of the archive is larger than 256 MiB')
    const bytes = size === 0 ? Buffer.alloc(0) : await reader.take(padded)
    if (bytes === null) throw new SourceRefused('the tar archive is truncated')
    yield { name, bytes: bytes.subarray(0, size) }
  }
}
