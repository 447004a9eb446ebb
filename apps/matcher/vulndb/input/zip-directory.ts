// The directory at the end of a zip archive: how many entries it announces, and the check sum of each. What inflates
// the entries looks at neither (MAT-066, MAT-074).
import { type FileHandle, open } from 'node:fs/promises'
import { strFromU8 } from 'fflate'
import { SourceRefused } from '../source-refused.ts'

export type ZipDirectory = {
  /** Null where there are more than the field holds. */
  readonly announced: number | null
  /** The `sumKey` of each entry: a name may occur again. */
  readonly sums: ReadonlySet<string>
}

export const sumKey = (name: string, crc32: number): string => `${crc32} ${name}`

export const BROKEN = 'the archive is truncated or broken'

const END_BYTES = 22
const END_SEARCH_BYTES = END_BYTES + 65_535
/** Of archives whose fields in the end are too small, just before it: where the larger end is. */
const LOCATOR = 0x07064b50
const LOCATOR_BYTES = 20
const LARGE_END = 0x06064b50
const LARGE_END_BYTES = 56
const ENTRY = 0x02014b50
const ENTRY_BYTES = 46
const UTF8_NAME = 0x0800
const MANY_ENTRIES = 0xffff
const DIRECTORY_BYTES_MAX = 128 * 1024 * 1024

async function bytesAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at)
  if (bytesRead < length) throw new SourceRefused(BROKEN)
  return buffer
}

/** Where the directory is, by the larger end; null where there is none. */
async function largePlace(file: FileHandle, endAt: number): Promise<{ at: number; size: number } | null> {
  if (endAt < LOCATOR_BYTES) return null
  const locator = await bytesAt(file, endAt - LOCATOR_BYTES, LOCATOR_BYTES)
  if (locator.readUInt32LE(0) !== LOCATOR) return null
  const end = await bytesAt(file, Number(locator.readBigUInt64LE(8)), LARGE_END_BYTES)
  if (end.readUInt32LE(0) !== LARGE_END) throw new SourceRefused(BROKEN)
  return { at: Number(end.readBigUInt64LE(48)), size: Number(end.readBigUInt64LE(40)) }
}

function sumsOf(directory: Buffer): Set<string> {
  const sums = new Set<string>()
  for (let at = 0; at + ENTRY_BYTES <= directory.length && directory.readUInt32LE(at) === ENTRY; ) {
    const nameBytes = directory.readUInt16LE(at + 28)
    const isUtf8 = (directory.readUInt16LE(at + 8) & UTF8_NAME) !== 0
    const name = strFromU8(directory.subarray(at + ENTRY_BYTES, at + ENTRY_BYTES + nameBytes), !isUtf8)
    sums.add(sumKey(name, directory.readUInt32LE(at + 16)))
    at += ENTRY_BYTES + nameBytes + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32)
  }
  return sums
}

export async function readZipDirectory(path: string): Promise<ZipDirectory> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const tailAt = Math.max(0, size - END_SEARCH_BYTES)
    const tail = await bytesAt(file, tailAt, size - tailAt)
    const found = tail.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]))
    if (found < 0 || found + END_BYTES > tail.length)
      throw new SourceRefused('the archive is truncated: its end is missing')
    const end = tail.subarray(found)
    const place = (await largePlace(file, tailAt + found)) ?? { at: end.readUInt32LE(16), size: end.readUInt32LE(12) }
    if (place.at + place.size > size) throw new SourceRefused(BROKEN)
    if (place.size > DIRECTORY_BYTES_MAX) throw new SourceRefused('the directory of the archive is larger than 128 MiB')
    const count = end.readUInt16LE(10)
    return {
      announced: count === MANY_ENTRIES ? null : count,
      sums: sumsOf(await bytesAt(file, place.at, place.size)),
    }
  } finally {
    await file.close()
  }
}
